"""One clock for all files: by how much the clock of each is ahead, from the generations that they share.

All members of a generation learn at the same time that it has begun. Thus the times at which two files
say so differ by their clocks alone, up to the latency of the network.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from statistics import median_low
from typing import TypeAlias

from rebalance_logs.facts import Kind
from rebalance_logs.reading import Logs

_Key: TypeAlias = tuple[str, int]

SMALLEST_SHIFT_MS = 300
"""Smaller differences are latency, not clocks."""

AGREEING_SHARE = 0.8
"""The share of the generations that must agree on a shift."""


def shifts_of(logs: Logs, given: Mapping[int, int] | None = None) -> list[int]:
    """Return by how many milliseconds the clock of each file is ahead of the clock that counts.

    That is the clock of a coordinator's file, or else of the file that shares most generations with others.
    ``given``: shifts that the caller knows, by the number of the file.
    """
    anchors = [_anchors(logs, number) for number in range(len(logs.files))]
    brokers = {f.source.file for f in logs.facts if not f.library and not f.is_look}
    found = _from(anchors, brokers, given or {})
    if not brokers and not given:
        # the first one may be late itself: most files are right
        shown = [shift for shift, own in zip(found, anchors, strict=True) if own]
        if shown and (most := median_low(shown)):
            found = _from(anchors, {found.index(most)}, {})
    return found


def _from(
    anchors: Sequence[Mapping[_Key, int]], first: AbstractSet[int], given: Mapping[int, int]
) -> list[int]:
    """Return the shifts from files that are right, or have those that are given."""
    shifts: list[int | None] = [None] * len(anchors)
    known: dict[_Key, int] = {}
    for number, shift in given.items():
        shifts[number] = shift
        _learn(known, anchors[number], shift)
    while None in shifts:
        number = _next(anchors, shifts, known, first)
        shift = _shift(anchors[number], known)
        shifts[number] = shift
        _learn(known, anchors[number], shift)
    return [shift or 0 for shift in shifts]


def _learn(known: dict[_Key, int], anchors: Mapping[_Key, int], shift: int) -> None:
    """Note when generations began: nobody learns of one before."""
    for key, at_ms in anchors.items():
        known[key] = min(known.get(key, at_ms - shift), at_ms - shift)


def _anchors(logs: Logs, file: int) -> dict[_Key, int]:
    """Return when a file first says that a generation has begun, and that members have left."""
    found: dict[_Key, int] = {}
    returned: set[_Key] = set()
    joined: dict[str, int] = {}
    for fact in logs.facts:
        if fact.source.file != file:
            continue
        if fact.kind in (Kind.LEAVES, Kind.LEFT) and fact.member_id:
            found.setdefault((f"{fact.group}: {fact.member_id} left", 0), fact.at_ms)
        if fact.generation is None:
            continue
        key = (fact.group, fact.generation)
        if fact.kind is Kind.GENERATION or fact.kind is Kind.JOINED:
            if fact.instance_id and fact.kind is Kind.JOINED and not joined.get(fact.client):
                returned.add(key)  # a static member may have returned to a generation that began long before
            joined[fact.client] = fact.generation
            found.setdefault(key, fact.at_ms)
    return {key: at_ms for key, at_ms in found.items() if key not in returned or len(found) == len(returned)}


def _next(
    anchors: Sequence[Mapping[_Key, int]],
    shifts: Sequence[int | None],
    known: Mapping[_Key, int],
    right: AbstractSet[int],
) -> int:
    """Return the file whose shift is found next: it shares most generations with those that are known.

    The first one is one that is right, or else shares most generations with all others.
    """

    def weight(number: int) -> tuple[int, bool, int, int]:
        others = [other for n, other in enumerate(anchors) if n != number]
        shared = sum(key in other for key in anchors[number] for other in others)
        return len(anchors[number].keys() & known.keys()), number in right, shared, -number

    return max((n for n, shift in enumerate(shifts) if shift is None), key=weight)


def _shift(own: Mapping[_Key, int], known: Mapping[_Key, int]) -> int:
    """Return the shift of a file: the least time by which it learns of generations later than others do."""
    differences = [own[key] - known[key] for key in own.keys() & known.keys()]
    least = min(differences, default=0)
    if abs(least) < SMALLEST_SHIFT_MS:
        return 0
    near = sum(difference - least <= max(SMALLEST_SHIFT_MS, abs(least) // 10) for difference in differences)
    return least if near >= AGREEING_SHARE * len(differences) else 0
