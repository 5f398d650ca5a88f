"""Groups of real clients and of our own consumer on the embedded broker, each client in a separate process.

Each client reports the partitions that it owns. The strategies of the registry compute the expected owners
from the member ids.
"""

import logging

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.model import Cluster, GroupSubscription, Subscription
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.simulation.process.clients import CLIENTS
from tests.rebalance_kafka.peers import missing, wait_until
from tests.rebalance_kafka.peers.stage import DESCRIBING, GROUP, Stage

pytestmark = pytest.mark.peer

TOPICS = {"invoices": 5, "orders": 7}
KINDS = ("kafka-python", "aiokafka", "confluent", "java", "kafkajs", "platformatic", "rebalance-lab")
EAGER_STRATEGIES = ("range", "roundrobin")
RECORDS = 60
GONE = ("revoked", "lost")


def where_there_is(*kinds, name=None):
    """Return a parameter that is skipped if one of the clients is missing."""
    needed = dict.fromkeys((*kinds, f"{DESCRIBING}-tool"))
    reasons = [reason for kind in needed if (reason := missing(kind))]
    marks = pytest.mark.skipif(bool(reasons), reason="; ".join(reasons) or "all there")
    return pytest.param(kinds, marks=marks, id=name or "+".join(kinds))


KAFKA_TS_STRATEGY = "RoundRobinAssigner"


@pytest.fixture
def stage(tmp_path, caplog):
    """A stage whose broker logs no warning during the test."""
    with Stage(tmp_path, TOPICS) as stage:
        yield stage
    complaints = [r for r in caplog.get_records("call") if r.levelno >= logging.WARNING]
    assert [r.getMessage() for r in complaints] == []


def by_strategy(strategy, members):
    """Return the expected partitions of each member."""
    ids = {peer: member_id(peer) for peer in members}
    group = GroupSubscription({mine: Subscription(tuple(sorted(TOPICS))) for mine in ids.values()})
    given = compute_assignment(default_registry().assignor(strategy), Cluster(TOPICS), group)
    return {peer: frozenset(given[mine]) for peer, mine in ids.items()}


def member_id(peer):
    return peer.membership().member_id


def settled_by(strategy, members, stage):
    owners = stage.stable(members)
    assert strategy == KAFKA_TS_STRATEGY or owners == by_strategy(strategy, members)
    return owners


def produce(tool, stage, first):
    """Produce numbered records to all partitions in turn."""
    answer = tool.ask("produce", partitions=sorted(stage.everything), count=RECORDS, first=first)
    return {tuple(record) for record in answer["records"]}


def consume(members, wanted):
    """Wait until the members have consumed the records. Return the records of each member."""
    consumed = {peer: [] for peer in members}

    def all_there():
        for peer in members:
            consumed[peer] += map(tuple, peer.ask("records")["records"])
        return sum(map(len, consumed.values())) >= len(wanted)

    wait_until(all_there, what=f"that {len(wanted)} records are consumed")
    return consumed


def consumed_by_owners(tool, stage, owners, first):
    """Check that each new record is consumed once, by the owner of its partition, and committed."""
    produced = produce(tool, stage, first)
    consumed = consume(owners, produced)
    for peer, mine in owners.items():
        assert sorted(consumed[peer]) == sorted(r for r in produced if r[:2] in mine), peer
        peer.ask("commit")
        ends = {(t, p): max(offset for *at, offset, _ in produced if at == [t, p]) + 1 for t, p in mine}
        assert {(t, p): offset for t, p, offset in peer.ask("committed")["committed"]} == ends


def lives_and_leaves(stage, kinds, strategy):
    """Let members join, consume, commit and leave one by one, and check each step."""
    tool = stage.tool(DESCRIBING)
    members = [stage.member(kinds[0], strategy)]
    settled_by(strategy, members, stage)
    members += [stage.member(kind, strategy) for kind in kinds[1:]]
    for left in range(len(kinds)):
        owners = settled_by(strategy, members, stage)
        assert stage.described().protocol == strategy
        consumed_by_owners(tool, stage, owners, first=left * RECORDS)
        assert members.pop(0).close()["records"] == []
    wait_until(lambda: stage.described().state == "EMPTY", what="that the group is empty")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", EAGER_STRATEGIES)
