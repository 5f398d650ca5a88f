"""The member of a group that the coordinator reconciles (PROTOCOL 11.8)."""

from uuid import UUID

import pytest

from coordinator_core.client.core import Library
from coordinator_core.client.reconcile import ReconcileMember
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Assigned, Joined, Lost, Revoked
from coordinator_core.protocol.reconcile import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from tests.coordinator_core.client.bench import COORDINATOR, T0, T1, T2, U0, Bench
from tests.coordinator_core.client.doubles import DealingAssignor

Request, Response = ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


class Consumer(Bench):
    """A consumer of such a group on the bench."""

    def __init__(self, **given):
        super().__init__(member=ReconcileMember, **{"enable_auto_commit": False, **given})

    def heard(self, epoch, *owned, changed=True, polls=True):
        """Answer the heartbeat in flight, by default with an assignment, and poll."""
        answer = Response(
            error=ErrorCode.NONE,
            member_id=self.told.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=5_000,
            assignment=tuple(owned) if changed else None,
        )
        self.respond(Request, answer)
        if polls:
            self.polls()

    def refused(self, error):
        self.respond(Request, Response(error=error))

    @property
    def told(self):
        """The newest heartbeat."""
        return self.requests(Request)[-1]

    def beats(self):
        """Let the time of the next heartbeat come. Return it."""
        self.sleep(5_000)
        return self.sent(Request).request

    def joins(self, *topics, epoch=1, owned=()):
        """Join, take partitions over, and report them."""
        self.subscribe(*(topics or ("t",)))
        self.polls()
        self.heard(epoch, *owned)
        if owned:
            self.sleep(0)
            self.heard(epoch, changed=False)
        assert self.client.is_at_rest
        return self


@pytest.fixture
def bench():
    return Consumer()


def test_a_join_has_every_field_and_an_id_that_the_member_made(bench):
    bench = Consumer(max_poll_interval_ms=70_000, client_rack="r1")
    bench.subscribe("t", "u")
    bench.polls()
    assert UUID(bench.told.member_id.removesuffix("-c")).version == 4
    assert bench.told == Request(
        group_id="g",
        member_id=bench.told.member_id,
        member_epoch=0,
        rack_id="r1",
        rebalance_timeout_ms=70_000,
        subscribed_topic_names=("t", "u"),
        subscribed_topic_regex="",
        server_assignor="dealing",
        topic_partitions=(),
    )


def test_a_heartbeat_at_rest_has_nothing_but_the_epoch(bench):
    bench.joins(owned=(T0,))
    request = bench.beats()
    assert request == Request(group_id="g", member_id=bench.told.member_id, member_epoch=1)
    assert request.repeats


def test_the_interval_is_that_of_the_coordinator(bench):
    bench = Consumer(heartbeat_interval_ms=1_000).joins()
    before = len(bench.requests(Request))
    bench.sleep(4_999)
    assert len(bench.requests(Request)) == before
    bench.sleep(1)
    assert len(bench.requests(Request)) == before + 1


def test_what_is_taken_over_in_a_poll_is_reported_at_once(bench):
    bench.subscribe("t")
    bench.polls()
    bench.heard(1, T0, T1, polls=False)
    assert (bench.owned, bench.pending(Request)) == ([], [])
    bench.polls()
    assert bench.owned == [T0, T1]
    bench.sleep(0)
    assert bench.sent(Request).request.topic_partitions == (T0, T1)
    assert [(e.generation, e.added) for e in bench.events_of(Assigned)] == [(1, {"t": [0, 1]})]


def test_a_poll_that_does_not_come_keeps_the_partitions_and_heartbeats_go_on(bench):
    """A batch lasts long: the coordinator asks for a partition, and gets heartbeats without a report."""
    bench.joins(owned=(T0, T1))
    bench.beats()
    bench.heard(1, T0, polls=False)
    assert bench.beats().topic_partitions is None
    assert bench.owned == [T0, T1]
    bench.heard(1, T0)
    assert bench.owned == [T0]
    bench.sleep(0)
    assert bench.sent(Request).request.topic_partitions == (T0,)
    assert [e.partitions for e in bench.events_of(Revoked)] == [{"t": [1]}]


def test_revoked_partitions_are_committed_first_in_the_epoch_of_the_member():
    bench = Consumer(enable_auto_commit=True, auto_offset_reset="earliest").joins(owned=(T0, T1))
    bench.beats()
    bench.heard(1, T0)
    commit = bench.sent(m.OffsetCommitRequest).request
    assert (commit.generation_id, commit.member_id) == (1, bench.told.member_id)
    assert bench.owned == [T0, T1]
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert bench.owned == [T0]


def test_partitions_that_stay_are_not_touched(bench):
    bench.joins(owned=(T0, T1))
    bench.beats()
    bench.heard(2, T1, T2)
    assert bench.calls[-2:] == [("revoked", [T0]), ("assigned", [T2])]
    assert bench.owned == [T1, T2]


