"""The member of a group whose coordinator computes the assignments."""

import pytest

from coordinator_core.client.server_side import ServerSideMember
from coordinator_core.client.server_side.member import JOIN_SLACK_MS, ServerSideState
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import Cluster, Partitions
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Assigned, ClientStateChanged, Joined, Lost, Revoked
from coordinator_core.protocol.server_side import JoinRequest, JoinResponse
from tests.coordinator_core.client.bench import COORDINATOR, T0, T1, T2, Bench
from tests.coordinator_core.client.doubles import DealingAssignor

STABLE, JOINING, UNJOINED = ServerSideState.STABLE, ServerSideState.JOINING, ServerSideState.UNJOINED
TRANSIENT = [
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]
OF_COORDINATOR = TRANSIENT[:3]


class Consumer(Bench):
    """A consumer of such a group on the bench."""

    def __init__(self, **given):
        super().__init__(member=ServerSideMember, **{"enable_auto_commit": False, **given})

    def share(self, *owned, generation=1, member_id="m1", polls=True):
        """Answer the join in flight with a share, and poll."""
        assignment = encode_assignment(Partitions.of(owned))
        self.respond(JoinRequest, JoinResponse(ErrorCode.NONE, member_id, generation, "dealing", assignment))
        if polls:
            self.poll()

    def refuse_join(self, error, member_id=""):
        return self.respond(JoinRequest, JoinResponse(error, member_id))

    def stable(self, *owned, topics=("t",), **given):
        self.subscribe(*topics)
        self.polls()
        self.share(*owned, **given)
        assert self.state is STABLE
        return self

    @property
    def state(self):
        return self.client._member.state

    def joins(self):
        return len(self.requests(JoinRequest))


@pytest.fixture
def bench():
    return Consumer()


# --- the join


def test_a_join_has_the_topics_and_the_timeouts(bench):
    bench = Consumer(session_timeout_ms=9_000, max_poll_interval_ms=70_000)
    bench.subscribe("t", "u")
    bench.polls()
    assert (bench.state, bench.joins()) == (JOINING, 1)
    request = bench.sent(JoinRequest).request
    assert request == JoinRequest("g", 9_000, 70_000, ("t", "u"), "")


def test_a_member_joins_again_at_once_with_the_id_that_it_gets(bench):
    bench.subscribe("t")
    bench.polls()
    bench.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, "given")
    assert bench.sent(JoinRequest).request.member_id == "given"


def test_the_share_is_taken_over_in_the_next_poll(bench):
    """PROTOCOL 11.2: there is no SyncGroup."""
    bench.subscribe("t")
    bench.polls()
    bench.share(T0, T1, generation=4, polls=False)
    assert (bench.state, bench.owned, bench.client.wants_poll) == (STABLE, [], True)
    bench.poll()
    assert bench.owned == [T0, T1]
    assert bench.calls == [("assigned", [T0, T1])]
    (joined,), (assigned,) = bench.events_of(Joined), bench.events_of(Assigned)
    assert (joined.member_id, joined.generation, joined.protocol, joined.leader) == (
        "m1",
        4,
        "dealing",
        False,
    )
    assert (assigned.generation, assigned.added, assigned.owned) == (4, {"t": [0, 1]}, {"t": [0, 1]})
    assert not bench.requests(m.SyncGroupRequest)
    assert [(event.before, event.after) for event in bench.events_of(ClientStateChanged)] == [
        ("unjoined", "joining"),
        ("joining", "stable"),
    ]


def test_no_heartbeat_is_sent_while_a_join_is_in_flight(bench):
    bench.subscribe("t")
    bench.polls()
    bench.sleep(60_000)
    assert not bench.requests(m.HeartbeatRequest)


def test_a_join_times_out_after_the_rebalance_timeout_and_some_slack():
    bench = Consumer(max_poll_interval_ms=20_000, request_timeout_ms=10_000, retry_backoff_ms=100)
    bench.subscribe("t")
    bench.polls()
    bench.sleep(20_000 + JOIN_SLACK_MS - 1, polling=True)
    assert bench.joins() == 1
    bench.open.clear()
    bench.live(5_000)
    assert bench.joins() == 2


