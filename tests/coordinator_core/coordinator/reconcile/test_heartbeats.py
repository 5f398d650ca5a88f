"""ConsumerGroupHeartbeat: epochs, what changes them, and errors (PROTOCOL 11.8)."""

import pytest

from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import (
    GenerationStarted,
    GroupStateChanged,
    MemberRemoved,
    MemberReplaced,
)


def owned(answer):
    """The partitions of t in a response, None without an assignment."""
    return None if answer.assignment is None else [tp.partition for tp in answer.assignment]


def test_the_first_member_gets_everything_at_once_with_its_own_id(bench):
    answer = bench.join("a")
    assert (answer.error, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", 2)
    assert owned(answer) == [0, 1, 2, 3]
    assert bench.state() == "Stable"


def test_the_interval_of_heartbeats_is_the_coordinators(bench):
    assert bench.join("a").heartbeat_interval_ms == 5_000


def test_a_change_raises_the_epoch_of_the_group_and_its_members_follow_one_by_one(bench):
    bench.join("a")
    bench.join("b")
    assert (bench.group().generation, bench.group().durable.target.epoch) == (3, 3)
    assert [bench.current(member).epoch for member in "ab"] == [2, 3]
    assert bench.state() == "Reconciling"


def test_a_member_first_keeps_what_stays_then_confirms_then_reaches_the_target(bench):
    """What a has and keeps comes first; b gets its part when a has confirmed."""
    bench.join("a")
    joined = bench.join("b")
    assert (joined.member_epoch, owned(joined)) == (3, [])
    asked = bench.tell("a", 2)
    assert (asked.member_epoch, owned(asked)) == (2, [0, 1])
    assert bench.current("a").state == "unrevoked partitions"
    assert bench.current("b").state == "unreleased partitions"
    assert owned(bench.tell("b", 3)) is None
    confirmed = bench.tell("a", 2, (0, 1))
    assert (confirmed.member_epoch, owned(confirmed)) == (3, None)
    assert owned(bench.tell("b", 3)) == [2, 3]
    assert [bench.current(member).state for member in "ab"] == ["stable", "stable"]
    assert bench.state() == "Stable"


def test_each_member_goes_on_alone_as_soon_as_what_it_waits_for_is_free(bench):
    """c has b's part while b still waits for that of a, which has not confirmed."""
    bench.topics["t"] = 6
    epoch = bench.pair()
    bench.join("c")
    for member in "ab":
        bench.tell(member, epoch)
    bench.tell("b", epoch, (3,))
    assert bench.current("b").state == "unreleased partitions"
    answer = bench.tell("c", epoch + 1)
    assert (answer.member_epoch, owned(answer)) == (epoch + 1, [4, 5])
    assert (bench.current("a").epoch, bench.current("a").state) == (epoch, "unrevoked partitions")
    bench.tell("a", epoch, (0, 1))
    assert owned(bench.tell("b", epoch + 1)) == [2, 3]


def test_an_assignment_comes_once_even_if_the_member_does_not_own_it_yet(bench):
    bench.join("a")
    assert owned(bench.tell("a", 2)) is None
    assert owned(bench.tell("a", 2, ())) is None


def test_an_assignment_comes_again_in_response_to_a_request_with_all_fields(bench):
    bench.join("a")
    fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("t",)}
    assert owned(bench.tell("a", 2, (), **fields)) == [0, 1, 2, 3]
    assert owned(bench.tell("a", 2, **fields)) is None
    assert owned(bench.tell("a", 2, (), subscribed_topic_names=("t",))) is None
    assert owned(bench.tell("a", 2, (), rebalance_timeout_ms=60_000)) is None


def test_a_heartbeat_that_changes_nothing_writes_nothing(bench):
    epoch = bench.pair()
    appends = sum(len(outcome.appends) for outcome in bench.outcomes)
    answer = bench.tell("a", epoch)
    assert (answer.error, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)
    assert sum(len(outcome.appends) for outcome in bench.outcomes) == appends


def test_a_member_that_reports_that_it_does_not_own_what_it_is_to_give_up_goes_on_at_once(bench):
    epoch = bench.pair()
    bench.join("c")
    answer = bench.tell("b", epoch, ())
    assert (answer.member_epoch, bench.current("b").state) == (epoch + 1, "stable")


def test_a_member_that_has_given_up_partitions_and_is_to_give_up_more_stays_in_its_epoch(bench):
    bench.join("a")
    bench.join("b")
    assert owned(bench.tell("a", 2)) == [0, 1]
    bench.join("c")
    bench.join("d")
    asked = bench.tell("a", 2, (0, 1))
    assert (asked.member_epoch, owned(asked)) == (2, [0])
    assert bench.tell("a", 2, (0,)).member_epoch == 5