def test_an_epoch_alone_calls_no_listener(bench):
    bench.joins(owned=(T0,))
    calls = len(bench.calls)
    bench.beats()
    bench.heard(2, changed=False)
    assert [event.generation for event in bench.events_of(Joined)] == [1, 2]
    last = bench.events_of(Assigned)[-1]
    assert (last.generation, last.added, last.owned, last.called) == (2, {}, {"t": [0]}, False)
    assert len(bench.calls) == calls


FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


@pytest.mark.parametrize("error", FENCED)
def test_a_fenced_member_gives_everything_up_and_joins_with_epoch_0_and_its_id(bench, error):
    bench.joins(owned=(T0,))
    member_id = bench.told.member_id
    bench.beats()
    bench.refused(error)
    assert bench.owned == [T0]
    bench.polls()
    assert [e.partitions for e in bench.events_of(Lost)] == [{"t": [0]}]
    assert (bench.owned, bench.calls[-1]) == ([], ("lost", [T0]))
    assert (bench.told.member_epoch, bench.told.member_id, bench.told.topic_partitions) == (0, member_id, ())


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_other_errors_end_the_consumer(bench, error):
    bench.subscribe("t")
    bench.polls()
    bench.refused(error)
    assert bench.client.failure == f"ConsumerGroupHeartbeat: {error.name}"
    assert isinstance(bench.errors[-1], ProtocolError)


def test_the_error_has_the_message_of_the_coordinator(bench):
    bench.subscribe("t")
    bench.polls()
    refusal = Response(error=ErrorCode.GROUP_ID_NOT_FOUND, message="Group g is not a consumer group.")
    bench.respond(Request, refusal)
    expected = "ConsumerGroupHeartbeat: GROUP_ID_NOT_FOUND: Group g is not a consumer group."
    assert bench.client.failure == expected


def test_after_a_lost_response_the_next_heartbeat_has_every_field(bench):
    """An assignment that was not taken over yet comes again."""
    bench.joins(owned=(T0,))
    bench.beats()
    bench.disconnect(COORDINATOR)
    bench.sleep(200)
    request = bench.sent(Request).request
    assert (request.member_epoch, request.topic_partitions) == (1, (T0,))
    assert request.subscribed_topic_names == ("t",)
    assert request.rebalance_timeout_ms > 0


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_not_ready_is_asked_again(bench, error):
    bench.joins(owned=(T0,))
    bench.beats()
    bench.refused(error)
    bench.sleep(200)
    request = bench.sent(Request).request
    assert (request.member_epoch, request.subscribed_topic_names) == (1, ("t",))
    assert bench.owned == [T0]


def test_another_coordinator_is_told_everything(bench):
    bench.joins(owned=(T0,))
    bench.disconnect(COORDINATOR)
    bench.sleep(200)
    request = bench.sent(Request).request
    assert (request.subscribed_topic_names, request.topic_partitions) == (("t",), (T0,))


def test_a_response_to_a_member_that_has_left_since_is_ignored(bench):
    bench.joins(owned=(T0,))
    bench.beats()
    (before,) = bench.pending(Request)
    bench.call("unsubscribe")
    answer = Response(error=ErrorCode.NONE, member_epoch=1, heartbeat_interval_ms=5_000, assignment=(T0,))
    bench.respond(before, answer)
    assert bench.client.generation.is_lost


def test_other_topics_are_told_at_once_and_nothing_else(bench):
    bench.joins(owned=(T0,))
    bench.subscribe("t", "u")
    bench.sleep(0)
    request = bench.sent(Request).request
    assert (request.subscribed_topic_names, request.topic_partitions) == (("t", "u"), None)
    bench.heard(2, T0, U0)
    assert bench.owned == [T0, U0]


def test_what_is_being_given_up_is_given_up_also_if_it_is_wanted_again():
    """Its work has ended: it comes back with a later assignment."""
    bench = Consumer(enable_auto_commit=True, auto_offset_reset="earliest").joins("t", "u", owned=(T0, U0))
    bench.subscribe("t")
    bench.polls()
    bench.subscribe("t", "u")
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert bench.owned == [T0]
    bench.sleep(0)
    assert bench.sent(Request).request.topic_partitions == (T0,)
    bench.heard(1, T0, U0)
    assert bench.owned == [T0, U0]
    assert not bench.client.partitions[U0].pending_revocation


def test_a_pattern_is_sent_as_it_is(bench):
    bench.call("subscribe_pattern", "t|u.*")
    bench.polls()
    assert (bench.told.subscribed_topic_names, bench.told.subscribed_topic_regex) == ((), "t|u.*")


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("one", -2)])
def test_a_member_leaves_for_good_and_a_static_one_for_a_while(instance_id, epoch):
    bench = Consumer(group_instance_id=instance_id).joins(owned=(T0,))
    bench.close()
    assert bench.told.member_epoch == epoch
    assert bench.told.instance_id == instance_id
    bench.heard(epoch, changed=False, polls=False)
    assert bench.client.closed


