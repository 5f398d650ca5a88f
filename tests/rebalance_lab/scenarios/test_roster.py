"""Who is there at the time of an event."""

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.roster import NewNames, Roster

AT = "x.yaml: events[0].leave"


@pytest.fixture
def roster():
    roster = Roster({"orders": 12, "payments": 3}, 60_000)
    for member in ("c-0", "c-1"):
        roster.started(member, AT)
    return roster


def error_of(check, *arguments):
    with pytest.raises(InputError) as caught:
        check(*arguments)
    assert caught.value.where == AT
    return caught.value.found, caught.value.expected


def test_a_member_that_joined_is_running(roster):
    roster.is_running("c-0", AT)
    assert roster.running == {"c-0": True, "c-1": True}


def test_a_member_cannot_join_twice(roster):
    assert error_of(roster.started, "c-0", AT) == ("'c-0'", "a member that is not already in the group")


def test_a_member_that_is_gone_may_join_again(roster):
    roster.stopped("c-0", AT, "left at 5ms")
    roster.started("c-0", AT)
    roster.is_running("c-0", AT)


def test_a_member_that_never_joined_is_not_running(roster):
    assert error_of(roster.is_running, "c-2", AT) == (
        "'c-2', which never joined",
        "a member of the group at this time: c-0, c-1 (did you mean 'c-1'?)",
    )


def test_a_member_that_never_joined_cannot_stop(roster):
    assert error_of(roster.stopped, "x", AT, "left at 5ms") == (
        "'x', which never joined",
        "a member of the group at this time: c-0, c-1",
    )
    assert "x" not in roster.running


def test_a_member_that_never_joined_cannot_restart(roster):
    assert error_of(roster.restarted, "x", AT)[0] == "'x', which never joined"


def test_a_member_that_is_gone_is_not_running_and_the_error_says_why(roster):
    roster.stopped("c-0", AT, "crashed at 5000ms")
    assert error_of(roster.is_running, "c-0", AT) == (
        "'c-0', which is not running (crashed at 5000ms)",
        "a member of the group at this time: c-1 (did you mean 'c-1'?)",
    )


def test_a_member_cannot_stop_twice_and_the_first_reason_counts(roster):
    roster.stopped("c-0", AT, "left at 5ms")
    assert (
        error_of(roster.stopped, "c-0", AT, "crashed at 9ms")[0]
        == "'c-0', which is not running (left at 5ms)"
    )


def test_a_member_that_restarted_can_stop_again_with_a_new_reason(roster):
    roster.stopped("c-0", AT, "left at 5ms")
    roster.restarted("c-0", AT)
    roster.stopped("c-0", AT, "crashed at 9ms")
    assert error_of(roster.is_running, "c-0", AT)[0] == "'c-0', which is not running (crashed at 9ms)"


def test_a_member_that_runs_may_restart(roster):
    roster.restarted("c-0", AT)
    roster.is_running("c-0", AT)


def test_a_group_that_is_empty_is_said_to_be(roster):
    for member in ("c-0", "c-1"):
        roster.stopped(member, AT, "left at 5ms")
    assert error_of(roster.stopped, "x", AT, "")[1] == "a member of the group, which is empty at this time"


def test_of_many_members_eight_are_shown():
    roster = Roster({"t": 1}, 1)
    for number in range(9):
        roster.started(f"c{number}", AT)
    assert (
        error_of(roster.is_running, "zzz", AT)[1]
        == "a member of the group at this time: c0, c1, c2, c3, c4, c5, c6, c7, ..."
    )
    roster.stopped("c8", AT, "left")
    assert error_of(roster.is_running, "zzz", AT)[1].endswith("c6, c7")


def test_a_topic_has_its_number_of_partitions(roster):
    assert roster.topic("orders", AT) == 12


def test_an_unknown_topic_is_refused_with_what_there_is(roster):
    assert error_of(roster.topic, "order", AT) == (
        "the unknown topic 'order'",
        "one of orders, payments (did you mean 'orders'?)",
    )


def test_of_many_topics_eight_are_shown_and_the_close_one_is_among_all():
    roster = Roster({f"topic-{number}": 1 for number in range(20)}, 1)
    _, expected = error_of(roster.topic, "topic-199", AT)
    assert expected == (
        "one of topic-0, topic-1, topic-2, topic-3, topic-4, topic-5, topic-6, topic-7, ..."
        " (did you mean 'topic-19'?)"
    )


def test_a_change_of_the_same_moment_comes_after_an_event(roster):
    """A member that a new one replaces at 10 s may still leave at 10 s."""
    roster.replaced("c-0", 1_000, 10_000, "replaced")
    roster.advance(1_000)
    assert "c-0-2" not in roster.running
    roster.advance(10_000)
    assert roster.running["c-0-2"]
    roster.is_running("c-0", AT)
    roster.advance(10_001)
    assert not roster.running["c-0"]


def test_a_new_member_gets_the_name_of_the_first_and_the_next_free_number():
    names = NewNames()
    assert names.after("c", {"c": 0}) == "c-2"
    assert names.after("c-2", {"c": 0, "c-2": 0}) == "c-3"
    assert names.after("d", {"d": 0, "d-2": 0, "d-3": 0}) == "d-4"
