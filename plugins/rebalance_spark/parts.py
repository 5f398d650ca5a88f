"""Scenarios in parts, by a column of their scores or of their workload."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_PARTS = 20
"""Of more values the most frequent are parts, and the others are one part together."""

_FEW = 8
"""So many different numbers are parts by themselves. More are put together by powers of two."""


def parts_of(values: Sequence[Any]) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """Return the parts: their names, and which scenarios belong to each. Numbers are in their order."""
    texts = ["" if value is None else str(value) for value in values]
    names = _of_numbers(values) if _are_numbers(values) else _of_texts(texts)
    order = list(dict.fromkeys(name for _, name in sorted(set(names))))
    labels = np.array([name for _, name in names], dtype=object)
    return [(name or "(none)", np.asarray(labels == name, dtype=np.bool_)) for name in order]


def _are_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)


def _of_numbers(values: Sequence[Any]) -> list[tuple[float, str]]:
    different = {value for value in values if value is not None}
    if len(different) <= _FEW:
        return [(np.inf, "") if value is None else (value, f"{value:g}") for value in values]
    return [(np.inf, "") if value is None or value != value else _range(value) for value in values]


def _range(value: float) -> tuple[float, str]:
    if value < 1:
        return -1.0, "less than 1"
    low = 2 ** int(np.log2(value))
    return float(low), f"{low:,}" if low == 1 else f"{low:,} to {2 * low - 1:,}"


def _of_texts(texts: Sequence[str]) -> list[tuple[float, str]]:
    counted = Counter(texts)
    if len(counted) <= MOST_PARTS:
        return [(0, text) for text in texts]
    kept = {text for text, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_PARTS]}
    rest = f"{len(counted) - MOST_PARTS:,} others"
    return [(0, text) if text in kept else (1, rest) for text in texts]
