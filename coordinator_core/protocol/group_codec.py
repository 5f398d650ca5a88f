"""The bytes of a group, round after round, as its leader decodes and encodes them.

Most members send the subscription of the last round again, and get the assignment of the last round. Their
bytes are not decoded or encoded again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from coordinator_core.model import NO_OWNER, GroupAssignment, Int32Array, Subscription, TopicIndex
from coordinator_core.packing import FEWEST_LISTS
from coordinator_core.protocol.consumer_protocol import (
    Decoded,
    decode_again,
    decode_subscriptions,
    encode_assignments,
    encode_listing,
)


@dataclass(frozen=True, eq=False)
class _Encoded:
    """The partitions of the members in the last round, and their bytes.

    ``listed`` int32[n]: dense numbers of the index, member after member; ``starts`` int64[M + 1].
    """

    index: TopicIndex
    listed: Int32Array
    starts: NDArray[np.int64]
    data: dict[str, bytes]


class GroupCodec:
    """Decodes subscriptions and encodes assignments. It remembers those of the last round."""

    def __init__(self) -> None:
        self._decoded: dict[str, Decoded] = {}
        self._apart: frozenset[str] = frozenset()
        self.unreadable: dict[str, str] = {}
        """The members of the last round whose bytes are not a subscription, and why."""
        self._encoded: _Encoded | None = None

    def decode(self, members: Mapping[str, tuple[bytes, str | None]]) -> dict[str, Subscription]:
        """Decode the subscription of each member, given with its instance id.

        The subscriptions of members whose bytes have not changed are remembered. When more than a sixteenth
        of all have changed since they were last decoded together, all are decoded again: those that are
        decoded together share an index. A member whose bytes are not a subscription has no topics, and is
        `unreadable`.
        """
        last, known = self._decoded, dict[str, Decoded]()
        for m, sent in members.items():
            again = decode_again(sent, last[m]) if m in last else None
            if again is not None:
                known[m] = again
        changed = [m for m in members if m not in known]
        apart = self._apart.intersection(members).union(changed)
        if not known or len(apart) > max(FEWEST_LISTS, len(members) // FEWEST_LISTS):
            changed, apart = list(members), frozenset()
        known.update(zip(changed, decode_subscriptions([members[m] for m in changed]), strict=True))
        self._decoded, self._apart = known, apart
        self.unreadable = {m: known[m].error for m in members if known[m].error}
        return {m: known[m].subscription for m in members}

    def encode(self, assignment: GroupAssignment, members: Iterable[str]) -> list[bytes]:
        """Encode the assignments of members, as `encode_assignments` does, and remember those of many."""
        is_remembered = len(assignment) >= FEWEST_LISTS and not assignment.user_data
        self._encoded = _encoded(assignment, self._encoded) if is_remembered else None
        if self._encoded is None:
            return encode_assignments(assignment, members)
        return list(map(self._encoded.data.__getitem__, members))


def _encoded(assignment: GroupAssignment, last: _Encoded | None) -> _Encoded | None:
    """Encode what differs from the last round; None if the partitions are not kept in arrays."""
    listing = assignment.listing()
    if listing is None:
        return None
    index, listed, starts = listing
    listed, starts = listed[starts[0] :], starts - starts[0]
    if last is None or not last.index.same_numbering(index):
        last = _Encoded(index, listed[:0], starts[:1], {})
    counts = np.diff(starts)
    changed = _changed(last, assignment, listed, starts)
    changed_starts = np.append(0, np.cumsum(counts[changed]))
    lists = encode_listing(index, listed[np.repeat(changed, counts)], changed_starts)
    if lists is None:
        return None
    new = iter(lists)
    data = {m: next(new) if c else last.data[m] for m, c in zip(assignment, changed.tolist(), strict=True)}
    return _Encoded(index, listed, starts, data)


def _changed(
    last: _Encoded, members: Iterable[str], listed: Int32Array, starts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """bool[M]: whether a member has other partitions than in the last round, or has them in another order."""
    place = {member: at for at, member in enumerate(last.data)}
    counts = np.diff(starts)
    before = np.fromiter(map(place.get, members, repeat(-1)), dtype=np.int64, count=len(counts))
    changed: NDArray[np.bool_] = counts != np.append(np.diff(last.starts), -1)[before]
    shift = np.where(changed, 0, last.starts[before] - starts[:-1])
    at = np.repeat(shift, counts)
    at += np.arange(len(at))
    differs = np.append(last.listed, NO_OWNER).take(at, mode="clip") != listed
    changed[np.repeat(np.arange(len(counts)), counts)[differs]] = True
    return changed
