"""The assignment of a round, taken over in the next poll."""

import pytest

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.core import OURS, Library
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Assigned, Revoked
from tests.coordinator_core.client.bench import T0, T1, T2, U0, Bench, cooperative
from tests.coordinator_core.client.doubles import EAGER, DealingAssignor


class Waiting(Assignor):
    """Lets its members join again five seconds after a round."""

    def rejoin_after_ms(self, user_data):
        return 5_000


def test_a_consumer_joins_again_when_the_delay_of_its_assignor_is_over():
    bench = Bench(assignors=[Waiting()], enable_auto_commit=False)
    bench.respond_to(m.HeartbeatRequest)
    bench.stable(T0)
    bench.sleep(4_999, polling=True)
    assert bench.pending(m.JoinGroupRequest) == []
    bench.sleep(1, polling=True)
    assert bench.join().reason == "the delay of lost partitions is over"


def test_an_eager_consumer_adds_its_whole_assignment(bench):
    """PROTOCOL 9.5, 9.7."""
    bench.stable(T0, T1)
    bench.round(T1, T2)
    assert bench.calls == [("assigned", [T0, T1]), ("revoked", [T0, T1]), ("assigned", [T1, T2])]
    assert bench.events_of(Assigned)[-1].added == {"t": [1, 2]}


def test_a_cooperative_consumer_revokes_then_assigns_then_rejoins(calm):
    """Given an assignment that removes and adds partitions, then in this order: on_partitions_revoked is
    called while all are owned, a rejoin is requested, the assignor is called, the assignment is set,
    on_partitions_assigned is called with the added ones. The consumer joins again at once. PROTOCOL 9.7,
    C-52."""
    order = calm.assignors[0].calls = calm.listener.calls
    calm.stable(T0, T1)
    del order[:], calm.listener.owned[:]
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.join_as_follower(generation=2)
    calm.respond_to_sync(T1, T2)
    assert order == [
        ("revoked", [T0]),
        ("on_assignment", [T1, T2], 2),
        ("assigned", [T2]),
    ]
    assert calm.listener.owned == [("revoked", [T0, T1]), ("assigned", [T1, T2])]
    assert "gave up" in calm.join().reason
    assert calm.subscription().owned == {T1, T2}
    assert calm.events_of(Revoked)[-1].partitions == {"t": [0]}
    last = calm.events_of(Assigned)[-1]
    assert (last.added, last.owned) == ({"t": [2]}, {"t": [1, 2]})


def test_a_cooperative_consumer_that_revokes_nothing_does_not_rejoin(calm):
    """Given an assignment that only adds partitions, or changes nothing, then on_partitions_revoked is not
    called, and on_partitions_assigned is, even with nothing. PROTOCOL 9.7, C-52."""
    calm.stable(T0)
    calm.round(T0, T1)
    calm.round(T0, T1, generation=3)
    assert calm.calls[1:] == [("assigned", [T1]), ("assigned", [])]
    assert (calm.state, calm.client.wants_poll) == (MemberState.STABLE, False)


def test_partitions_in_both_assignments_are_consumed_throughout(calm):
    """Given a partition with a position, when a round keeps it, then its state is the same object. PROTOCOL
    9.7."""
    calm.stable(T0, T1)
    calm.call("seek", "t", 1, 42)
    before = calm.client.partitions[T1]
    calm.round(T1, T2)
    assert calm.client.partitions[T1] is before
    assert before.position == 42


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x03\x00\x00\x00\x01"])
def test_the_error_of_an_invalid_assignment_names_the_leaders_assignor(bench, data):
    """C-53."""
    bench.subscribe("t")
    bench.join_as_follower()
    bench.respond(m.SyncGroupRequest, m.SyncGroupResponse(error=ErrorCode.NONE, assignment=data))
    bench.poll()
    assert "is the leader's assignor 'dealing' at fault?" in bench.client.failure
    assert "assignment" in str(bench.errors[0])


def test_an_assignment_outside_the_subscription_is_not_applied(calm):
    """Given a subscription that changed during the round, when the assignment does not match it, then the
    consumer keeps its partitions and joins again. PROTOCOL 9.7, C-53."""
    calm.stable(T0)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.join_as_follower(generation=2)
    calm.respond_to_sync(T0, U0)
    assert (calm.owned, len(calm.calls)) == ([T0], 1)
    assert calm.join().reason == "the assignment does not match the subscription"


