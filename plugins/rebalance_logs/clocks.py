"""One clock for all files: by how much the clock of each is ahead, from the generations that they share.

All members of a generation learn at the same time that it has begun. Thus the times at which two files
say so differ by their clocks alone, up to the latency of the network.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from rebalance_logs.facts import Kind
from rebalance_logs.reading import Logs

LEAST_MS = 300
"""Smaller differences are latency, not clocks."""


def shifts_of(logs: Logs, given: Mapping[int, int] | None = None) -> list[int]:
    """Return by how many milliseconds the clock of each file is ahead of the first one's that it shares with.

    The file of a coordinator is right, or else the one that shares most generations. ``given``: shifts that
    the caller knows, by the number of the file.
    """
    anchors = [_anchors(logs, number) for number in range(len(logs.files))]
    shifts: list[int | None] = [None] * len(logs.files)
    for number, shift in (given or {}).items():
        shifts[number] = shift
    while None in shifts:
        found = _nearest(anchors, shifts)
        if found is None:
            start = _reference(logs, anchors, shifts)
            shifts[start] = 0
            continue
        number, other = found
        base = shifts[other]
        assert base is not None
        shifts[number] = _shift(anchors[number], anchors[other], base)
    return [shift or 0 for shift in shifts]


def _anchors(logs: Logs, file: int) -> dict[tuple[str, int], int]:
    """Return when a file first says that a generation has begun."""
    found: dict[tuple[str, int], int] = {}
    fenced: set[tuple[str, int]] = set()
    joined: dict[str, int] = {}
    for fact in logs.facts:
        if fact.source.file != file or fact.generation is None:
            continue
        key = (fact.group, fact.generation)
        if fact.kind is Kind.GENERATION or fact.kind is Kind.JOINED:
            if fact.instance_id and fact.kind is Kind.JOINED and not joined.get(fact.client):
                fenced.add(key)  # a static member may have returned to a generation that began long before
            joined[fact.client] = fact.generation
            found.setdefault(key, fact.at_ms)
    return {key: at_ms for key, at_ms in found.items() if key not in fenced or len(found) == len(fenced)}


def _reference(logs: Logs, anchors: Sequence[Mapping[tuple[str, int], int]], shifts: Sequence[int | None]) -> int:
    """Return the file whose clock counts, of those whose shift is not known."""
    brokers = {fact.source.file for fact in logs.facts if not fact.library}

    def weight(number: int) -> tuple[bool, int, int]:
        shared = sum(
            key in other for key in anchors[number] for n, other in enumerate(anchors) if n != number
        )
        return number in brokers, shared, -number

    return max((n for n, shift in enumerate(shifts) if shift is None), key=weight)


def _nearest(
    anchors: Sequence[Mapping[tuple[str, int], int]], shifts: Sequence[int | None]
) -> tuple[int, int] | None:
    """Return the file without a shift that shares most generations with one that has one, and that one."""
    best, most = None, 0
    for number, shift in enumerate(shifts):
        if shift is not None:
            continue
        for other, known in enumerate(shifts):
            if known is not None:
                shared = len(anchors[number].keys() & anchors[other].keys())
                if shared > most:
                    best, most = (number, other), shared
    return best


def _shift(own: Mapping[tuple[str, int], int], other: Mapping[tuple[str, int], int], base: int) -> int:
    differences = sorted(own[key] - other[key] for key in own.keys() & other.keys())
    middle = round(median(differences))
    if abs(middle) < LEAST_MS:
        return base
    near = sum(abs(difference - middle) <= max(LEAST_MS, abs(middle) // 10) for difference in differences)
    return base + middle if 2 * near > len(differences) else base
