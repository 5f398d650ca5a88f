"""Lost partitions wait for their owner: the delayed rebalance of Kafka Connect (KIP-415).

A partition is lost if it was assigned, its owner is gone, and nobody claims it. A member that joins again
before it has taken over its share is not gone. The delay begins with the first round that sees a loss. While
it lasts, owners keep what they have, and new partitions are dealt out. What is left of the delay travels in
the assignments. When it is over, all members join again, and the lost partitions are assigned.

A leader that was not the leader before does not know of a delay, and begins it anew, as in Connect. It knows
which partitions are new: the assignments also carry the sizes of the topics for which they were computed.
A member that has received no assignment, in a group that runs already, takes topics that members own
partitions of as they are.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from coordinator_core.assigning.assignor import Assignor, Wrapper, is_cooperative
from coordinator_core.assigning.computing import run
from coordinator_core.assigning.envelope import attach, detach
from coordinator_core.assigning.loading import assignor_from
from coordinator_core.assigning.problem import BoolArray, Problem
from coordinator_core.errors import InputError
from coordinator_core.model import NO_OWNER, GroupAssignment, Int32Array, TopicPartition

KIND = b"delayed"
DEFAULT_DELAY_MS = 300_000
"""The default of scheduled.rebalance.max.delay.ms in Kafka Connect."""


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """The data in an assignment: what is left of the delay, 0 without one, and the sizes of the topics."""

    left_ms: int
    sizes: dict[str, int]


_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Note).decode


class Delayed(Wrapper):
    """A cooperative assignor that leaves lost partitions unassigned for a while.

    ``now_ms`` returns the current time.

    Raises:
        InputError: if the assignor is not cooperative.
    """

    def __init__(self, inner: Assignor, delay_ms: int, now_ms: Callable[[], int]) -> None:
        if not is_cooperative(inner):
            found = f"the eager assignor {inner.name!r}, whose members give up everything before each round"
            raise InputError("delay", found, "a cooperative assignor")
        super().__init__(inner)
        self.repeats = False
        self._delay_ms, self._now_ms = delay_ms, now_ms
        self._sizes: dict[str, int] = {}
        self._due_ms: int | None = None
        self._moving: frozenset[TopicPartition] = frozenset()
        self._given: GroupAssignment | None = None
        self._written: _Note | None = None
        """The note of the last solution, until the next assignment."""
        self._was_waiting = False
        """Whether a delay was running by the last assignment."""

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem, with lost partitions left out while the delay lasts."""
        lost = self._lost(problem)
        now_ms = self._now_ms()
        starts_anew = self._was_waiting and self._due_ms is None
        if not len(lost):
            self._due_ms = None
        elif self._due_ms is None:
            self._due_ms = now_ms + self._delay_ms
        left_ms = 0 if self._due_ms is None else max(0, self._due_ms - now_ms)
        if left_ms:
            found = self._waiting(problem, lost)
        else:
            self._due_ms = None
            found = run(self.inner, problem)
        owner = found.owners(problem.index, problem.members)
        claimed = np.zeros(problem.index.size, dtype=np.bool_)
        claimed[problem.claim_partition] = True
        held = np.flatnonzero((owner < 0) & claimed).astype(np.int32)
        self._moving = frozenset(problem.index.partitions(held))
        self._given = found
        self._sizes = {topic: info.partitions for topic, info in problem.cluster.topics.items()}
        self._written = _Note(left_ms, self._sizes)
        note = _encode(self._written)
        data = {m: attach(found.user_data.get(m), KIND, note) for m in problem.members}
        report = dict(found.report)
        if left_ms:
            names = [f"{topic} {number}" for topic, number in problem.index.partitions(lost)]
            report |= {"delay_ms": self._delay_ms, "delay_left_ms": left_ms, "lost": names}
            report |= {"delay_starts_anew": True} if starts_anew else {}
        return GroupAssignment.from_owners(
            problem.index, problem.members, np.array(owner), user_data=data, report=report
        )

    def rejoin_after_ms(self, user_data: bytes | None) -> int | None:
        """Return what is left of the delay. Forget what only its leader knows."""
        own, data = detach(user_data, KIND)
        note = None if data is None else _decode(data)
        if note is not None:
            self._sizes = note.sizes
        if note != self._written:
            self._due_ms, self._given, self._moving = None, None, frozenset()
        self._written = None
        after_ms = self.inner.rejoin_after_ms(own)
        left_ms = note.left_ms if note is not None and note.left_ms else None
        self._was_waiting = left_ms is not None
        return min((ms for ms in (after_ms, left_ms) if ms is not None), default=None)

    def _lost(self, problem: Problem) -> Int32Array:
        """Return the partitions that were assigned, are subscribed to, and whose owner is gone."""
        free, sizes = _unclaimed(problem), self._sizes or _claimed_topics(problem)
        if self._given is not None:
            free &= self._given.owners(problem.index, problem.members) == NO_OWNER
        at = np.flatnonzero(free).astype(np.int32)
        lost = [
            number
            for number, partition in zip(at.tolist(), problem.index.partitions(at), strict=True)
            if partition.partition < sizes.get(partition.topic, 0) and partition not in self._moving
        ]
        return np.array(lost, dtype=np.int32)

    def _waiting(self, problem: Problem, lost: Int32Array) -> GroupAssignment:
        """Let every owner keep what it has, and deal out the others one by one, but not the lost ones."""
        owner, free = np.array(problem.owner), _unclaimed(problem)
        free[lost] = False
        count = np.bincount(owner[owner >= 0], minlength=len(problem.members))
        most = np.iinfo(np.int64).max
        for partition in np.flatnonzero(free):
            topic = problem.index.topic_of_every[partition]
            eligible = problem.class_subscribes[problem.member_class, topic]
            owner[partition] = member = int(np.where(eligible, count, most).argmin())
            count[member] += 1
        return GroupAssignment.from_owners(problem.index, problem.members, owner)


def _claimed_topics(problem: Problem) -> dict[str, int]:
    """Return the sizes of the topics of which a member claims a partition."""
    claimed = np.unique(problem.index.topic_of_every[problem.claim_partition])
    topics = [problem.index.topics[at] for at in claimed]
    return {topic: problem.cluster.topics[topic].partitions for topic in topics}


def _unclaimed(problem: Problem) -> BoolArray:
    """Return for each partition whether somebody subscribes to it and nobody claims it: bool[P]."""
    wanted: BoolArray = np.any(problem.class_subscribes, axis=0)
    free: BoolArray = wanted[problem.index.topic_of_every]
    free[problem.claim_partition] = False
    return free


def with_delay(assignor: object, delay_ms: int, now_ms: Callable[[], int]) -> Assignor:
    """Return an assignor that leaves lost partitions unassigned for ``delay_ms``.

    Raises:
        InputError: if the assignor is not cooperative.
    """
    return Delayed(assignor_from(assignor), delay_ms, now_ms)