def pattern_consumer(pattern):
    """Return a consumer that has joined with the topics t and u of a pattern and waits for its assignment."""
    bench = cooperative(enable_auto_commit=False)
    bench.respond_to(m.HeartbeatRequest)
    bench.call("subscribe_pattern", pattern)
    bench.join_as_follower()
    assert bench.client._subscriptions.topics == ("t", "u")
    return bench


def test_an_assigned_topic_that_a_pattern_matches_is_taken_over():
    """Given a pattern and a topic that only the leader knows, when a partition of it is assigned, then the
    consumer owns it, requests metadata at once, and does not join again. PROTOCOL 9.7, C-53."""
    bench = pattern_consumer("[a-z]")
    bench.topics["v"] = 1
    updates = len(bench.requests(m.MetadataRequest))
    bench.respond_to_sync(T0, ("v", 0))
    assert bench.owned == [T0, ("v", 0)]
    assert bench.client._subscriptions.topics == ("t", "u", "v")
    bench.sleep(10_000, polling=True)
    assert len(bench.requests(m.MetadataRequest)) == updates + 1
    assert (len(bench.requests(m.JoinGroupRequest)), bench.state) == (1, MemberState.STABLE)
    assert bench.client.partitions[("v", 0)].has_position


def test_an_assigned_topic_that_the_metadata_do_not_have_is_given_up_by_the_next_join():
    """Given a topic that was taken over, when the next metadata lack it, then the consumer joins again
    without it. PROTOCOL 9.4, 9.5."""
    bench = pattern_consumer("[a-z]")
    bench.respond_to_sync(T0, ("v", 0))
    bench.sleep(100, polling=True)
    assert bench.join().reason == "the subscription changed"
    assert (bench.owned, bench.subscription().topics) == ([T0], ("t", "u"))


def test_an_assigned_topic_that_the_pattern_does_not_match_is_refused():
    """PROTOCOL 9.7, C-53."""
    bench = pattern_consumer("[tu]")
    bench.respond_to_sync(T0, ("v", 0))
    assert bench.owned == []
    assert bench.join().reason == "the assignment does not match the subscription"


def test_a_topic_subscribed_to_during_the_round_needs_another_join(calm):
    """Given a list of topics that grows during the round, when a partition of the new topic is assigned, then
    the consumer owns it and joins again, so that the leader knows. PROTOCOL 9.4, C-53."""
    calm.subscribe("t")
    calm.join_as_follower()
    calm.subscribe("t", "u")
    calm.respond_to_sync(T0, U0)
    assert calm.owned == [T0, U0]
    assert calm.join().reason == "the subscription changed"


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_an_assignment_of_a_generation_lost_before_the_poll_is_dropped(calm, error):
    """Given a response to a sync, when a heartbeat resets the generation before the next poll, then
    on_partitions_assigned is not called. The partitions are lost and the consumer joins. PROTOCOL 9.9,
    C-49."""
    calm.stable(T0)
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.join_as_follower(generation=2)
    calm.sleep(3_000)
    calm.respond_to_sync(T0, T1, polls=False)
    calm.refuse(m.HeartbeatRequest, error)
    calm.polls()
    assert (calm.owned, calm.calls[1:]) == ([], [("lost", [T0])])
    assert calm.subscription().generation == -1


def test_only_the_chosen_assignor_is_called(bench):
    """PROTOCOL 9.6."""
    bench = Bench(assignors=[DealingAssignor("a", (EAGER,)), DealingAssignor("b", (EAGER,))])
    bench.stable(T0, protocol="b")
    assert (bench.assignors[0].calls, bench.assignors[1].calls) == ([], [("on_assignment", [T0], 1)])


@pytest.mark.parametrize(("library", "wait_ms"), [(Library(first_beat_ms=500), 500), (OURS, 3_000)])
def test_the_first_heartbeat_after_a_cooperative_round_can_come_early(library, wait_ms):
    """As that of franz-go does."""
    bench = cooperative(enable_auto_commit=False, library=library)
    bench.stable(T0)
    bench.round(T0, T1)
    assert bench.client.timer_ms - bench.now_ms == wait_ms
