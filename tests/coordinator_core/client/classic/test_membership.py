"""Who a consumer is: one protocol for all its assignors, leaving, and static members."""

import pytest

from coordinator_core.assigning.loading import assignor_from
from coordinator_core.client.classic.rebalance_protocol import rebalance_protocol
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.errors import InputError
from coordinator_core.model import RebalanceProtocol
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import ClientStateChanged
from tests.coordinator_core.client.bench import T0, T1, T2, Bench
from tests.coordinator_core.client.doubles import COOPERATIVE, EAGER, DealingAssignor

STICKY = DealingAssignor("cooperative-sticky", (COOPERATIVE, EAGER))
RANGE = DealingAssignor("range", (EAGER,))
PURE = DealingAssignor("pure", (COOPERATIVE,))


@pytest.mark.parametrize(
    ("assignors", "protocol"),
    [
        ([RANGE], EAGER),
        ([STICKY], COOPERATIVE),
        ([PURE, STICKY], COOPERATIVE),
        ([STICKY, RANGE], EAGER),
        ([RANGE, STICKY], EAGER),
    ],
)
def test_a_consumer_runs_under_the_highest_protocol_that_all_its_assignors_support(assignors, protocol):
    """PROTOCOL 9.8, C-58."""
    assert rebalance_protocol(assignors) is protocol


def test_an_assignor_without_supported_protocols_is_eager():
    """PROTOCOL 9.8, C-58."""

    class Plain:
        name = "plain"

        def assign(self, cluster, group):
            return {}

    assert rebalance_protocol([assignor_from(Plain())]) is RebalanceProtocol.EAGER


@pytest.mark.parametrize(
    ("assignors", "message"),
    [
        ([], "expected at least one"),
        ([RANGE, STICKY, RANGE], "'range' twice"),
        ([PURE, RANGE], "pure: cooperative, range: eager"),
    ],
)
def test_incompatible_assignors_are_a_configuration_error(assignors, message):
    """Given no assignor, one name twice, or no protocol in common, then no consumer can be made.
    PROTOCOL 9.8, C-58."""
    with pytest.raises(InputError, match=message):
        Bench(assignors=assignors)


def bounced(*assignors):
    """Return a member that owns two partitions and has to rejoin."""
    bench = Bench(assignors=list(assignors), enable_auto_commit=False).stable(T0, T1)
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    return bench


def test_the_first_bounce_to_cooperative_still_runs_eagerly():
    """Given a consumer that lists [cooperative-sticky, range], then it revokes everything before it joins,
    whichever the group chooses. PROTOCOL 9.8, 9.5, C-58."""
    for chosen in ("range", "cooperative-sticky"):
        bench = bounced(STICKY, RANGE)
        assert [p.name for p in bench.join().protocols] == ["cooperative-sticky", "range"]
        assert (bench.owned, bench.calls[-1]) == ([], ("revoked", [T0, T1]))
        bench.respond_to_join(generation=2, protocol=chosen)
        bench.respond_to_sync(T1, T2)
        assert bench.calls[-1] == ("assigned", [T1, T2])
        assert not bench.client.wants_poll


def test_the_second_bounce_runs_cooperatively():
    """Given a consumer that lists [cooperative-sticky] alone, then it keeps its partitions while it joins,
    revokes only those it no longer has, and joins again. PROTOCOL 9.8, 9.7, C-58."""
    bench = bounced(STICKY)
    assert (bench.owned, bench.subscription().owned) == ([T0, T1], {T0, T1})
    bench.respond_to_join(generation=2)
    bench.respond_to_sync(T1)
    assert bench.calls[1:] == [("revoked", [T0]), ("assigned", [])]
    assert bench.state is MemberState.PREPARING_REBALANCE


def test_a_generation_without_a_number_or_a_member_is_lost():
    """C-50."""
    assert NO_MEMBERSHIP.is_lost
    assert Generation(-1, "m1").is_lost
    assert Generation(3, "").is_lost
    assert not Generation(3, "m1").is_lost


def test_each_change_of_state_is_an_event(bench):
    """PROTOCOL 9.4."""
    bench.stable(T0)
    states = [(e.before, e.after) for e in bench.events_of(ClientStateChanged)]
    assert states == [
        ("unjoined", "preparing-rebalance"),
        ("preparing-rebalance", "completing-rebalance"),
        ("completing-rebalance", "stable"),
    ]


def test_unsubscribe_gives_up_partitions_and_leaves_with_a_reason(bench):
    """Given a stable member, when it unsubscribes, then its partitions are revoked and a LeaveGroup is sent,
    whose response does not matter. PROTOCOL 9.1, C-57, C-59."""
    bench.stable(T0)
    bench.call("unsubscribe")
    (identity,) = bench.sent(m.LeaveGroupRequest).request.members
    assert identity == m.MemberIdentity("m1", None, "the consumer unsubscribed")
    bench.refuse(m.LeaveGroupRequest, ErrorCode.UNKNOWN_MEMBER_ID)
    assert (bench.calls[-1], bench.client.generation) == (("revoked", [T0]), NO_MEMBERSHIP)
    assert bench.client.failure is None
    bench.call("assign", [T1])


