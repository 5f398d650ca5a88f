"""The assignment that a consumer receives in a round, taken over in the next poll (PROTOCOL 9.7)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.beats import Beats
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.core import Core
from coordinator_core.client.generation import Generation
from coordinator_core.client.membership import Membership
from coordinator_core.client.requests import NEVER
from coordinator_core.client.subscription import SubscriptionMode
from coordinator_core.errors import ProtocolError
from coordinator_core.java import java_order
from coordinator_core.model import Partitions, RebalanceProtocol, TopicPartition
from coordinator_core.protocol.consumer_protocol import decode_assignment

REMEMBERED = 256
"""The number of encoded assignments that are remembered, with what they contain."""

SMALL = 4_096
"""The most bytes of an assignment that is remembered."""


class _Decoded(NamedTuple):
    """An assignment: the partitions in order, as a set and listed; their topics; the user data."""

    partitions: Partitions
    listed: tuple[TopicPartition, ...]
    topics: tuple[str, ...]
    user_data: bytes | None


def _decoded(data: bytes) -> _Decoded:
    partitions, user_data = decode_assignment(data)
    listed = tuple(sorted(partitions))
    ordered = Partitions.of(listed)
    return _Decoded(ordered, listed, tuple(ordered.by_topic()), user_data)


_remembered = lru_cache(REMEMBERED)(_decoded)
"""In a round, members get assignments that others had in the round before."""


class Takeover:
    """Revokes the partitions that an assignment removes and owns those that it adds."""

    def __init__(
        self,
        core: Core,
        membership: Membership[MemberState],
        beats: Beats,
        assignors: Mapping[str, Assignor],
        protocol: RebalanceProtocol,
    ) -> None:
        self._core, self._membership, self._beats = core, membership, beats
        self._assignors, self._protocol = assignors, protocol
        self._received: tuple[Generation, bytes] | None = None
        self.is_due = False
        """Whether an assignment waits for the next poll."""

    def schedule(self, generation: Generation, data: bytes) -> None:
        """Keep an encoded assignment, with the generation that it belongs to (PITFALLS C-49)."""
        self._received, self.is_due = (generation, data), True

    def run(self, *, now_ms: int) -> None:
        """Take over the assignment that waits, if any.

        An assignment of an earlier generation is dropped: the next join loses the partitions.
        """
        if self._received is None:
            return
        (generation, data), self._received, self.is_due = self._received, None, False
        self._membership.must_prepare = True
        if generation != self._core.generation:
            return
        try:
            assigned = _remembered(data) if len(data) <= SMALL else _decoded(data)
        except ProtocolError as error:
            hint = f"the assignment is unreadable: is the leader's assignor {generation.protocol!r} at fault?"
            self._core.fail(ProtocolError(error.peer, f"{error.reason}; {hint}"))
            return
        if not self._core.subscriptions.allows(assigned.topics):
            self._membership.request_rejoin("the assignment does not match the subscription")
            return
        self._follow(assigned.topics)
        self._apply(generation, assigned, now_ms=now_ms)
        assignor = self._assignors[generation.protocol or ""]
        after_ms = assignor.rejoin_after_ms(assigned.user_data)
        self._membership.rejoin_at_ms = NEVER if after_ms is None else now_ms + after_ms
        self._beats.polled(now_ms=now_ms)

    def resume(self, generation: Generation, owned: Iterable[TopicPartition]) -> None:
        """Own partitions since before, after a call to the assignor of the generation."""
        listed = tuple(sorted(owned))
        self._assign(generation, Partitions.of(listed), listed, [])

    def _assign(
        self,
        generation: Generation,
        partitions: Partitions,
        assigned: Sequence[TopicPartition],
        added: Sequence[TopicPartition],
    ) -> None:
        """Call the assignor of the generation, and own the partitions, which are given twice."""
        core = self._core
        assignor = self._assignors[generation.protocol or ""]
        core.callbacks.call(assignor.on_assignment, partitions, generation.number)
        core.subscriptions.assign_by_group(assigned)
        core.report_assigned(added, assigned)

    def _follow(self, topics: Iterable[str]) -> None:
        """Subscribe to assigned topics that match the pattern and that only the leader knew at the join."""
        core, joined = self._core, self._membership.joined_topics
        added = frozenset(topics) - frozenset(joined)
        if added and core.subscriptions.mode is SubscriptionMode.AUTO_PATTERN:
            self._membership.joined_topics = tuple(java_order(added | frozenset(joined)))
            core.subscriptions.match(added | frozenset(core.subscriptions.topics))
            core.metadata.request_update()

    def _apply(self, generation: Generation, assigned: _Decoded, *, now_ms: int) -> None:
        """Revoke, call the assignor, assign, call the listener, in this order (PITFALLS C-52)."""
        owned = self._core.subscriptions.partitions
        kept = frozenset(assigned.listed)
        revoked = sorted(tp for tp in owned if tp not in kept)
        added = [tp for tp in assigned.listed if tp not in owned]
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            if revoked:
                self._core.give_up(revoked)
                self._membership.request_rejoin(f"it gave up partitions: {len(revoked)}")
            elif self._core.library.first_beat_ms:
                self._beats.hasten(now_ms + self._core.library.first_beat_ms)
        self._assign(generation, assigned.partitions, assigned.listed, added)
        self._core.callbacks.assigned(added)