@pytest.mark.parametrize("kinds", [where_there_is(*KINDS)])
def test_a_group_of_all_kinds_owns_what_the_strategy_gives(stage, kinds, strategy):
    lives_and_leaves(stage, kinds, strategy)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "library"),
    [
        pytest.param(*where_there_is(kind, kind).values, name, marks=where_there_is(kind).marks, id=name)
        for kind, name in (
            ("kafka-python", "kafka-python"),
            ("confluent", "librdkafka"),
            ("rebalance-lab", "rebalance-lab"),
        )
    ],
)
def test_a_session_expires_in_a_call_if_the_facts_of_the_library_have_no_heartbeats_in_calls(
    stage, kinds, library
):
    """The call takes longer than the session, and less than the rebalance timeout. aiokafka has only one."""
    options = {"session_timeout_ms": 1_500, "revoke_seconds": 4.0}
    slow = stage.member(kinds[0], "range", **options)
    settled_by("range", [slow], stage)
    quick = stage.member(kinds[1], "range", session_timeout_ms=1_500)
    wait_until(lambda: quick.membership().owned, what="that the other member owns partitions")
    events = [line.event for line in stage.broker.trace(GROUP).events]
    reasons = [event.reason for event in events if isinstance(event, ev.MemberRemoved)]
    assert reasons == ([] if CLIENTS[library].beats_in_revoked else ["session expired"])


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [where_there_is("kafka-ts", "kafka-ts", "kafka-ts", name="kafka-ts")])
def test_a_group_with_a_strategy_of_its_own_owns_everything(stage, kinds):
    lives_and_leaves(stage, kinds, KAFKA_TS_STRATEGY)


def gone_since_asked(peer):
    events = peer.ask("events")["events"]
    return {tuple(p) for event in events if event["event"] in GONE for p in event["partitions"]}


def is_balanced(owners):
    sizes = [len(mine) for mine in owners.values()]
    return max(sizes) - min(sizes) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [
        where_there_is("kafka-python", "confluent", "kafka-python", "confluent"),
        where_there_is("kafka-python", "confluent", "rebalance-lab", "kafka-python", "confluent"),
    ],
)
def test_a_cooperative_group_revokes_only_partitions_that_move(stage, kinds):
    members, before = [], {}
    tool = stage.tool(DESCRIBING)
    for kind in kinds:
        members.append(stage.member(kind, "cooperative-sticky"))
        owners = stage.stable(members)
        assert is_balanced(owners)
        for peer, had in before.items():
            assert owners[peer] <= had
            assert gone_since_asked(peer) == had - owners[peer]
        before = owners
    consumed_by_owners(tool, stage, before, first=0)
    while len(members) > 1:
        members.pop(0).close()
        owners = stage.stable(members)
        assert is_balanced(owners)
        for peer in members:
            assert owners[peer] >= before[peer]
            assert gone_since_asked(peer) == set()
        before = owners


@pytest.mark.killed
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [where_there_is(*KINDS)])
def test_partitions_of_crashed_members_go_to_the_others(stage, kinds):
    members = [stage.member(kind, "range", session_timeout_ms=3_000) for kind in kinds]
    settled_by("range", members, stage)
    for crashed in (members.pop(), members.pop(0)):
        crashed.kill()
    settled_by("range", members, stage)


def static_members(stage, kind, session_timeout_ms):
    names = ("ada", "ben", "cyd")
    return {name: static_member(stage, kind, name, session_timeout_ms) for name in names}


def static_member(stage, kind, name, session_timeout_ms):
    return stage.member(kind, "range", name=name, instance_id=name, session_timeout_ms=session_timeout_ms)


@pytest.mark.killed
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [where_there_is("confluent")])
def test_a_static_member_that_restarts_in_time_causes_no_rebalance(stage, kinds):
    members = static_members(stage, *kinds, session_timeout_ms=30_000)
    before = settled_by("range", list(members.values()), stage)
    others = [members["ada"], members["cyd"]]
    generations = [peer.membership().generation for peer in others]
    for peer in others:
        peer.ask("events")
    owned = before[members["ben"]]
    members["ben"].kill()
    back = static_member(stage, *kinds, "ben", session_timeout_ms=30_000)
    after = stage.stable([*others, back])
    assert after == {**{peer: before[peer] for peer in others}, back: owned}
    assert [peer.membership().generation for peer in others] == generations
    assert [peer.ask("events")["events"] for peer in others] == [[], []]
