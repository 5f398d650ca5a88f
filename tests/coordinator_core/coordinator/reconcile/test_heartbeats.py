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
    assert (answer.error, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", 1)
    assert owned(answer) == [0, 1, 2, 3]
    assert bench.state() == "Stable"


def test_the_interval_of_heartbeats_is_the_coordinators(bench):
    assert bench.join("a").heartbeat_interval_ms == 5_000


def test_a_change_raises_the_epoch_of_the_group_and_its_members_follow_one_by_one(bench):
    bench.join("a")
    bench.tell("a", 1, range(4))
    bench.join("b")
    assert (bench.group().generation, bench.group().durable.target.epoch) == (2, 2)
    assert [bench.current(member).epoch for member in "ab"] == [1, 2]
    assert bench.state() == "Reconciling"


def test_a_member_first_keeps_what_stays_then_confirms_then_reaches_the_target(bench):
    """What a has and keeps comes first; b gets its part when a has confirmed."""
    bench.join("a")
    bench.tell("a", 1, range(4))
    joined = bench.join("b")
    assert (joined.member_epoch, owned(joined)) == (2, [])
    asked = bench.tell("a", 1)
    assert (asked.member_epoch, owned(asked)) == (1, [0, 1])
    assert bench.current("a").state == "unrevoked partitions"
    assert bench.current("b").state == "unreleased partitions"
    assert owned(bench.tell("b", 2)) is None
    confirmed = bench.tell("a", 1, (0, 1))
    assert (confirmed.member_epoch, owned(confirmed)) == (2, None)
    assert owned(bench.tell("b", 2)) == [2, 3]
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


def test_what_has_not_changed_is_null_both_ways(bench):
    epoch = bench.pair()
    answer = bench.tell("a", epoch)
    assert (answer.error, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)


def test_an_assignment_comes_again_until_the_member_has_reported_it(bench):
    bench.join("a")
    assert owned(bench.tell("a", 1)) == [0, 1, 2, 3]
    assert owned(bench.tell("a", 1, range(4))) is None
    assert owned(bench.tell("a", 1)) is None


def test_a_heartbeat_that_changes_nothing_writes_nothing(bench):
    epoch = bench.pair()
    appends = sum(len(outcome.appends) for outcome in bench.outcomes)
    bench.tell("a", epoch)
    assert sum(len(outcome.appends) for outcome in bench.outcomes) == appends


def test_a_report_counts_only_after_the_coordinator_has_asked(bench):
    """A late copy of an older report cannot free partitions that the member owns since."""
    epoch = bench.pair()
    bench.join("c")
    asked = bench.tell("b", epoch, ())
    assert (asked.member_epoch, bench.current("b").state) == (epoch, "unrevoked partitions")


def test_a_member_that_still_owns_what_it_is_to_give_up_has_not_given_it_up(bench):
    """A report without all of it is none of a revocation that is done."""
    bench.join("a")
    bench.tell("a", 1, range(4))
    bench.join("b")
    bench.tell("a", 1)
    again = bench.tell("a", 1, (0, 1, 3))
    assert (again.member_epoch, bench.current("a").state) == (1, "unrevoked partitions")
    assert owned(bench.tell("b", 2)) is None


# --- epochs


def test_another_epoch_than_the_members_is_fenced(bench):
    epoch = bench.pair()
    assert bench.tell("a", epoch + 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.tell("a", 1).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_epoch_before_is_accepted_with_a_report_that_fits(bench):
    """The response with the present epoch may have been lost."""
    bench.join("a")
    bench.tell("a", 1, range(4))
    bench.join("b")
    bench.tell("a", 1)
    bench.tell("a", 1, (0, 1))
    assert bench.tell("a", 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.tell("a", 1, (0, 1, 2)).error is ErrorCode.FENCED_MEMBER_EPOCH
    again = bench.tell("a", 1, (0, 1))
    assert (again.error, again.member_epoch) == (ErrorCode.NONE, 2)


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
        (0, (), {"rebalance_timeout_ms": 0, "subscribed_topic_names": ("t",)}, ErrorCode.INVALID_REQUEST),
        (0, (1,), {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",)}, ErrorCode.INVALID_REQUEST),
        (
            0,
            (),
            {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",), "instance_id": ""},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            0,
            (),
            {"rebalance_timeout_ms": 9, "subscribed_topic_names": ("t",), "rack_id": ""},
            ErrorCode.INVALID_REQUEST,
        ),
        (-2, None, {}, ErrorCode.INVALID_REQUEST),
        (-3, None, {}, ErrorCode.INVALID_REQUEST),
        (1, None, {"server_assignor": "strange"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (1, None, {"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
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
    ]
    assert messages == [
        "MemberId can't be empty.",
        "RebalanceTimeoutMs must be provided when (re-)joining.",
        "ServerAssignor strange is not supported. Supported: runs, other.",
        "SubscribedTopicRegex `(` is not valid: missing ), unterminated subpattern at position 0.",
        "Group g not found.",
    ]


def test_an_unknown_group_has_no_members(bench):
    assert bench.tell("a", 3).error is bench.tell("a", -1).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_may_subscribe_to_nothing(bench):
    answer = bench.join("a", ())
    assert (answer.error, answer.member_epoch, owned(answer)) == (ErrorCode.NONE, 1, [])


def test_the_coordinator_makes_the_id_of_a_member_of_version_0_that_has_none(bench):
    joined = bench.join("", version=0)
    assert list(bench.group().members) == [joined.member_id]
    assert bench.tell(joined.member_id, 1, version=0).error is ErrorCode.NONE
    assert bench.tell("", 1, version=0).error is ErrorCode.INVALID_REQUEST


def test_a_full_group_lets_nobody_in(make_reconcile_bench):
    bench = make_reconcile_bench(max_size=1)
    bench.join("a")
    assert bench.join("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.join("a").error is ErrorCode.NONE


# --- subscriptions and topics


def test_other_topics_raise_the_epoch(bench):
    bench.join("a")
    answer = bench.tell("a", 1, subscribed_topic_names=("u",))
    assert bench.group().generation == 2
    assert (answer.member_epoch, owned(answer)) == (1, [])
    assert [tp.topic for tp in bench.tell("a", 1, ()).assignment] == ["u", "u"]


def test_a_pattern_is_matched_by_the_coordinator_also_with_topics_that_come_later(bench):
    answer = bench.join("a", (), subscribed_topic_regex="[uv]")
    assert [tp.topic for tp in answer.assignment] == ["u", "u"]
    bench.topics["v"] = 1
    bench.change_topics(**bench.topics)
    assert bench.state() == "Assigning"
    assert [tp.topic for tp in bench.tell("a", 1).assignment] == ["u", "u", "v"]


def test_a_pattern_matches_only_what_the_user_of_the_member_may_describe(bench):
    bench.hidden["guest"] = {"t"}
    answer = bench.join("a", (), subscribed_topic_regex="[tu]", principal="guest")
    assert {tp.topic for tp in answer.assignment} == {"u"}


def test_more_partitions_raise_the_epoch_and_the_next_heartbeat_computes_the_shares(bench):
    epoch = bench.pair()
    bench.change_topics(t=6, u=2)
    assert (bench.state(), bench.group().generation) == ("Assigning", epoch + 1)
    bench.tell("a", epoch)
    assert bench.state() == "Reconciling"
    assert bench.group().durable.target.topics == {"t": 6}


def test_the_assignor_gets_the_shares_before(bench):
    bench.pair()
    bench.join("c", server_assignor="other")
    assignor, members = bench.computed[-1]
    assert assignor == "other"
    assert [tp.partition for tp in members["b"].share] == [2, 3]


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
    assert (bench.state(), bench.group().generation) == ("Empty", 2)
    assert bench.join("b").member_epoch == 3


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
    assert (bench.state(), bench.group().generation) == ("Stable", epoch)
    answer = bench.join("a2", instance_id="one")
    assert (answer.member_epoch, owned(answer)) == (epoch, [0, 1])
    (event,) = bench.events_of(MemberReplaced)
    assert (event.old_member_id, event.new_member_id) == ("a", "a2")
    assert (bench.state(), bench.group().generation) == ("Stable", epoch)


def test_a_static_member_that_comes_back_has_nothing_to_give_up(bench):
    """What it had and is not in its share is free at once."""
    bench.join("a", instance_id="one")
    bench.tell("a", -2, instance_id="one")
    bench.join("b")
    answer = bench.join("a2", instance_id="one")
    assert (answer.member_epoch, owned(answer)) == (2, [0, 1])
    assert owned(bench.tell("b", 2)) == [2, 3]


def test_a_static_member_that_leaves_for_a_while_has_given_up_what_it_was_to_give_up(bench):
    """Its session goes on; the time in which it had to confirm that does not."""
    bench.join("a", instance_id="one", rebalance_timeout_ms=10_000)
    bench.tell("a", 1, range(4))
    bench.join("b")
    assert owned(bench.tell("a", 1)) == [0, 1]
    bench.tell("a", -2, instance_id="one")
    assert owned(bench.tell("b", 2)) == [2, 3]
    for _ in range(4):
        bench.sleep(5_000)
        assert bench.tell("b", 2).error is ErrorCode.NONE
    assert list(bench.group().members) == ["a", "b"]
    assert owned(bench.join("a2", instance_id="one")) == [0, 1]


def test_a_dynamic_member_does_not_leave_for_a_while(bench):
    bench.join("a")
    assert bench.tell("a", -2, instance_id="one").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert (bench.current("a").epoch, list(bench.group().members)) == (1, ["a"])


def test_an_instance_id_is_taken_until_its_member_has_left(bench):
    bench.join("a", instance_id="one")
    assert bench.join("a2", instance_id="one").error is ErrorCode.UNRELEASED_INSTANCE_ID
    bench.tell("a", -2, instance_id="one")
    assert bench.join("a2", instance_id="one").error is ErrorCode.NONE
    assert bench.tell("a", 1, instance_id="one").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_loses_its_part_with_its_session(bench):
    bench.join("a", instance_id="one")
    bench.tell("a", -2, instance_id="one")
    bench.sleep(45_000)
    assert bench.state() == "Empty"


# --- commits


def test_a_commit_names_the_epoch_of_its_member(bench):
    epoch = bench.pair()
    assert bench.commit("a", epoch) is ErrorCode.NONE
    assert bench.commit("a", epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit("nobody", epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_without_a_member_is_accepted_from_nobody_but_an_empty_group(bench):
    bench.join("a")
    bench.tell("a", -1)
    assert bench.commit() is ErrorCode.NONE


# --- what is reported


def test_every_change_of_the_group_has_a_cause_and_starts_one_generation(bench):
    bench.join("a")
    bench.join("b")
    assert [event.generation for event in bench.events_of(GenerationStarted)] == [1, 2]
    begun = [e.cause for e in bench.events_of(GroupStateChanged) if e.after == "Assigning"]
    assert begun == ["a joined", "b joined"]