def test_a_share_outside_the_subscription_is_not_taken(bench):
    """Given an assignment of a topic that the member has unsubscribed from since, then it is left out."""
    bench.subscribe("t", "u")
    bench.polls()
    bench.subscribe("t")
    bench.share(T0, ("u", 0))
    assert [event.owned for event in bench.events_of(Assigned)] == [{"t": [0]}]
    bench.polls()
    assert bench.sent(JoinRequest).request.topics == ("t",)


def test_an_unreadable_share_ends_the_consumer(bench):
    bench.subscribe("t")
    bench.polls()
    bench.respond(JoinRequest, JoinResponse(ErrorCode.NONE, "m1", 1, "dealing", b"\x00"))
    assert isinstance(bench.errors[-1], ProtocolError)


@pytest.mark.parametrize("error", TRANSIENT)
def test_a_join_is_sent_again_after_a_transient_error(error):
    bench = Consumer(retry_backoff_ms=100)
    bench.subscribe("t")
    bench.polls()
    bench.refuse_join(error)
    bench.polls()
    assert bench.joins() == 1
    bench.sleep(99, polling=True)
    assert bench.joins() == 1
    bench.sleep(1)
    bench.polls()
    assert bench.joins() == 2
    lookups = len(bench.requests(m.FindCoordinatorRequest))
    assert lookups == (2 if error in OF_COORDINATOR else 1)


def test_an_unknown_member_joins_without_its_id(bench):
    bench.subscribe("t")
    bench.polls()
    bench.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, "given")
    bench.refuse_join(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.polls()
    assert bench.sent(JoinRequest).request.member_id == ""


def test_any_other_error_of_a_join_ends_the_consumer(bench):
    bench.subscribe("t")
    bench.polls()
    bench.refuse_join(ErrorCode.INVALID_SESSION_TIMEOUT)
    assert str(bench.errors[-1]) == str(ProtocolError("Join", "INVALID_SESSION_TIMEOUT"))


def test_a_join_without_a_coordinator_waits_for_one_and_wants_no_poll(bench):
    """Given the connection to the coordinator is closed, then polls would make no progress until it is
    found again."""
    bench.subscribe("t")
    bench.polls()
    del bench.responders[m.FindCoordinatorRequest]
    bench.disconnect(COORDINATOR)
    bench.sleep(1_000)
    bench.poll()
    assert not bench.client.wants_poll
    bench.responders[m.FindCoordinatorRequest] = bench.coordinator
    bench.respond(m.FindCoordinatorRequest, bench.coordinator(None))
    bench.live(1_000)
    assert bench.joins() == 2


# --- rounds


def test_illegal_generation_announces_a_round(bench):
    """Given a heartbeat reports it, then the member revokes everything, keeps its id, and joins. 11.2."""
    bench.stable(T0, T1)
    bench.heartbeat(ErrorCode.ILLEGAL_GENERATION)
    assert (bench.owned, bench.client.wants_poll) == ([T0, T1], True)
    bench.polls()
    assert (bench.owned, bench.state) == ([], JOINING)
    assert bench.sent(JoinRequest).request.member_id == "m1"
    assert [event.partitions for event in bench.events_of(Revoked)] == [{"t": [0, 1]}]
    bench.share(T1, T2, generation=2)
    assert bench.owned == [T1, T2]
    assert bench.calls == [("assigned", [T0, T1]), ("revoked", [T0, T1]), ("assigned", [T1, T2])]
    assert bench.events_of(Lost) == []


def test_consumed_offsets_are_committed_before_the_join():
    bench = Consumer(enable_auto_commit=True)
    bench.stable(T0)
    bench.call("seek", "t", 0, 42)
    bench.heartbeat(ErrorCode.ILLEGAL_GENERATION)
    bench.polls()
    (commit,) = bench.requests(m.OffsetCommitRequest)
    assert (commit.member_id, commit.generation_id) == ("m1", 1)
    assert [(o.topic, o.partition, o.offset) for o in commit.offsets] == [("t", 0, 42)]
    assert (bench.joins(), bench.owned) == (1, [T0])
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.joins(), bench.owned) == (2, [])


def test_another_subscription_makes_the_member_join_again(bench):
    bench.stable(T0)
    bench.subscribe("t", "u")
    bench.polls()
    assert bench.sent(JoinRequest).request.topics == ("t", "u")


