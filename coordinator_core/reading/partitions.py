"""Partitions in words."""

from collections.abc import Mapping, Sequence


def listed(partitions: Mapping[str, Sequence[int]]) -> str:
    """Write partitions by topic, with ranges of numbers: ``orders 0-2 5, refunds 1``."""
    return ", ".join(f"{topic} {_ranges(numbers)}" for topic, numbers in partitions.items())


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
