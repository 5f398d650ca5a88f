"""The states of a group: the legal moves, how a group is forgotten, the answers of every state."""

import itertools

import pytest

from coordinator_core.coordinator import classic, facade
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.states import LEGAL_MOVES, GroupState
from coordinator_core.model import Subscription, TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
DAY_MS = 86_400_000
E = ErrorCode

MOVES = {
    (EMPTY, PREPARING),
    (EMPTY, DEAD),
    (PREPARING, COMPLETING),
    (PREPARING, EMPTY),
    (PREPARING, DEAD),
    (COMPLETING, STABLE),
    (COMPLETING, PREPARING),
    (COMPLETING, DEAD),
    (STABLE, PREPARING),
    (STABLE, DEAD),
    (DEAD, DEAD),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(GroupState, GroupState)))
def test_only_legal_moves_are_made(before, after):
    """Given any two states, when a group is to go from one to the other, then it does if the move is in the
    list, and raises if not. PROTOCOL 2.1."""
    group = ClassicGroup("g")
    group.state = before
    assert (after in LEGAL_MOVES[before]) is ((before, after) in MOVES)
    if (before, after) in MOVES:
        group.move_to(after)
        assert (group.previous_state, group.state) == (before, after)
    else:
        with pytest.raises(AssertionError, match=f"from {before.value} to {after.value}"):
            group.move_to(after)
        assert group.state is before


def subscribed(*topics):
    """Return the metadata of a member that subscribes to topics."""
    return encode_subscription(Subscription(topics))


def beat_for(bench, days, *members):
    """Let days pass while the members send heartbeats."""
    for _ in range(int(days * 96)):
        bench.sleep(900_000)
        for member in members:
            bench.beat(member)


def test_offsets_of_topics_that_no_member_subscribes_to_expire(bench):
    """Given a Stable group, then the offsets of topics that no member subscribes to any longer expire seven
    days after their commit, and those of subscribed topics never. PROTOCOL 2.1."""
    leader, follower = bench.stable_group(2, session_ms=1_800_000, metadata=subscribed("t", "u"))
    for topic in ("t", "u", "v"):
        bench.commit(leader, 1, topic=topic)
    bench.join(leader, session_ms=1_800_000, metadata=subscribed("t"))
    bench.join(follower, session_ms=1_800_000, metadata=subscribed("u"))
    bench.settle()
    beat_for(bench, 3, leader, follower)
    bench.commit(leader, topic="w", generation=2)
    beat_for(bench, 4, leader, follower)
    bench.sleep(599_999)
    expected = {"t": 5, "u": 5, "v": -1, "w": 5}
    assert {topic: bench.committed(topic=topic) for topic in expected} == expected
    assert bench.state() is STABLE
    beat_for(bench, 3.01, leader, follower)
    assert bench.committed(topic="w") == -1


@pytest.mark.parametrize(
    ("given", "arrange"),
    [
        ({"metadata": b"t"}, "stable_group"),
        ({"kind": "connect"}, "stable_group"),
        ({}, "preparing_group"),
        ({}, "completing_group"),
    ],
    ids=["unreadable subscriptions", "other members than consumers", "preparing", "completing"],
)
def test_offsets_of_a_group_whose_topics_are_unknown_do_not_expire(make_bench, given, arrange):
    """Given a group in a round, or whose subscriptions the coordinator cannot read, then no offset expires.
    PROTOCOL 2.1."""
    bench = make_bench(offsets_retention_minutes=1, offsets_retention_check_ms=1_000)
    given = {"session_ms": 1_800_000, "rebalance_ms": 1_800_000, "metadata": subscribed("t")} | given
    bench.commit(topic="v")
    getattr(bench, arrange)(2, **given)
    bench.sleep(120_000)
    assert bench.committed(topic="v") == 5


def test_offsets_that_no_member_subscribes_to_expire_after_a_failover(bench):
    """Given a Stable group that another coordinator has loaded, then its offsets expire as before. PROTOCOL
    2.1, 1.3."""
    (member,) = bench.stable_group(1, session_ms=1_800_000, metadata=subscribed("t"))
    bench.commit(member, 1, topic="t")
    bench.commit(member, 1, topic="v")
    bench.start()
    bench.take_over()
    beat_for(bench, 7.1, member)
    assert (bench.committed(topic="t"), bench.committed(topic="v")) == (5, -1)


def test_an_offset_that_is_being_committed_does_not_expire(bench):
    """Given an expired offset, when its next commit is on its way to the log at the check, then it stays.
    PROTOCOL 2.1."""
    bench.commit(topic="t")
    bench.commit(topic="u")
    bench.sleep(7 * DAY_MS - 1)
    bench.holding = True
    assert bench.commit(topic="t", offset=6) is None
    bench.sleep(600_000)
    bench.release()
    assert (bench.committed(topic="t"), bench.committed(topic="u")) == (6, -1)