def test_what_a_member_has_given_up_comes_back_if_a_newer_target_has_it(bench):
    bench.join("a")
    bench.join("b")
    assert owned(bench.tell("a", 2)) == [0, 1]
    bench.tell("b", -1)
    answer = bench.tell("a", 2, (0, 1))
    assert (answer.member_epoch, owned(answer)) == (4, [0, 1, 2, 3])
    assert bench.current("a").since == (2, 2, 4, 4)


def test_a_member_that_still_owns_what_it_is_to_give_up_has_not_given_it_up(bench):
    """A report without all of it is none of a revocation that is done."""
    bench.join("a")
    bench.join("b")
    bench.tell("a", 2)
    again = bench.tell("a", 2, (0, 1, 3))
    assert (again.member_epoch, bench.current("a").state) == (2, "unrevoked partitions")
    assert owned(bench.tell("b", 3)) is None


# --- epochs


def test_another_epoch_than_the_members_is_fenced(bench):
    epoch = bench.pair()
    assert bench.tell("a", epoch + 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.tell("a", 1).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_epoch_before_is_accepted_with_a_report_that_fits(bench):
    """The response with the present epoch may have been lost."""
    bench.join("a")
    bench.join("b")
    bench.tell("a", 2)
    bench.tell("a", 2, (0, 1))
    assert bench.tell("a", 2).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.tell("a", 2, (0, 1, 2)).error is ErrorCode.FENCED_MEMBER_EPOCH
    again = bench.tell("a", 2, (0, 1))
    assert (again.error, again.member_epoch) == (ErrorCode.NONE, 3)


def test_the_epoch_before_is_the_present_one_after_a_step_within_it(bench):
    """A member that is asked to give up partitions twice has no epoch before."""
    bench.topics["t"] = 6
    bench.join("a")
    bench.join("b")
    bench.settle("a", "b")
    bench.join("c")
    bench.tell("a", 3)
    assert (bench.current("a").epoch, bench.current("a").previous_epoch) == (3, 3)
    assert bench.tell("a", 2, (0,)).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_epoch_before_that_is_fenced_whatever_the_member_owns(bench):
    epoch = bench.pair()
    assert epoch > 1
    assert bench.tell("b", epoch - 1, ()).error is ErrorCode.FENCED_MEMBER_EPOCH
    bench.join("c")
    bench.settle("a", "b", "c")
    assert bench.tell("a", epoch - 1, ()).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_unknown_member_is_told_so_unless_it_joins(bench):
    bench.join("a")
    assert bench.tell("b", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.join("b").error is ErrorCode.NONE


def test_a_fenced_member_that_joins_again_gets_its_part_back(bench):
    epoch = bench.pair()
    answer = bench.join("a")
    assert (answer.member_epoch, owned(answer)) == (epoch, [0, 1])
    assert bench.group().generation == epoch


# --- requests that cannot be


@pytest.mark.parametrize(
    ("epoch", "report", "fields", "error"),
    [
        (0, (), {"subscribed_topic_names": ("t",)}, ErrorCode.INVALID_REQUEST),
        (0, (), {"rebalance_timeout_ms": 9}, ErrorCode.INVALID_REQUEST),
        (0, (1,), {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",)}, ErrorCode.INVALID_REQUEST),
        (
            0,
            (),
            {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",), "instance_id": " "},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            0,
            (),
            {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",), "rack_id": "\t"},
            ErrorCode.INVALID_REQUEST,
        ),
        (-2, None, {}, ErrorCode.INVALID_REQUEST),
        (-3, None, {}, ErrorCode.INVALID_REQUEST),
        (1, None, {"server_assignor": "strange"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (
            0,
            (),
            {"rebalance_timeout_ms": 9, "subscribed_topic_regex": "("},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
        ),
    ],
)
def test_a_wrong_request_is_refused_before_the_group_is_looked_at(bench, epoch, report, fields, error):
    assert bench.tell("a", epoch, report, **fields).error is error
    assert bench.group() is None


def test_a_refused_request_says_what_is_wrong(bench):
    joining = {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",)}
    messages = [
        bench.tell("", 0, (), **joining).message,
        bench.tell("a", 0, (), subscribed_topic_names=("t",)).message,
        bench.tell("a", 0, (), **joining, server_assignor="strange").message,
        bench.tell("a", 0, (), **joining, subscribed_topic_regex="(").message,
        bench.tell("a", 3).message,
        bench.tell("a", -1).message,
    ]
    assert messages == [
        "MemberId can't be empty.",
        "RebalanceTimeoutMs must be provided in first request.",
        "ServerAssignor strange is not supported. Supported assignors: runs, other.",
        "SubscribedTopicRegex `(` is not a valid regular expression: "
        "missing ), unterminated subpattern at position 0.",
        "Consumer group g not found.",
        "Group g not found.",
    ]


def test_an_error_does_not_repeat_the_member_id(bench):
    assert bench.tell("a", 3).member_id is None
    bench.join("a")
    assert bench.tell("a", 7).member_id is None


def test_a_member_may_subscribe_to_nothing(bench):
    answer = bench.join("a", ())
    assert (answer.error, answer.member_epoch, owned(answer)) == (ErrorCode.NONE, 1, [])
    assert bench.state() == "Stable"


def test_a_rebalance_timeout_of_0_is_one(bench):
    bench.join("a")
    assert bench.join("b", rebalance_timeout_ms=0).error is ErrorCode.NONE
    assert bench.group().members["b"].rebalance_timeout_ms == 0


def test_an_instance_id_may_be_as_long_as_any_text(bench):
    assert bench.join("a", instance_id="i" * 300).error is ErrorCode.NONE


def test_the_member_is_looked_at_before_its_regular_expression(bench):
    bench.join("a")
    wrong = {"subscribed_topic_regex": "("}
    assert bench.tell("b", 2, **wrong).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.tell("a", 7, **wrong).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.tell("a", 2, **wrong).error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert bench.group().members["a"].pattern is None


def test_fields_of_a_join_do_not_matter_to_one_that_leaves(bench):
    bench.join("a")
    assert bench.tell("a", -1, (1,), subscribed_topic_regex="(").error is ErrorCode.NONE


def test_the_coordinator_makes_the_id_of_a_member_of_version_0_that_has_none(bench):
    joined = bench.join("", version=0)
    assert list(bench.group().members) == [joined.member_id]
    assert bench.tell(joined.member_id, 2, version=0).error is ErrorCode.NONE
    assert bench.tell("", 2, version=0).error is ErrorCode.INVALID_REQUEST


def test_a_full_group_lets_nobody_in(make_reconcile_bench):
    bench = make_reconcile_bench(max_size=1)
    bench.join("a")
    assert bench.join("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.tell("b", 5).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.join("a").error is ErrorCode.NONE


# --- assignors


def test_the_assignor_gets_the_shares_before(bench):
    bench.pair()
    bench.join("c", server_assignor="other")
    assignor, members = bench.computed[-1]
    assert assignor == "other"
    assert [tp.partition for tp in members["b"].share] == [2, 3]


def test_another_assignor_with_most_votes_raises_the_epoch(bench):
    epoch = bench.pair()
    bench.tell("a", epoch, server_assignor="runs")
    assert bench.group().generation == epoch
    bench.tell("a", epoch, server_assignor="other")
    assert bench.group().generation == epoch + 1
    assert bench.computed[-1][0] == "other"


# --- leaving and expiring


def test_a_member_that_leaves_frees_its_part_and_the_next_heartbeat_gives_it_away(bench):
    epoch = bench.pair()
    assert bench.tell("b", -1).member_epoch == -1
    assert bench.state() == "Assigning"
    assert owned(bench.tell("a", epoch)) == [0, 1, 2, 3]
    assert bench.state() == "Stable"


def test_a_group_is_empty_when_the_last_member_has_left(bench):
    bench.join("a")
    bench.tell("a", -1)
    assert (bench.state(), bench.group().generation) == ("Empty", 3)
    assert bench.group().durable.target.epoch == 3
    assert bench.join("b").member_epoch == 4


def test_the_session_is_the_coordinators_and_a_heartbeat_begins_it_anew(bench):
    epoch = bench.pair()
    bench.sleep(44_000)
    bench.tell("a", epoch)
    bench.sleep(2_000)
    assert list(bench.group().members) == ["a"]
    assert [event.reason for event in bench.events_of(MemberRemoved)] == ["session expired"]


def test_a_member_that_never_confirms_a_revocation_is_removed(bench):
    epoch = bench.pair()
    bench.join("c")
    bench.tell("b", epoch)
    for _ in range(13):
        for member in "abc":
            if member in bench.group().members:
                bench.tell(member, bench.current(member).epoch)
        bench.sleep(5_000)
    assert "b" not in bench.group().members
    reason = "did not give up its partitions within the rebalance timeout"
    assert [event.reason for event in bench.events_of(MemberRemoved)] == [reason]
    assert bench.tell("b", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_confirmation_that_is_being_written_when_the_time_is_over_counts(bench):
    epoch = bench.pair()
    bench.join("c")
    bench.tell("b", epoch)
    for _ in range(11):
        bench.sleep(5_000)
        for member in "abc":
            bench.tell(member, bench.current(member).epoch)
    bench.holding = True
    bench.tell("b", epoch, [tp.partition for tp in bench.current("b").assigned])
    bench.sleep(6_000)
    bench.release()
    assert (bench.current("b").epoch, bench.events_of(MemberRemoved)) == (epoch + 1, [])


# --- static members


def test_a_static_member_that_left_for_a_while_comes_back_to_its_part_in_the_same_epoch(bench):
    bench.join("a", instance_id="one")
    bench.join("b")
    bench.settle("a", "b")
    epoch = bench.group().generation
    assert bench.tell("a", -2, instance_id="one").member_epoch == -2
    assert (bench.state(), bench.group().generation) == ("Reconciling", epoch)
    answer = bench.join("a2", instance_id="one")
    assert (answer.member_epoch, owned(answer)) == (epoch, [0, 1])
    (event,) = bench.events_of(MemberReplaced)
    assert (event.old_member_id, event.new_member_id) == ("a", "a2")
    assert (bench.state(), bench.group().generation) == ("Stable", epoch)


def test_a_static_member_that_is_away_keeps_all_that_it_had_until_it_comes_back(bench):
    """Then what is not in its share is free at once."""
    bench.join("a", instance_id="one")
    bench.tell("a", -2, instance_id="one")
    assert owned(bench.join("b")) == []
    assert [tp.partition for tp in bench.group().durable.shares["a"]] == [0, 1]
    assert owned(bench.tell("b", 3)) is None
    answer = bench.join("a2", instance_id="one")
    assert (answer.member_epoch, owned(answer)) == (3, [0, 1])
    assert owned(bench.tell("b", 3)) == [2, 3]


def test_a_static_member_that_leaves_for_a_while_has_given_up_what_it_was_to_give_up(bench):
    """Its session goes on; the time in which it had to confirm that does not."""
    bench.join("a", instance_id="one", rebalance_timeout_ms=10_000)
    bench.join("b")
    assert owned(bench.tell("a", 2)) == [0, 1]
    bench.tell("a", -2, instance_id="one")
    assert owned(bench.tell("b", 3)) == [2, 3]
    for _ in range(4):
        bench.sleep(5_000)
        assert bench.tell("b", 3).error is ErrorCode.NONE
    assert list(bench.group().members) == ["a", "b"]
    assert owned(bench.join("a2", instance_id="one")) == [0, 1]


def test_a_dynamic_member_does_not_leave_for_a_while(bench):
    bench.join("a")
    assert bench.tell("a", -2, instance_id="one").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert (bench.current("a").epoch, list(bench.group().members)) == (2, ["a"])


def test_an_instance_id_is_taken_until_its_member_has_left(bench):
    bench.join("a", instance_id="one")
    assert bench.join("a2", instance_id="one").error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert bench.join("a", instance_id="one").error is ErrorCode.UNRELEASED_INSTANCE_ID
    bench.tell("a", -2, instance_id="one")
    assert bench.join("a2", instance_id="one").error is ErrorCode.NONE
    assert bench.tell("a", 2, instance_id="one").error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.tell("a", -1, instance_id="one").error is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_that_no_member_has_is_that_of_an_unknown_member(bench):
    bench.join("a", instance_id="one")
    for epoch in (2, -1, -2):
        assert bench.tell("a", epoch, instance_id="two").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_tell_its_instance_id_keeps_it(bench):
    bench.join("a", instance_id="one")
    assert bench.tell("a", 2).error is ErrorCode.NONE
    assert bench.join("a").error is ErrorCode.NONE
    assert bench.group().durable.instances == {"one": "a"}


def test_a_member_that_joins_with_another_instance_id_loses_the_one_it_had(bench):
    bench.join("a", instance_id="one")
    assert bench.join("a", instance_id="two").error is ErrorCode.NONE
    assert bench.group().durable.instances == {"two": "a"}
    assert bench.join("b", instance_id="one").error is ErrorCode.NONE


def test_a_static_member_that_has_left_for_a_while_is_fenced_in_its_old_epoch(bench):
    bench.join("a", instance_id="one")
    bench.tell("a", -2, instance_id="one")
    assert bench.tell("a", 2, instance_id="one").error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.join("a", instance_id="one").member_epoch == 2


def test_a_static_member_that_has_left_for_a_while_has_the_time_of_its_session(bench):
    """Its last heartbeat has begun it."""
    bench.join("a", instance_id="one")
    bench.sleep(40_000)
    bench.tell("a", -2, instance_id="one")
    bench.sleep(5_000)
    assert bench.state() == "Empty"


# --- what is reported


def test_every_change_of_the_group_has_a_cause_and_starts_one_generation(bench):
    bench.join("a")
    bench.join("b")
    assert [event.generation for event in bench.events_of(GenerationStarted)] == [2, 3]
    begun = [e.cause for e in bench.events_of(GroupStateChanged) if e.after == "Assigning"]
    assert begun == ["a joined", "b joined"]
