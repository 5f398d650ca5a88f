"""Checks with unusual groups. They fail on an exception or a fault."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from hypothesis import strategies as st

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription
from rebalance_conformance.answers import fault_in
from rebalance_conformance.cases import Case
from rebalance_conformance.groups import MEMBERS, TOPICS, ordinary_groups
from rebalance_conformance.search import Bench, Check, FaultError, check
from rebalance_conformance.subject import SUBSCRIBERS_ONLY

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
GONE = Partitions({"gone": [0, 3], "orders": [7]})


def _some(items: Iterable[str], least: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from([*items]), unique=True, min_size=least)


def _alike(cluster: Cluster, members: Iterable[str], topics: Iterable[str]) -> Case:
    return Case(cluster, GroupSubscription(dict.fromkeys(members, Subscription(tuple(topics)))))


def _examine(bench: Bench, case: Case) -> None:
    bench.reject(case, partial(fault_in, cooperative=bench.subject.cooperative))


def unusual(
    doc: str, *drawn: st.SearchStrategy[Any], only: str = ""
) -> Callable[[Callable[..., Case]], Check]:
    """Make a check of a function that returns the group to try, of drawn values."""

    def of(group: Callable[..., Case]) -> Check:
        name = group.__name__.replace("_", "-")
        return replace(check(doc, st.builds(group, *drawn), only=only)(_examine), name=name)

    return of


@unusual("A group may be empty.", ordinary_groups())
def no_members(case: Case) -> Case:
    """Return a group without members."""
    return Case(case.cluster, GroupSubscription({}))


@unusual("There may be nothing to assign.", _some(TOPICS, least=0), _some(MEMBERS))
def no_partitions(topics: list[str], members: list[str]) -> Case:
    """Return a cluster without topics, or with topics without partitions."""
    return _alike(Cluster(dict.fromkeys(topics, 0)), members, TOPICS)


@unusual("Members may want and claim what does not exist.", ordinary_groups())
def unknown_topics(case: Case) -> Case:
    """Return members that subscribe to unknown topics, and claim unknown partitions."""
    members = {
        m: msgspec.structs.replace(s, topics=("gone", *s.topics), owned=GONE, generation=1)
        for m, s in case.group.items()
    }
    return Case(case.cluster, GroupSubscription(members))


@unusual("There may be more members than partitions.", st.sampled_from(TOPICS), _some(MEMBERS, least=2))
def more_members(topic: str, members: list[str]) -> Case:
    """Return a group with more members than partitions."""
    return _alike(Cluster({topic: 1}), members, [topic])


@unusual("A member may subscribe to nothing.", ordinary_groups(), only=SUBSCRIBERS_ONLY)
def member_without_topics(case: Case) -> Case:
    """Return a group with a member without topics."""
    return Case(case.cluster, GroupSubscription({**case.group, "idle": Subscription(())}))


@unusual("A topic may have no subscriber.", ordinary_groups())
def topic_without_members(case: Case) -> Case:
    """Return a group on a cluster with a topic without subscribers."""
    return Case(Cluster({**case.cluster.topics, "unwanted": 3}), case.group)


@unusual("Names may be any text.", _some(UNICODE), _some(UNICODE))
def unicode_names(topics: list[str], members: list[str]) -> Case:
    """Return names with unusual characters."""
    return _alike(Cluster(dict.fromkeys(topics, 2)), members, topics)


@check(
    "User data of another assignor is no error.",
    st.tuples(ordinary_groups(), st.sampled_from(FOREIGN_USER_DATA)),
)
def foreign_user_data(bench: Bench, drawn: tuple[Case, bytes]) -> None:
    """Try user data of other assignors and of other versions."""
    case, data = drawn
    members = {m: msgspec.structs.replace(s, user_data=data) for m, s in case.group.items()}
    try:
        _examine(bench, Case(case.cluster, GroupSubscription(members)))
    except FaultError as fault:
        reason = f"{fault.reason} (all members sent the user data {data!r})"
        raise FaultError(reason, fault.case, given=fault.given) from fault