def test_a_pending_id_keeps_the_group(bench):
    """Given an Empty group with a pending id, at its next retention check, then it stays, and nothing is
    written. PROTOCOL 2.1, 3.4."""
    pending = bench.joined(session_ms=1_800_000).member_id
    bench.sleep(1_200_000)
    assert not any(outcome.appends for outcome in bench.outcomes)
    assert bench.joined(pending, session_ms=1_800_000) is None


def test_expiry_that_cannot_be_written_is_tried_again(bench):
    """PROTOCOL 2.1."""
    bench.commit()
    bench.append_error = E.COORDINATOR_NOT_AVAILABLE
    bench.sleep(8 * DAY_MS)
    assert bench.committed() == 5
    bench.append_error = E.NONE
    bench.sleep(600_000)
    assert bench.coordinator.group_ids() == []


def arranged(make_bench, state):
    """A bench in a state, and its group's leader and follower; no bench for the state of an unknown group."""
    bench = make_bench()
    if state is None:
        return bench, "leader", "follower"
    arrange = {PREPARING: bench.preparing_group, COMPLETING: bench.completing_group}.get(
        state, bench.stable_group
    )
    leader, follower = arrange()
    if state is EMPTY:
        bench.leave(leader, follower)
    if state is DEAD:
        bench.group().move_to(DEAD)
    assert bench.state() is state
    return bench, leader, follower


def first_error(answer):
    """Return the error of a response, or of its first item if every item has an error."""
    match answer:
        case m.OffsetCommitResponse(partitions=items):
            return items[0].error
        case m.DescribeGroupsResponse(groups=items) | m.DeleteGroupsResponse(groups=items):
            return items[0].error
        case m.LeaveGroupResponse(members=(first, *_)):
            return first.error
        case _:
            return answer.error


OFFSETS = (m.OffsetToCommit("t", 0, 5),)
PARTITIONS = (TopicPartition("t", 0),)
REQUESTS = {
    "join": lambda b, leader, follower: b.joined(follower),
    "join of the leader": lambda b, leader, follower: b.joined(leader),
    "join of a stranger": lambda b, leader, follower: b.joined("stranger"),
    "join with no id": lambda b, leader, follower: b.joined(),
    "sync": lambda b, leader, follower: b.synced(follower),
    "sync of a stranger": lambda b, leader, follower: b.synced("stranger"),
    "sync of yesterday": lambda b, leader, follower: b.synced(follower, 0),
    "heartbeat": lambda b, leader, follower: m.HeartbeatResponse(error=b.beat(follower)),
    "heartbeat of a stranger": lambda b, leader, follower: m.HeartbeatResponse(error=b.beat("stranger")),
    "heartbeat of yesterday": lambda b, leader, follower: m.HeartbeatResponse(error=b.beat(follower, 0)),
    "leave": lambda b, leader, follower: b.ask(
        m.LeaveGroupRequest(group_id="g", members=(m.MemberIdentity(follower),))
    ),
    "commit": lambda b, leader, follower: b.ask(
        m.OffsetCommitRequest(
            group_id="g",
            member_id=follower,
            generation_id=b.group().generation if b.group() else 1,
            offsets=OFFSETS,
        )
    ),
    "simple commit": lambda b, leader, follower: b.ask(m.OffsetCommitRequest(group_id="g", offsets=OFFSETS)),
    "commit in a transaction": lambda b, leader, follower: m.HeartbeatResponse(
        error=b.commit_in_transaction(follower, b.group().generation if b.group() else 1)
    ),
    "simple commit in a transaction": lambda b, leader, follower: m.HeartbeatResponse(
        error=b.commit_in_transaction()
    ),
    "fetch": lambda b, leader, follower: b.ask(m.OffsetFetchRequest(group_id="g", partitions=PARTITIONS)),
    "describe": lambda b, leader, follower: b.ask(m.DescribeGroupsRequest(group_ids=("g",))),
    "list": lambda b, leader, follower: b.ask(m.ListGroupsRequest()),
    "delete": lambda b, leader, follower: b.ask(m.DeleteGroupsRequest(group_ids=("g",))),
    "offset delete": lambda b, leader, follower: b.ask(
        m.OffsetDeleteRequest(group_id="g", partitions=PARTITIONS)
    ),
}
PARKED = None
UNKNOWN, ILLEGAL, ROUND = E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS
NEW, GONE, NOT_FOUND = E.MEMBER_ID_REQUIRED, E.COORDINATOR_NOT_AVAILABLE, E.GROUP_ID_NOT_FOUND
ANSWERS = {  # for an unknown group, Empty, PreparingRebalance, CompletingRebalance, Stable
    "join": (UNKNOWN, UNKNOWN, E.NONE, E.NONE, E.NONE),
    "join of the leader": (UNKNOWN, UNKNOWN, PARKED, E.NONE, PARKED),
    "join of a stranger": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "join with no id": (NEW, NEW, NEW, NEW, NEW),
    "sync": (UNKNOWN, UNKNOWN, ROUND, PARKED, E.NONE),
    "sync of a stranger": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "sync of yesterday": (UNKNOWN, UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL),
    "heartbeat": (UNKNOWN, UNKNOWN, ROUND, E.NONE, E.NONE),
    "heartbeat of a stranger": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "heartbeat of yesterday": (UNKNOWN, UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL),
    "leave": (UNKNOWN, UNKNOWN, E.NONE, E.NONE, E.NONE),
    "commit": (NOT_FOUND, UNKNOWN, E.NONE, ROUND, E.NONE),
    "simple commit": (E.NONE, E.NONE, UNKNOWN, UNKNOWN, UNKNOWN),
    "commit in a transaction": (ILLEGAL, UNKNOWN, E.NONE, E.NONE, E.NONE),
    "simple commit in a transaction": (E.NONE, E.NONE, E.NONE, E.NONE, E.NONE),
    "fetch": (E.NONE, E.NONE, E.NONE, E.NONE, E.NONE),
    "describe": (NOT_FOUND, E.NONE, E.NONE, E.NONE, E.NONE),
    "list": (E.NONE, E.NONE, E.NONE, E.NONE, E.NONE),
    "delete": (NOT_FOUND, E.NONE, E.NON_EMPTY_GROUP, E.NON_EMPTY_GROUP, E.NON_EMPTY_GROUP),
    "offset delete": (NOT_FOUND, E.NONE, E.NONE, E.NONE, E.NONE),
}
TABLE = [
    pytest.param(request, state, answer, id=f"{request}, {state.value if state else 'unknown group'}")
    for request, answers in ANSWERS.items()
    for state, answer in zip((None, EMPTY, PREPARING, COMPLETING, STABLE), answers, strict=True)
]


