"""Requests and responses of a run in words, and what they are not part of: the trace."""

import re

from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
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
from tests.approved import approved
from tests.coordinator_core.families import toy
from tests.rebalance_lab.traces.traces import trace_of

JOIN = JoinGroupRequest(
    group_id="g", session_timeout_ms=1, rebalance_timeout_ms=1, reason="it gave up partitions: 1"
)
COMMIT = OffsetCommitRequest(
    group_id="g", generation_id=4, offsets=tuple(OffsetToCommit("t", n, 7) for n in range(3))
)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=4, member_id="a")
MEMBER = JoinGroupMember("a", None, b"")


def exchange(request, response=None, *, after_ms=5):
    made = Exchange("c1", 0, request, 1_000)
    if response is not None:
        made.answer(response, now_ms=1_000 + after_ms)
    return made


MESSAGES = {
    "the leader joins": exchange(
        JOIN, JoinGroupResponse(error=ErrorCode.NONE, generation_id=5, leader="a", members=(MEMBER,))
    ),
    "an error": exchange(JOIN, JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED)),
    "an assignment that cannot be read": exchange(
        SyncGroupRequest(
            group_id="g", generation_id=5, member_id="a", assignments=(SyncGroupAssignment("a", b""),)
        ),
        SyncGroupResponse(error=ErrorCode.NONE, assignment=b"?"),
    ),
    "an error of an entry": exchange(
        LeaveGroupRequest(group_id="g", members=(MemberIdentity("a", None, "closing"),)),
        LeaveGroupResponse(
            error=ErrorCode.NONE,
            members=(LeaveGroupMemberResponse("a", None, ErrorCode.UNKNOWN_MEMBER_ID),),
        ),
    ),
    "errors of entries": exchange(
        COMMIT,
        OffsetCommitResponse(
            partitions=tuple(PartitionError("t", n, ErrorCode.ILLEGAL_GENERATION) for n in range(3))
        ),
    ),
    "seconds": exchange(HEARTBEAT, HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS), after_ms=1_720),
    "nothing comes back": exchange(JOIN),
    "a heartbeat": exchange(HEARTBEAT, HeartbeatResponse(error=ErrorCode.NONE)),
    "a commit": exchange(COMMIT, OffsetCommitResponse(partitions=(PartitionError("t", 0, ErrorCode.NONE),))),
}
LEAVES, FREEZES = {"leave": "c-1"}, {"freeze": "c-1", "for": "12s"}
RUNS = {
    "range, a member leaves": ("range", LEAVES),
    "range, requests are lost": ("range", LEAVES, {"loss": 0.2}),
    "range+server-side, a member leaves": ("range+server-side", LEAVES),
    "watcher, a member leaves": ("watcher", LEAVES),
    "watcher, a member freezes": ("watcher", FREEZES),
    "rocketmq, a member leaves": ("rocketmq", LEAVES),
}


def test_messages_are_described_as_approved():
    """Of runs each kind once, with N in place of numbers. Those that are no news have a ~."""

    def described(each):
        return f"{'~' if is_quiet(each) else ' '} {message(each)}"

    texts = {title: described(each) for title, each in MESSAGES.items()}
    for title, (strategy, event, *network) in RUNS.items():
        changes = {"network": network[0]} if network else {}
        members = [{"id": "c", "count": 2, "topics": ["t"]}]
        _, exchanges = ran(strategy, members=members, events=[{"at": "30s", **event}], **changes)
        kinds = {re.sub(r"\d+(\.\d+)?( m?s)?", "N", described(each)) for each in exchanges}
        texts[title] = "\n".join(sorted(kinds))
    approved("messages", texts)


def test_quiet_messages_are_counted_together():
    quiet = [MESSAGES[title] for title in ("a heartbeat", "a commit", "a heartbeat")]
    assert together(quiet) == "2 Heartbeat, 1 OffsetCommit: NONE"
    assert together(quiet[:1]) == "c1 Heartbeat (generation 4): NONE after 5 ms"


def test_a_duplicate_of_a_response_changes_nothing():
    made = exchange(COMMIT, OffsetCommitResponse())
    made.answer(OffsetCommitResponse(partitions=(PartitionError("t", 0, ErrorCode.NONE),)), now_ms=9_000)
    assert (made.answered_ms, made.response) == (1_005, OffsetCommitResponse())


def test_many_messages_of_a_kind_are_described_together():
    join = [exchange(JOIN, JoinGroupResponse(error=ErrorCode.NONE, generation_id=5)) for _ in range(3)]
    join[1].client = "c2"
    expected = "3 JoinGroup (it gave up partitions: 1) of 2 members: NONE, generation 5"
    assert together(join) == expected
    rebalances = [
        exchange(HEARTBEAT, HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS)) for _ in range(30)
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


def test_messages_of_another_family_are_described_too():
    registry = installed_registry()
    registry.register(toy, name="toy")
    _, exchanges = ran("range+toy", registry)
    asked = [e for e in exchanges if isinstance(e.request, toy.ToyRequest)]
    assert asked
    assert message(asked[0]).request == "Toy"
    assert message(asked[0]).error == "NONE"
