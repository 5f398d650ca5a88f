"""Requests and responses of a run in words, and what they are not part of: the trace."""

import re

import pytest

from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.verdicts.messages import is_quiet, message, together
from rebalance_lab.verdicts.story import story
from tests.coordinator_core.families import toy
from tests.rebalance_lab.traces.traces import trace_of

JOIN = JoinGroupRequest(
    group_id="g", session_timeout_ms=1, rebalance_timeout_ms=1, reason="it gave up partitions: 1"
)
COMMIT = OffsetCommitRequest(
    group_id="g", generation_id=4, offsets=tuple(OffsetToCommit("t", n, 7) for n in range(3))
)
MEMBER = JoinGroupMember("a", None, b"")


def exchange(request, response=None, *, after_ms=5):
    made = Exchange("c1", 0, request, 1_000)
    if response is not None:
        made.answer(response, now_ms=1_000 + after_ms)
    return made


@pytest.mark.parametrize(
    ("request_", "response", "expected"),
    [
        (
            JOIN,
            JoinGroupResponse(error=ErrorCode.NONE, generation_id=5, leader="a", members=(MEMBER,)),
            "c1 JoinGroup (it gave up partitions: 1): NONE after 5 ms, generation 5, leads 1 member",
        ),
        (
            JOIN,
            JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED),
            "c1 JoinGroup (it gave up partitions: 1): MEMBER_ID_REQUIRED after 5 ms",
        ),
        (
            SyncGroupRequest(
                group_id="g", generation_id=5, member_id="a", assignments=(SyncGroupAssignment("a", b""),)
            ),
            SyncGroupResponse(error=ErrorCode.NONE, assignment=b"?"),
            "c1 SyncGroup (generation 5, assignments of 1 member): NONE after 5 ms, an unreadable assignment",
        ),
        (
            LeaveGroupRequest(group_id="g", members=(MemberIdentity("a", None, "closing"),)),
            LeaveGroupResponse(
                error=ErrorCode.NONE,
                members=(LeaveGroupMemberResponse("a", None, ErrorCode.UNKNOWN_MEMBER_ID),),
            ),
            "c1 LeaveGroup (closing): UNKNOWN_MEMBER_ID (1) after 5 ms",
        ),
        (
            COMMIT,
            OffsetCommitResponse(
                partitions=tuple(PartitionError("t", n, ErrorCode.ILLEGAL_GENERATION) for n in range(3))
            ),
            "c1 OffsetCommit (generation 4, 3 partitions): ILLEGAL_GENERATION (3) after 5 ms",
        ),
        (
            HeartbeatRequest(group_id="g", generation_id=4, member_id="a"),
            HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS),
            "c1 Heartbeat (generation 4): REBALANCE_IN_PROGRESS after 5 ms",
        ),
        (JOIN, None, "c1 JoinGroup (it gave up partitions: 1): no response"),
    ],
)
def test_a_message_has_its_request_its_code_and_its_latency(request_, response, expected):
    assert str(message(exchange(request_, response))) == expected


def test_a_latency_of_seconds_is_written_in_seconds():
    response = FindCoordinatorResponse(error=ErrorCode.NONE, node=1)
    late = exchange(FindCoordinatorRequest(key="g"), response, after_ms=1_720)
    assert str(message(late)) == "c1 FindCoordinator: NONE after 1.72 s"


def test_a_duplicate_of_a_response_changes_nothing():
    made = exchange(COMMIT, OffsetCommitResponse())
    made.answer(OffsetCommitResponse(partitions=(PartitionError("t", 0, ErrorCode.NONE),)), now_ms=9_000)
    assert (made.answered_ms, made.response) == (1_005, OffsetCommitResponse())


def test_heartbeats_and_commits_without_an_error_are_no_news_and_joins_are():
    ok = ErrorCode.NONE
    heartbeat = HeartbeatRequest(group_id="g", generation_id=4, member_id="a")
    quiet = exchange(heartbeat, HeartbeatResponse(error=ok))
    assert is_quiet(quiet)
    assert is_quiet(exchange(COMMIT, OffsetCommitResponse(partitions=(PartitionError("t", 0, ok),))))
    assert not is_quiet(exchange(heartbeat))
    assert not is_quiet(exchange(heartbeat, HeartbeatResponse(error=ErrorCode.UNKNOWN_MEMBER_ID)))
    assert not is_quiet(exchange(JOIN, JoinGroupResponse(error=ok)))
    assert together([quiet, exchange(COMMIT, OffsetCommitResponse()), quiet]) == (
        "2 Heartbeat, 1 OffsetCommit: NONE"
    )
    assert together([quiet]) == "c1 Heartbeat (generation 4): NONE after 5 ms"


def test_many_messages_of_a_kind_are_described_together():
    join = [exchange(JOIN, JoinGroupResponse(error=ErrorCode.NONE, generation_id=5)) for _ in range(3)]
    join[1].client = "c2"
    expected = "3 JoinGroup (it gave up partitions: 1) of 2 members: NONE, generation 5"
    assert together(join) == expected
    heartbeat = HeartbeatRequest(group_id="g", generation_id=4, member_id="a")
    rebalances = [
        exchange(heartbeat, HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS)) for _ in range(30)
    ]
    trace = trace_of(topics={"t": 1})
    few = [str(prefix + body) for prefix, body, *_ in story(trace, [*join, *rebalances[:5]])]
    many = [str(prefix + body).strip() for prefix, body, *_ in story(trace, [*join, *rebalances])]
    assert len(few) == 4 + 8
    assert many[2:-2] == [
        f"0:00:01.000    {expected}",
        "0:00:01.000    30 Heartbeat (generation 4) of 1 member: REBALANCE_IN_PROGRESS",
    ]


