"""Checks with unusual groups. They fail on an exception or a fault."""

from collections.abc import Iterable

import msgspec
from hypothesis import strategies as st

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription
from rebalance_conformance.answers import fault_in
from rebalance_conformance.cases import Case
from rebalance_conformance.groups import MEMBERS, TOPICS, ordinary_groups
from rebalance_conformance.search import Bench, FaultError

FOREIGN_USER_DATA = (
    b"",
    b"\x00",
    b"\x00\x00\x00\x05",  # a generation, or the length of an array that does not follow
    b"\x7f\xff\xff\xff",
    b"\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07",  # Kafka's sticky, v1
    b"\x00\x00\x00\x01\x00\x06ord",  # the same, cut off
    b'{"owned": [["orders", 0]]}',
    b"\xff" * 9,
)
UNICODE = ("größe", "\uff41", "\U0001f600", "zwei Worte", "e\u0301", "\u0130", "'\"\\", "-" * 249)


def no_members(bench: Bench) -> None:
    """Try groups without members."""
    emptied = ordinary_groups().map(lambda case: Case(case.cluster, GroupSubscription({})))
    bench.try_all(emptied, lambda case: _examine(bench, case))


def no_partitions(bench: Bench) -> None:
    """Try clusters without topics, and topics without partitions."""
    emptied = st.lists(st.sampled_from(TOPICS), unique=True).map(lambda t: Cluster(dict.fromkeys(t, 0)))
    members = st.lists(st.sampled_from(MEMBERS), unique=True, min_size=1)
    drawn = st.builds(lambda cluster, names: _alike(cluster, names, TOPICS), emptied, members)
    bench.try_all(drawn, lambda case: _examine(bench, case))


def unknown_topics(bench: Bench) -> None:
    """Try members that subscribe to unknown topics, or claim unknown partitions."""
    gone = Partitions({"gone": [0, 3], "orders": [7]})

    def with_unknown(case: Case) -> Case:
        members = {
            m: msgspec.structs.replace(s, topics=("gone", *s.topics), owned=gone, generation=1)
            for m, s in case.group.items()
        }
        return Case(case.cluster, GroupSubscription(members))

    bench.try_all(ordinary_groups().map(with_unknown), lambda case: _examine(bench, case))


def more_members_than_partitions(bench: Bench) -> None:
    """Try groups with more members than partitions."""
    one = st.sampled_from(TOPICS).map(lambda topic: Cluster({topic: 1}))
    members = st.lists(st.sampled_from(MEMBERS), unique=True, min_size=2)
    drawn = st.builds(lambda cluster, names: _alike(cluster, names, cluster.topics), one, members)
    bench.try_all(drawn, lambda case: _examine(bench, case))


def member_without_topics(bench: Bench) -> None:
    """Try a member without topics."""

    def with_idle(case: Case) -> Case:
        return Case(case.cluster, GroupSubscription({**case.group, "idle": Subscription(())}))

    bench.try_all(ordinary_groups().map(with_idle), lambda case: _examine(bench, case))


def topic_without_members(bench: Bench) -> None:
    """Try a topic without subscribers."""

    def with_unwanted(case: Case) -> Case:
        return Case(Cluster({**case.cluster.topics, "unwanted": 3}), case.group)

    bench.try_all(ordinary_groups().map(with_unwanted), lambda case: _examine(bench, case))


def unicode_names(bench: Bench) -> None:
    """Try names with unusual characters."""
    names = st.lists(st.sampled_from(UNICODE), unique=True, min_size=1)
    topics = names.map(lambda listed: Cluster(dict.fromkeys(listed, 2)))
    drawn = st.builds(lambda cluster, members: _alike(cluster, members, cluster.topics), topics, names)
    bench.try_all(drawn, lambda case: _examine(bench, case))


def foreign_user_data(bench: Bench) -> None:
    """Try user data of other assignors and of other versions."""

    def examine(drawn: tuple[Case, bytes]) -> None:
        case, data = drawn
        members = {m: msgspec.structs.replace(s, user_data=data) for m, s in case.group.items()}
        try:
            _examine(bench, Case(case.cluster, GroupSubscription(members)))
        except FaultError as fault:
            reason = f"{fault.reason} (all members sent the user data {data!r})"
            raise FaultError(reason, fault.case, given=fault.given) from fault

    bench.try_all(st.tuples(ordinary_groups(), st.sampled_from(FOREIGN_USER_DATA)), examine)


def _alike(cluster: Cluster, members: Iterable[str], topics: Iterable[str]) -> Case:
    return Case(cluster, GroupSubscription(dict.fromkeys(members, Subscription(tuple(topics)))))


def _examine(bench: Bench, case: Case) -> None:
    given = bench.given(case)
    fault = fault_in(case, given, cooperative=bench.subject.cooperative)
    if fault:
        raise FaultError(fault, case, given=given)