@pytest.mark.parametrize(("request_", "state", "answer"), TABLE)
def test_each_state_answers_each_request_as_documented(make_bench, request_, state, answer):
    """Given a group in a state, when a request of a kind comes, then its answer is the one in the table, or
    it is parked. PROTOCOL 3.2, 3.9, 4.1, 5.1, 7.1, 7.3, C-20, C-22, C-24, C-32, C-33, C-34, C-35."""
    bench, leader, follower = arranged(make_bench, state)
    reply = REQUESTS[request_](bench, leader, follower)
    assert (reply if reply is None else first_error(reply)) is answer


@pytest.mark.parametrize(
    "request_", ["join", "join of a stranger", "join with no id", "sync", "heartbeat", "leave", "commit"]
)
def test_a_dead_group_is_not_available(make_bench, request_):
    """Given Dead, then COORDINATOR_NOT_AVAILABLE for all requests. PROTOCOL 4.1, 5.1, C-22, C-32."""
    bench, leader, follower = arranged(make_bench, DEAD)
    assert first_error(REQUESTS[request_](bench, leader, follower)) is GONE


def test_a_newer_join_supersedes_the_parked_one(bench):
    """Given a parked join, when the member joins again, then the first request is superseded, and the second
    is answered when the round is complete."""
    _, follower, last = bench.preparing_group(3)
    first, second = bench.join(follower), bench.join(follower)
    assert (bench.superseded, bench.open_requests() & {first, second}) == ({first}, {second})
    bench.join(last)
    assert bench.replies[second].error is E.NONE
    assert bench.superseded == {first}


def test_a_newer_sync_supersedes_the_parked_one(bench):
    """The same for syncs, which are answered when the assignment is stored."""
    leader, follower = bench.completing_group()
    first, second = bench.sync(follower), bench.sync(follower)
    assert (bench.superseded, bench.open_requests() & {first, second}) == ({first}, {second})
    bench.sync(leader)
    assert bench.replies[second].error is E.NONE
    assert bench.superseded == {first}


def test_the_table_has_every_request_that_has_a_handler(make_bench, monkeypatch):
    """A request kind that is added shows up here."""
    bench, leader, follower = arranged(make_bench, STABLE)
    sent, send = set(), bench.send

    def noting(request, *given):
        sent.add(type(request))
        return send(request, *given)

    monkeypatch.setattr(bench, "send", noting)
    for ask in REQUESTS.values():
        ask(bench, leader, follower)
    assert sent == {
        *facade.OFFSET_ROWS,
        *classic.PART.requests,
        m.DescribeGroupsRequest,
        m.ListGroupsRequest,
        m.DeleteGroupsRequest,
    }
