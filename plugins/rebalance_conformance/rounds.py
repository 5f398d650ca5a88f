"""Checks over several rebalances, in which members own the partitions of their last assignment.

Every run has joins, a leave, different subscriptions, a member that misses a round and keeps an older
generation, and two members that claim one partition, in the same generation and in different ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.model import (
    NO_GENERATION,
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
from rebalance_conformance.search import Bench, FaultError

FIRST = ("c1", "c2", "c10")
LATE = "b"
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
    topics: tuple[str, ...]
    owned: Partitions = field(default=NO_PARTITIONS)
    generation: int = NO_GENERATION

    def receive(self, owned: Partitions, generation: int) -> None:
        """Receive an assignment."""
        self.owned, self.generation = owned, generation
        self.assignor.on_assignment(owned, generation)

    def subscription(self) -> Subscription:
        """Return the subscription with which the member joins. An eager member has revoked its partitions."""
        data = self.assignor.subscription_user_data(self.topics)
        owned = self.owned if is_cooperative(self.assignor) else NO_PARTITIONS
        return Subscription(self.topics, owned, self.generation, user_data=data)


def invalid_after_rebalances(bench: Bench) -> None:
    """Fail on any fault in any round."""
    cooperative = bench.subject.cooperative

    def examine(history: History) -> None:
        for number, (case, given) in enumerate(_played(bench, history), start=1):
            early = taken_too_early(case, given) if cooperative else ""
            fault = fault_in(case, given, cooperative=cooperative) or early
            if fault:
                raise FaultError(
                    f"in round {number} of a group with joins and a leave: {fault}", case, given=given
                )

    bench.try_all(histories(), examine)


def does_not_converge(bench: Bench) -> None:
    """Fail if a cooperative group still moves partitions, or has some without an owner, after the changes."""

    def examine(history: History) -> None:
        calm = list(_played(bench, history))[-CALM_ROUNDS:]
        (_, before), (case, last) = calm[-2:]
        missing = left_out(case, last, cooperative=False)
        if missing or as_sets(before) != as_sets(last):
            fault = missing or f"still moving: {difference(before, last)}"
            raise FaultError(f"{CALM_ROUNDS} rounds after the last change {fault}", case, given=last)

    bench.try_all(histories(), examine)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a run. The first member subscribes to all topics and the second only to one."""
    topics = draw(st.lists(st.sampled_from(TOPICS), unique=True, min_size=2, max_size=3))
    cluster = Cluster({topic: draw(st.integers(2, 5)) for topic in topics})
    some = st.lists(st.sampled_from(topics), unique=True, min_size=1).map(tuple)
    wanted = (tuple(topics), (topics[0],), draw(some), draw(some))
    return History(cluster, wanted, *(draw(st.integers(0, len(FIRST) - 1)) for _ in range(3)))


def _played(bench: Bench, history: History) -> Iterator[tuple[Case, Given]]:
    """Yield every round: the group as it joined, and its assignment."""
    group = {
        name: Member(bench.subject.make(), topics)
        for name, topics in zip(FIRST, history.topics, strict=False)
    }
    case, given = _round(bench, history.cluster, group)
    yield case, given
    _deliver(group, given, 1)

    group[LATE] = Member(bench.subject.make(), history.topics[-1])
    case, given = _round(bench, history.cluster, group)
    yield case, given
    deaf, doubler = FIRST[history.deaf], FIRST[history.doubler]
    _deliver({name: member for name, member in group.items() if name != deaf}, given, 2)
    _claim_too(group[doubler], subscribed(case), group[_after(doubler)])
    _claim_too(group[deaf], subscribed(case), group[_after(deaf)])

    case, given = _round(bench, history.cluster, group)
    yield case, given
    _deliver(group, given, 3)

    leaver = FIRST[history.leaver]
    former = group.pop(leaver)
    case, given = _round(bench, history.cluster, group)
    yield case, given
    _deliver(group, given, 4)

    group[leaver] = Member(bench.subject.make(), former.topics)
    for generation in range(5, 5 + CALM_ROUNDS + 1):
        case, given = _round(bench, history.cluster, group)
        yield case, given
        _deliver(group, given, generation)


def _round(bench: Bench, cluster: Cluster, group: dict[str, Member]) -> tuple[Case, Given]:
    try:
        case = Case(
            cluster, GroupSubscription({name: member.subscription() for name, member in group.items()})
        )
    except Exception as error:
        raise FaultError(f"subscription_user_data raised {raised(error)}") from error
    return case, bench.given(case)


def _deliver(group: dict[str, Member], given: Given, generation: int) -> None:
    for name, member in group.items():
        _receive(member, Partitions.of(given.get(name, ())), generation)


def _receive(member: Member, owned: Partitions, generation: int) -> None:
    try:
        member.receive(owned, generation)
    except Exception as error:
        raise FaultError(f"on_assignment raised {raised(error)}") from error


def _claim_too(member: Member, partitions: Sequence[TopicPartition], other: Member) -> None:
    """Let a member claim, in its own generation, the first partition of another one."""
    taken = [tp for tp in partitions if tp in other.owned and tp.topic in member.topics][:1]
    _receive(member, Partitions.of([*member.owned, *taken]), member.generation)


def _after(name: str) -> str:
    return FIRST[(FIRST.index(name) + 1) % len(FIRST)]