# --- of a run

DOCUMENT = {
    "name": "three",
    "duration": "1m",
    "topics": {"t": {"partitions": 6, "rate": 60}},
    "members": [{"id": "c", "count": 3, "topics": ["t"]}],
    "events": [{"at": "30s", "leave": "c-1"}],
}


def ran(strategy="range", registry=None, **changes):
    registry = registry or default_registry()
    exchanges = []
    scenario = parse_scenario({**DOCUMENT, **changes}, where="test", registry=registry)
    trace = simulate(scenario, strategy, registry, exchanged=exchanges.append)
    assert trace.encode() == simulate(scenario, strategy, registry).encode()
    return trace, exchanges


def test_an_observer_sees_each_request_that_the_trace_counts_and_changes_nothing():
    trace, exchanges = ran()
    assert len(exchanges) == sum(trace.ended.messages.values())
    assert [e.sent_ms for e in exchanges] == sorted(e.sent_ms for e in exchanges)
    assert all(e.answered_ms > e.sent_ms for e in exchanges if e.response is not None)
    unanswered = [e for e in exchanges if e.response is None]
    assert all(e.sent_ms > 59_000 for e in unanswered)


def test_messages_stand_in_the_story_in_the_order_of_their_times():
    trace, exchanges = ran()
    lines = [str(prefix + body) for prefix, body, *_ in story(trace, exchanges)]
    times = [line[:12] for line in lines if line[:12].strip()[:2] == "0:"]
    assert times == sorted(times)
    leave = next(i for i, line in enumerate(lines) if "leave c-1" in line)
    ends = next(
        i for i, line in enumerate(lines) if "c-1 LeaveGroup (the consumer is being closed): NONE" in line
    )
    begins = next(i for i, line in enumerate(lines) if "generation 2 (range)" in line)
    hears = next(i for i, line in enumerate(lines) if "(generation 1): REBALANCE_IN_PROGRESS" in line)
    assert leave < ends < begins < hears
    assert sum("SyncGroup (generation 2" in line for line in lines) == 2
    assert any(re.search(r"\d+ Heartbeat, .*\d+ OffsetCommit.*: NONE, until 0:00:", line) for line in lines)
    without = [str(prefix + body) for prefix, body, *_ in story(trace)]
    assert [line for line in lines if line[12:16] != " " * 4 or line[:12] == " " * 12] == without


def test_a_lost_request_has_no_response():
    _, exchanges = ran(network={"loss": 0.2})
    lost = [e for e in exchanges if e.response is None and e.sent_ms < 20_000]
    assert lost
    assert {message(e).error for e in lost} == {"no response"}


def test_messages_of_another_family_are_described_too():
    registry = installed_registry()
    registry.register(toy, name="toy")
    _, exchanges = ran("range+toy", registry)
    asked = [e for e in exchanges if isinstance(e.request, toy.ToyRequest)]
    assert asked
    assert message(asked[0]).request == "Toy"
    assert message(asked[0]).error == "NONE"


FAMILY = {**DOCUMENT, "members": [{"id": "c", "count": 2, "topics": ["t"]}]}


def words(strategy, event):
    _, exchanges = ran(strategy, members=FAMILY["members"], events=[{"at": "30s", **event}])
    return [str(message(e)) for e in exchanges], exchanges


def test_messages_to_a_registry_are_told_in_its_words():
    said, exchanges = words("watcher", {"leave": "c-1"})
    assert any(re.fullmatch(r"c-\d Create \(\d nodes\): \d nodes exist after \d ms", text) for text in said)
    assert any(re.fullmatch(r"c-\d Delete \(\d nodes\): NONE after \d ms", text) for text in said)
    waiting = [e for e in exchanges if e.response is None and type(e.request).__name__ == "WatchRequest"]
    assert "c-0 Watch (/consumers/three/ids): no change yet" in [str(message(e)) for e in waiting]
    assert all(is_quiet(e) for e in waiting)
    assert together(waiting) == f"{len(waiting)} waiting Watch: NONE"
    closed = [e for e in exchanges if type(e.request).__name__ == "CloseSessionRequest"]
    assert len(closed) == 1
    assert not is_quiet(closed[0])


def test_a_session_that_has_expired_is_told():
    said, _ = words("watcher", {"freeze": "c-1", "for": "12s"})
    assert any(re.fullmatch(r"c-1 \w+( \(.*\))?: session expired after \S+ m?s", text) for text in said)


def test_messages_to_brokers_that_list_members_are_told_in_their_words():
    said, exchanges = words("rocketmq", {"leave": "c-1"})
    assert any(re.fullmatch(r"c-\d MemberList: NONE after \d ms, 2 members", text) for text in said)
    assert {message(e).error for e in exchanges if e.response is None and e.request.waits} == {
        "no change yet"
    }
    assert sum("MemberGone" in text for text in said) == 3


def test_joins_of_a_group_whose_coordinator_assigns_are_news():
    _, exchanges = words("range+server-side", {"leave": "c-1"})
    joins = [e for e in exchanges if type(e.request).__name__ == "JoinRequest"]
    assert joins
    assert not any(is_quiet(e) for e in joins)