def test_a_join_waits_until_the_topics_are_described(bench):
    """As under the classic protocol."""
    del bench.responders[m.MetadataRequest]
    bench.subscribe("t")
    bench.poll()
    bench.sleep(50)
    assert (bench.joins(), bench.client.wants_poll) == (0, False)
    request = bench.sent(m.MetadataRequest).request
    bench.respond(m.MetadataRequest, bench.metadata(request))
    bench.polls()
    assert bench.joins() == 1


def test_new_partitions_do_not_make_the_member_join_again():
    """The coordinator notices them, and announces the round."""
    bench = Consumer(metadata_max_age_ms=10_000)
    bench.stable(T0)
    bench.respond_to(m.HeartbeatRequest)
    bench.live(12_000)
    assert bench.joins() == 1
    bench.topics["t"] = 6
    bench.live(12_000)
    assert bench.joins() == 1


def test_a_round_that_is_announced_twice_is_one_round(bench):
    """Given the response to a heartbeat of the last generation arrives after the next join, then it is
    ignored."""
    bench.stable(T0)
    bench.sleep(3_000)
    bench.subscribe("t", "u")
    bench.polls()
    bench.share(T0, generation=2)
    bench.refuse(m.HeartbeatRequest, ErrorCode.ILLEGAL_GENERATION)
    bench.polls()
    assert (bench.joins(), bench.state) == (2, STABLE)


# --- heartbeats and timers


def test_an_unknown_member_loses_its_partitions_and_joins_anew(bench):
    bench.stable(T0)
    bench.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.state is UNJOINED
    bench.polls()
    assert bench.sent(JoinRequest).request.member_id == ""
    assert [event.partitions for event in bench.events_of(Lost)] == [{"t": [0]}]
    assert bench.calls[-1] == ("lost", [T0])


# --- commits, leaving and the rest


@pytest.mark.parametrize(
    ("error", "rejoins", "member_id"),
    [
        (ErrorCode.ILLEGAL_GENERATION, True, "m1"),
        (ErrorCode.UNKNOWN_MEMBER_ID, True, ""),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, None),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False, None),
    ],
)
def test_the_error_of_a_commit_is_one_of_a_heartbeat(error, rejoins, member_id):
    bench = Consumer(enable_auto_commit=True, auto_commit_interval_ms=2_000).stable(T0)
    bench.call("seek", "t", 0, 42)
    bench.sleep(2_000)
    bench.polls()
    bench.refuse(m.OffsetCommitRequest, error)
    bench.polls()
    bench.live(500)
    assert bench.errors == []
    assert bool(bench.pending(JoinRequest) or bench.pending(m.OffsetCommitRequest))
    if error is ErrorCode.UNKNOWN_MEMBER_ID:
        assert bench.sent(JoinRequest).request.member_id == member_id
    assert rejoins or bench.state is STABLE


def test_a_consumer_that_closes_revokes_and_leaves(bench):
    bench.stable(T0)
    bench.close()
    assert bench.calls[-1] == ("revoked", [T0])
    (request,) = bench.requests(m.LeaveGroupRequest)
    assert request.members[0].member_id == "m1"
    bench.accept(m.LeaveGroupRequest)
    assert (bench.state, bench.owned) == (UNJOINED, [])


def test_a_response_to_a_join_after_leaving_is_ignored(bench):
    bench.subscribe("t")
    bench.polls()
    bench.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, "given")
    send = bench.sent(JoinRequest)
    bench.close()
    bench.respond(
        send, JoinResponse(ErrorCode.NONE, "given", 1, "dealing", encode_assignment(Partitions.of([T0])))
    )
    assert (bench.state, bench.owned) == (UNJOINED, [])


def test_a_member_has_one_assignor_that_of_the_coordinator():
    with pytest.raises(InputError) as caught:
        Consumer(assignors=[DealingAssignor("a"), DealingAssignor("b")])
    assert str(caught.value) == "assignors: found 2 of them, expected one: that of the coordinator"


def test_a_membership_cannot_be_resumed(bench):
    bench.subscribe("t")
    with pytest.raises(InputError, match="memberships to continue, expected a member that joins"):
        bench.call(
            "resume_membership",
            bench.client.generation,
            [T0],
            topics=("t",),
            based_on=Cluster({"t": 4}),
            last_response_ms=0,
        )
