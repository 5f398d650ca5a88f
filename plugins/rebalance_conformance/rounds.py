"""Checks over several rebalances, in which members own the partitions of their last assignment.

Every run has joins, a leave, different subscriptions, a member that misses a round and keeps an older
generation, and two members that claim one partition, in the same generation and in different ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.model import (
    NO_PARTITIONS,
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicPartition,
)
from coordinator_core.reading.raised import raised
from rebalance_conformance.answers import Given, as_sets, difference, fault_in, left_out, taken_too_early
from rebalance_conformance.cases import Case, subscribed
from rebalance_conformance.groups import TOPICS
from rebalance_conformance.search import Bench, FaultError, check
from rebalance_conformance.subject import COOPERATIVE

FIRST = ("c1", "c2", "c10")
LATE = "b"
LATE_JOINS, LEAVES, LAST_CHANGE = 2, 4, 5
"""The rounds in which a member joins, in which one leaves, and in which it comes back."""
CALM_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class History:
    """The parameters of a run. The numbers are positions in `FIRST`."""

    cluster: Cluster
    topics: tuple[tuple[str, ...], ...]
    deaf: int
    doubler: int
    leaver: int


@dataclass(slots=True)
class Member:
    """A consumer between two rebalances, with an assignor of its own."""

    assignor: Assignor
    subscription: Subscription
    """With the partitions and the generation of the last assignment."""

    def receive(self, owned: Partitions, generation: int) -> None:
        """Receive an assignment.

        Raises:
            FaultError: if the assignor raises an exception.
        """
        self.subscription = replace(self.subscription, owned=owned, generation=generation)
        try:
            self.assignor.on_assignment(owned, generation)
        except Exception as error:
            raise FaultError(f"on_assignment raised {raised(error)}") from error

    def joins(self) -> Subscription:
        """Return the subscription with which the member joins. An eager member has revoked its partitions.

        Raises:
            FaultError: if the assignor raises an exception.
        """
        try:
            data = self.assignor.subscription_user_data(self.subscription.topics)
        except Exception as error:
            raise FaultError(f"subscription_user_data raised {raised(error)}") from error
        owned = self.subscription.owned if is_cooperative(self.assignor) else NO_PARTITIONS
        return replace(self.subscription, owned=owned, user_data=data)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a run. The first member subscribes to all topics and the second only to one."""
    topics = draw(st.lists(st.sampled_from(TOPICS), unique=True, min_size=2, max_size=3))
    cluster = Cluster({topic: draw(st.integers(2, 5)) for topic in topics})
    some = st.lists(st.sampled_from(topics), unique=True, min_size=1).map(tuple)
    wanted = (tuple(topics), (topics[0],), draw(some), draw(some))
    return History(cluster, wanted, *(draw(st.integers(0, len(FIRST) - 1)) for _ in range(3)))


@check("Answers stay valid through joins and leaves.", histories())
def invalid_after_rebalances(bench: Bench, history: History) -> None:
    """Fail on any fault in any round."""
    cooperative = bench.subject.cooperative
    for number, (case, given) in enumerate(_played(bench, history), start=1):
        early = taken_too_early(case, given) if cooperative else ""
        fault = fault_in(case, given, cooperative=cooperative) or early
        if fault:
            reason = f"in round {number} of a group with joins and a leave: {fault}"
            raise FaultError(reason, case, given=given)


@check("A group comes to rest when changes end.", histories(), only=COOPERATIVE)
def does_not_converge(bench: Bench, history: History) -> None:
    """Fail if a cooperative group still moves partitions, or has some without an owner, after the changes."""
    (_, before), (case, last) = list(_played(bench, history))[-2:]
    missing = left_out(case, last, cooperative=False)
    if missing or as_sets(before) != as_sets(last):
        fault = missing or f"still moving: {difference(before, last)}"
        raise FaultError(f"{CALM_ROUNDS} rounds after the last change {fault}", case, given=last)


def _played(bench: Bench, history: History) -> Iterator[tuple[Case, Given]]:
    """Yield every round: the group as it joined, and its assignment."""

    def new(topics: tuple[str, ...]) -> Member:
        return Member(bench.subject.make(), Subscription(topics))

    group = dict(zip(FIRST, map(new, history.topics), strict=False))
    deaf, leaver = FIRST[history.deaf], FIRST[history.leaver]
    for generation in range(1, LAST_CHANGE + CALM_ROUNDS + 1):
        if generation == LATE_JOINS:
            group[LATE] = new(history.topics[-1])
        elif generation == LEAVES:
            former = group.pop(leaver)
        elif generation == LAST_CHANGE:
            group[leaver] = new(former.subscription.topics)
        case = Case(history.cluster, GroupSubscription({name: m.joins() for name, m in group.items()}))
        given = bench.given(case)
        yield case, given
        for name, member in group.items():
            if (generation, name) != (LATE_JOINS, deaf):
                member.receive(Partitions.of(given.get(name, ())), generation)
        if generation == LATE_JOINS:
            for claimant in (FIRST[history.doubler], deaf):
                _claim_too(group[claimant], subscribed(case), group[_after(claimant)])


def _claim_too(member: Member, partitions: Sequence[TopicPartition], other: Member) -> None:
    """Let a member claim, in its own generation, the first partition of another one."""
    mine, others = member.subscription, other.subscription.owned
    taken = [tp for tp in partitions if tp in others and tp.topic in mine.topics][:1]
    member.receive(Partitions.of([*mine.owned, *taken]), mine.generation)


def _after(name: str) -> str:
    return FIRST[(FIRST.index(name) + 1) % len(FIRST)]