def test_unsubscribe_during_a_round_loses_the_partitions(calm):
    """Given a join or sync in flight, when the consumer unsubscribes, then its partitions are lost. C-57."""
    for joined in (False, True):
        bench = bounced(STICKY)
        if joined:
            bench.respond_to_join(generation=2)
        bench.call("unsubscribe")
        assert bench.calls[-1] == ("lost", [T0, T1])


def test_a_response_to_an_earlier_join_is_dropped(bench):
    """Given a join in flight, when the consumer unsubscribes and subscribes again, then it joins again only
    after the response to the first join, which is dropped. PROTOCOL 9.9."""
    bench.subscribe("t")
    bench.polls()
    bench.call("unsubscribe")
    bench.subscribe("u")
    bench.polls()
    assert len(bench.pending(m.JoinGroupRequest)) == 1
    bench.respond_to_join(member_id="old")
    assert (bench.state, bench.client.generation) == (MemberState.UNJOINED, NO_MEMBERSHIP)
    bench.polls()
    assert (bench.join().member_id, bench.subscription().topics) == ("", ("u",))


def test_a_member_id_for_an_earlier_join_is_dropped(bench):
    """Given a join in flight, when the consumer unsubscribes before it receives a member id, then it commits
    without one. PROTOCOL 9.6, 9.9."""
    bench.subscribe("t")
    bench.polls()
    bench.call("unsubscribe")
    bench.refuse(m.JoinGroupRequest, ErrorCode.MEMBER_ID_REQUIRED)
    bench.call("assign", [T0])
    bench.call("commit", {T0: 5})
    assert bench.requests(m.OffsetCommitRequest)[0].member_id == ""


@pytest.mark.parametrize("way", ["unsubscribe", "close", "sleep"])
def test_a_static_member_never_leaves(way):
    """Given a static member, when it unsubscribes, closes or polls too rarely, then it sends no LeaveGroup
    and its heartbeats stop: only its session timeout makes the group rebalance. PROTOCOL 6.1, 6.5, 9.9,
    C-44."""
    bench = Bench(group_instance_id="i1", enable_auto_commit=False, max_poll_interval_ms=10_000).stable(T0)
    if way == "sleep":
        bench.respond_to(m.HeartbeatRequest)
        bench.sleep(10_000)
    else:
        bench.call(way)
    assert bench.requests(m.LeaveGroupRequest) == []
    beats = len(bench.requests(m.HeartbeatRequest))
    bench.sleep(60_000)
    assert len(bench.requests(m.HeartbeatRequest)) == beats
    assert bench.state is MemberState.UNJOINED


def test_a_static_member_sends_its_instance_id_in_every_group_request():
    """PROTOCOL 6.1."""
    bench = Bench(group_instance_id="i1", enable_auto_commit=False).stable(T0)
    bench.heartbeat()
    bench.call("commit", {T0: 1})
    kinds = (m.JoinGroupRequest, m.SyncGroupRequest, m.HeartbeatRequest, m.OffsetCommitRequest)
    assert [bench.requests(kind)[0].group_instance_id for kind in kinds] == ["i1"] * 4


def test_a_static_member_rejoins_without_a_member_id(bench):
    """Given a static member that has not polled for too long, when it polls again, then its partitions are
    lost and it joins with an empty id and its instance id. PROTOCOL 6.1, C-44, C-56."""
    bench = Bench(group_instance_id="i1", enable_auto_commit=False, max_poll_interval_ms=10_000).stable(T0)
    bench.sleep(10_000)
    bench.polls()
    assert (bench.join().member_id, bench.join().group_instance_id) == ("", "i1")
    assert bench.calls[-1] == ("lost", [T0])


def test_a_fenced_member_fails_and_loses_its_partitions():
    """Given two processes with one instance id, then the fenced one fails: it sends no joins or heartbeats,
    and on close its partitions are lost, not revoked. PROTOCOL 9.5, 9.9, C-45."""
    bench = Bench(group_instance_id="i1").stable(T0)
    bench.heartbeat(ErrorCode.FENCED_INSTANCE_ID)
    assert bench.client.failure == "Heartbeat: FENCED_INSTANCE_ID"
    sent = len(bench.log)
    bench.live(60_000)
    bench.close()
    assert bench.client.closed
    assert {type(send.request) for send in bench.log[sent:]} <= {m.MetadataRequest}
    assert bench.calls[-1] == ("lost", [T0])
