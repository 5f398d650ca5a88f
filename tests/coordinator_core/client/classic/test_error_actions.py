"""The matrix of errors: the action of a consumer for each request and each error (C-46)."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, cooperative

UNJOINED, PREPARING = MemberState.UNJOINED, MemberState.PREPARING_REBALANCE
COMPLETING, STABLE = MemberState.COMPLETING_REBALANCE, MemberState.STABLE

# What becomes of a consumer that was m1 in generation 1 and owns t-0: its state, generation and member id,
# whether it joins again at the next poll or after the backoff, and whether it looks for its coordinator.
KEPT_WAITS = "kept, after the backoff"
REDISCOVERS = "kept, at another coordinator"
REJOINS = "kept, rejoins at once"
NO_GENERATION = "keeps its id only"
NOBODY = "keeps nothing"
ENDS = "ends"
NOTHING = "goes on"

SHARED = {
    "COORDINATOR_NOT_AVAILABLE": REDISCOVERS,
    "NOT_COORDINATOR": REDISCOVERS,
    "REQUEST_TIMED_OUT": REDISCOVERS,
    "COORDINATOR_LOAD_IN_PROGRESS": KEPT_WAITS,
    "UNKNOWN_SERVER_ERROR": KEPT_WAITS,
    "UNKNOWN_MEMBER_ID": NOBODY,
    "ILLEGAL_GENERATION": NO_GENERATION,
    "REBALANCE_IN_PROGRESS": REJOINS,
}
IN_THE_BACKGROUND = SHARED | {"COORDINATOR_LOAD_IN_PROGRESS": NOTHING, "UNKNOWN_SERVER_ERROR": NOTHING}
MATRIX = {
    "join": SHARED | {"REBALANCE_IN_PROGRESS": KEPT_WAITS, "MEMBER_ID_REQUIRED": NO_GENERATION},
    "sync": SHARED,
    "heartbeat": IN_THE_BACKGROUND,
    "commit": IN_THE_BACKGROUND
    | {"GROUP_ID_NOT_FOUND": NO_GENERATION}
    | dict.fromkeys(
        ("UNKNOWN_TOPIC_OR_PARTITION", "OFFSET_METADATA_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED"), NOTHING
    ),
}
KINDS = {
    "join": m.JoinGroupRequest,
    "sync": m.SyncGroupRequest,
    "heartbeat": m.HeartbeatRequest,
    "commit": m.OffsetCommitRequest,
}


def member_with_request(kind):
    """Return a member of generation 1 that owns t-0 and has a request in flight."""
    bench = cooperative(enable_auto_commit=False).stable(T0)
    if kind == "heartbeat":
        bench.sleep(3_000)
    elif kind == "commit":
        bench.call("commit", {T0: 5})
    else:
        bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
        bench.polls()
        if kind == "sync":
            bench.respond_to_join(generation=1)
    return bench


@pytest.mark.parametrize("error", [error for error in ErrorCode if error is not ErrorCode.NONE])
@pytest.mark.parametrize("kind", MATRIX)
def test_each_error_of_each_request_has_its_consequence(kind, error):
    """Given a member that owns a partition, when a request is refused, then the matrix says what the consumer
    does: end, continue, wait, find its coordinator, or rejoin, with or without generation and id. The
    partition is lost exactly if the generation is. PROTOCOL 9.9, 9.5, C-46, C-35, C-48."""
    consequence = MATRIX[kind].get(error.name, ENDS)
    bench = member_with_request(kind)
    finds = len(bench.requests(m.FindCoordinatorRequest))
    before = bench.state
    bench.refuse(KINDS[kind], error)
    if consequence is ENDS:
        assert bench.client.failure is not None
        assert error.name in bench.client.failure
        assert not bench.client.wants_poll
        return
    assert bench.client.failure is None
    if consequence is NOTHING:
        assert (bench.state, bench.client.wants_poll) == (before, False)
        return
    if kind in ("heartbeat", "commit") and consequence is REDISCOVERS:
        bench.sleep(0)
        assert len(bench.requests(m.FindCoordinatorRequest)) == finds + 1
        assert bench.state is STABLE
        return
    now = bench.now_ms
    bench.sleep(200, polling=True)
    join = bench.join()
    waits = consequence in (KEPT_WAITS, REDISCOVERS)
    assert bench.now_ms - now == 200
    assert (len(bench.requests(m.FindCoordinatorRequest)) == finds + 1) is (consequence is REDISCOVERS)
    joined = bench.subscription()
    id_kept = {NOBODY: "", NO_GENERATION: "given" if error.name == "MEMBER_ID_REQUIRED" else "m1"}
    assert join.member_id == id_kept.get(consequence, "m1")
    lost = consequence in (NOBODY, NO_GENERATION)
    assert joined.generation == (-1 if lost else 1)
    if error is not ErrorCode.MEMBER_ID_REQUIRED:
        assert bench.owned == ([] if lost else [T0])
    assert not waits or bench.state is PREPARING


@pytest.mark.parametrize("kind", ["join", "sync"])
@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, False),
        (ErrorCode.ILLEGAL_GENERATION, False),
    ],
)
def test_only_a_transient_error_delays_the_next_join(kind, error, waits):
    """Given a refused join or sync, then the next join is sent at once, or after the backoff if the error is
    transient. PROTOCOL 9.10, C-46."""
    bench = member_with_request(kind)
    bench.refuse(KINDS[kind], error)
    bench.sleep(99, polling=True)
    assert bool(bench.pending(m.JoinGroupRequest)) is not waits
    bench.sleep(1, polling=True)
    assert bench.pending(m.JoinGroupRequest)


def test_a_sync_refused_for_a_rebalance_keeps_generation_and_partitions():
    """Given REBALANCE_IN_PROGRESS for a sync, then nothing is revoked or lost, and the join contains both.
    PROTOCOL 9.9, C-48."""
    bench = member_with_request("sync")
    bench.refuse(m.SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.state is COMPLETING
    bench.polls()
    assert (bench.owned, bench.subscription().owned, bench.subscription().generation) == ([T0], {T0}, 1)
    assert bench.calls == [("assigned", [T0])]


def test_the_refusal_of_a_join_of_an_earlier_generation_changes_nothing():
    """Given a join in flight, when a late heartbeat has reset the member, then UNKNOWN_MEMBER_ID for the join
    resets nothing more. C-46."""
    bench = cooperative(enable_auto_commit=False).stable(T0)
    bench.sleep(3_000)
    late = bench.sent(m.HeartbeatRequest)
    bench.subscribe("t", "u")
    bench.polls()
    bench.refuse(late, ErrorCode.ILLEGAL_GENERATION)
    assert (bench.state, bench.client.generation.member_id) == (UNJOINED, "m1")
    bench.refuse(m.JoinGroupRequest, ErrorCode.UNKNOWN_MEMBER_ID)
    bench.polls()
    assert bench.join().member_id == "m1"


@pytest.mark.parametrize("kind", ["join", "sync"])
def test_a_fenced_join_or_sync_of_an_earlier_generation_ends_the_consumer(kind):
    """Given a join or sync in flight, when a heartbeat has reset the member and then the request is fenced,
    then the consumer ends and does not take its instance id back. C-46, C-45."""
    bench = cooperative(enable_auto_commit=False, group_instance_id="i1").stable(T0)
    bench.sleep(3_000)
    late = bench.sent(m.HeartbeatRequest)
    bench.subscribe("t", "u")
    bench.polls()
    if kind == "sync":
        bench.accept(late)
        bench.respond_to_join(generation=2)
        bench.sleep(3_000)
        late = bench.sent(m.HeartbeatRequest)
    bench.refuse(late, ErrorCode.UNKNOWN_MEMBER_ID)
    bench.refuse(KINDS[kind], ErrorCode.FENCED_INSTANCE_ID)
    joins = len(bench.requests(m.JoinGroupRequest))
    assert "FENCED_INSTANCE_ID" in bench.client.failure
    bench.sleep(60_000, polling=True)
    assert len(bench.requests(m.JoinGroupRequest)) == joins


def test_a_join_refused_for_a_rebalance_is_repeated_after_the_backoff():
    """PROTOCOL 9.10, C-46."""
    bench = member_with_request("join")
    bench.refuse(m.JoinGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    bench.sleep(99, polling=True)
    assert not bench.pending(m.JoinGroupRequest)
    bench.sleep(1, polling=True)
    assert bench.pending(m.JoinGroupRequest)