def test_a_member_that_is_not_polled_leaves(bench):
    bench = Consumer(max_poll_interval_ms=7_000).joins(owned=(T0,))
    bench.sleep(5_000)
    bench.heard(1, changed=False, polls=False)
    bench.sleep(7_000)
    assert bench.told.member_epoch == -1
    bench.polls()
    assert [e.partitions for e in bench.events_of(Lost)] == [{"t": [0]}]


def test_a_commit_with_an_old_epoch_can_be_sent_again_with_the_new_one():
    bench = Consumer(enable_auto_commit=True, auto_offset_reset="earliest").joins(owned=(T0,))
    bench.sleep(5_000)
    bench.polls()
    bench.refuse(m.OffsetCommitRequest, ErrorCode.STALE_MEMBER_EPOCH)
    bench.heard(2, changed=False)
    bench.sleep(200, polling=True)
    assert bench.sent(m.OffsetCommitRequest).request.generation_id == 2


def test_there_is_one_assignor_that_of_the_coordinator():
    with pytest.raises(InputError, match="assignors: found 2 of them"):
        Consumer(assignors=[DealingAssignor("a"), DealingAssignor("b")])


def test_a_membership_is_continued_only_by_a_member_outside_a_group(bench):
    bench.joins()
    with pytest.raises(InputError, match="expected an epoch above 0 for a member that has not joined"):
        bench.client.resume_membership(
            bench.client.generation, {}, topics=("t",), last_response_ms=0, now_ms=bench.now_ms
        )


APART = Library(calls_apart=True)


def test_with_calls_apart_a_member_commits_gives_up_and_takes_over_in_a_poll_each():
    """As Kafka's Java consumer does: it tells the coordinator only then that it has given something up."""
    bench = Consumer(library=APART, enable_auto_commit=True, auto_offset_reset="earliest").joins(
        owned=(T0, T1)
    )
    bench.beats()
    bench.heard(1, T0, T2)
    assert bench.sent(m.OffsetCommitRequest).request.generation_id == 1
    assert bench.owned == [T0, T1]
    bench.accept(m.OffsetCommitRequest)
    bench.poll()
    assert (bench.owned, bench.calls[-1]) == ([T0], ("revoked", [T1]))
    bench.sleep(0)
    assert bench.pending(Request) == []
    bench.poll()
    assert (bench.owned, bench.calls[-1]) == ([T0, T2], ("assigned", [T2]))
    bench.sleep(0)
    assert bench.sent(Request).request.topic_partitions == (T0, T2)


def test_with_calls_apart_a_member_that_gives_up_nothing_commits_before_it_takes_over():
    bench = Consumer(library=APART, enable_auto_commit=True, auto_offset_reset="earliest").joins(owned=(T0,))
    bench.beats()
    bench.heard(1, T0, T1)
    assert bench.owned == [T0]
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert (bench.owned, bench.calls[-1]) == ([T0, T1], ("assigned", [T1]))


def test_with_calls_apart_a_member_that_is_fenced_before_it_takes_over_begins_anew():
    bench = Consumer(library=APART).joins(owned=(T0, T1))
    bench.beats()
    bench.heard(1, T0)
    assert bench.owned == [T0]
    bench.beats()
    bench.refused(ErrorCode.FENCED_MEMBER_EPOCH)
    bench.polls()
    bench.polls()
    assert bench.calls[-1] == ("lost", [T0])
    bench.heard(2, T1)
    assert bench.owned == [T1]


def test_with_calls_apart_what_a_later_response_takes_away_is_given_up_before_it_takes_over():
    bench = Consumer(library=APART).joins(owned=(T0, T1, T2))
    bench.beats()
    bench.heard(1, T0, T1, polls=False)
    bench.poll()
    assert bench.owned == [T0, T1]
    bench.beats()
    bench.heard(2, T0)
    assert bench.owned == [T0]
    assert [e.partitions for e in bench.events_of(Revoked)] == [{"t": [2]}, {"t": [1]}]


MEANWHILE = Library(commits_meanwhile=True)


@pytest.mark.parametrize(("library", "first"), [(MEANWHILE, [T0, T2]), (Library(), [T0, T1])])
def test_a_member_that_commits_meanwhile_gives_up_in_the_poll_that_sends_the_commit(library, first):
    """As librdkafka does. Others give up when the commit is answered."""
    bench = Consumer(library=library, enable_auto_commit=True, auto_offset_reset="earliest").joins(
        owned=(T0, T1)
    )
    bench.beats()
    bench.heard(1, T0, T2)
    assert bench.sent(m.OffsetCommitRequest).request.generation_id == 1
    assert bench.owned == first
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert bench.owned == [T0, T2]
    assert [e.partitions for e in bench.events_of(Revoked)] == [{"t": [1]}]


def test_the_answer_to_a_commit_that_nobody_waits_for_changes_nothing():
    bench = Consumer(library=MEANWHILE, enable_auto_commit=True, auto_offset_reset="earliest").joins(
        owned=(T0, T1)
    )
    bench.beats()
    bench.heard(1, T0)
    bench.sleep(0)
    assert bench.sent(Request).request.topic_partitions == (T0,)
    bench.accept(m.OffsetCommitRequest)
    bench.polls()
    assert bench.owned == [T0]
