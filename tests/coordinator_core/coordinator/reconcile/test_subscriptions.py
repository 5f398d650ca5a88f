"""Topics of members: those that they list, regular expressions, and topics that come, grow or go (11.8)."""

import pytest

from coordinator_core.protocol.error_codes import ErrorCode


def topics_of(answer):
    return [tp.topic for tp in answer.assignment]


def epochs(bench):
    """The epoch of the group, and of its target."""
    return bench.group().generation, bench.group().durable.target.epoch


def matches(bench, pattern):
    return bench.group().durable.resolved[pattern].topics


@pytest.fixture
def spread(bench):
    """A stable group of a member with t and u."""
    bench.join("a", ("t", "u"))
    return bench


# --- topics by their names


def test_other_topics_raise_the_epoch(bench):
    bench.join("a")
    answer = bench.tell("a", 2, subscribed_topic_names=("u",))
    assert epochs(bench) == (3, 3)
    assert (answer.member_epoch, answer.assignment) == (2, ())
    assert topics_of(bench.tell("a", 2, ())) == ["u", "u"]


def test_the_same_topics_in_another_order_change_nothing(spread):
    appends = sum(len(outcome.appends) for outcome in spread.outcomes)
    assert spread.tell("a", 2, subscribed_topic_names=("u", "t", "u")).assignment is None
    assert epochs(spread) == (2, 2)
    assert sum(len(outcome.appends) for outcome in spread.outcomes) == appends


def test_a_topic_that_is_left_is_given_up_before_the_next_shares_are_computed(make_reconcile_bench):
    bench = make_reconcile_bench(interval_ms=10_000, now_ms=1)
    bench.join("a", ("t", "u"))
    bench.sleep(5_000)
    answer = bench.tell("a", 2, subscribed_topic_names=("t",))
    assert (answer.member_epoch, set(topics_of(answer))) == (2, {"t"})
    assert (bench.current("a").state, epochs(bench)) == ("unrevoked partitions", (3, 2))
    bench.tell("a", 2, answer.assignment)
    assert (bench.current("a").state, bench.current("a").epoch) == ("stable", 2)


def test_a_topic_that_is_left_while_others_are_to_be_given_up_is_given_up_with_them(make_reconcile_bench):
    bench = make_reconcile_bench()
    bench.join("a", ("t", "u"))
    bench.join("b", ("t", "u"))
    bench.tell("a", 2)
    answer = bench.tell("a", 2, subscribed_topic_names=("u",))
    assert topics_of(answer) == ["u"]
    assert [tp.topic for tp in bench.current("a").revoking] == ["t"] * 4 + ["u"]


def test_a_topic_that_is_left_is_free_at_once_if_the_member_reports_that_it_does_not_own_it(
    make_reconcile_bench,
):
    bench = make_reconcile_bench(interval_ms=10_000, now_ms=1)
    bench.join("a", ("t", "u"))
    bench.sleep(5_000)
    answer = bench.tell("a", 2, (0, 1, 2, 3), subscribed_topic_names=("t",))
    assert set(topics_of(answer)) == {"t"}
    assert (bench.current("a").state, bench.current("a").revoking) == ("stable", ())


# --- topics that come, grow and go


@pytest.mark.parametrize("topics", [{"t": 6, "u": 2}, {"t": 4}])
def test_topics_that_grow_or_go_raise_the_epoch_with_the_next_heartbeat(spread, topics):
    spread.change_topics(**topics)
    assert (spread.state(), epochs(spread)) == ("Stable", (2, 2))
    spread.tell("a", 2)
    assert epochs(spread) == (3, 3)
    assert spread.group().durable.target.topics == topics
    spread.tell("a", 3)
    assert epochs(spread) == (3, 3)


def test_a_topic_that_is_listed_before_it_exists_is_assigned_when_it_does(bench):
    bench.join("a", ("t", "v"))
    bench.change_topics(t=4, v=1)
    answer = bench.tell("a", 2)
    assert (answer.member_epoch, topics_of(answer)) == (3, ["t"] * 4 + ["v"])


def test_other_topics_than_those_of_the_group_do_not_raise_its_epoch(spread):
    spread.change_topics(t=4, u=2, v=7)
    spread.tell("a", 2)
    assert epochs(spread) == (2, 2)


def test_partitions_of_a_deleted_topic_are_given_up_by_its_id_and_not_described(spread):
    spread.delete_topic("u", "id-of-u")
    described = spread.described()
    assert {tp.topic for tp in described.members[0].assignment} == {"t"}
    assert {tp.topic for tp in described.members[0].target_assignment} == {"t"}
    answer = spread.tell("a", 2)
    assert (answer.member_epoch, topics_of(answer)) == (2, ["t"] * 4)
    assert spread.tell("a", 2, (*range(4), ("id-of-u", 1))).member_epoch == 2
    assert spread.tell("a", 2, answer.assignment).member_epoch == 3


def test_a_topic_that_is_created_again_is_another_one(spread):
    """With as many partitions, and before any heartbeat."""
    spread.delete_topic("u", "id-of-u")
    spread.change_topics(t=4, u=2)
    answer = spread.tell("a", 2)
    assert (answer.member_epoch, topics_of(answer)) == (2, ["t"] * 4)
    assert spread.tell("a", 2, (*range(4), ("id-of-u", 0))).member_epoch == 2
    answer = spread.tell("a", 2, answer.assignment)
    assert (answer.member_epoch, topics_of(answer)) == (3, ["t"] * 4 + ["u"] * 2)


def test_what_is_held_of_a_deleted_topic_is_in_the_log(spread):
    spread.delete_topic("u", "id-of-u")
    spread.fail_over()
    assert {tp.topic for tp in spread.current("a").assigned} == {"t", "id-of-u"}


def test_a_change_of_topics_while_another_broker_took_over_is_found_by_the_first_heartbeat(spread):
    spread.topics["t"] = 5
    spread.fail_over()
    assert epochs(spread) == (2, 2)
    spread.tell("a", 2)
    assert epochs(spread) == (3, 3)


# --- regular expressions


def test_the_first_response_has_the_topics_of_the_names_alone(bench):
    answer = bench.join("a", ("t",), subscribed_topic_regex="u")
    assert (answer.member_epoch, set(topics_of(answer))) == (2, {"t"})
    assert (bench.state(), epochs(bench)) == ("Assigning", (3, 2))
    answer = bench.tell("a", 2)
    assert (answer.member_epoch, set(topics_of(answer))) == (3, {"t", "u"})


def test_a_group_that_has_only_an_expression_begins_with_the_epoch_before_the_first(bench):
    answer = bench.join("a", (), subscribed_topic_regex="u")
    assert (answer.member_epoch, answer.assignment) == (1, ())
    assert epochs(bench) == (2, 1)
    assert topics_of(bench.tell("a", 1)) == ["u", "u"]


@pytest.mark.parametrize("fields", [{"topics": ()}, {"topics": (), "subscribed_topic_regex": "x"}])
def test_a_member_without_topics_joins_an_empty_group_in_its_epoch(bench, fields):
    bench.join("a")
    bench.tell("a", -1)
    assert bench.join("b", **fields).member_epoch == 3
    assert (bench.state(), epochs(bench)) == ("Stable", (3, 3))


def test_an_expression_that_matches_nothing_changes_nothing(bench):
    bench.join("a", ("t",), subscribed_topic_regex="x")
    assert (bench.state(), epochs(bench), matches(bench, "x")) == ("Stable", (2, 2), ())


def test_a_second_member_with_the_same_expression_gets_its_topics_at_once(bench):
    bench.join("a", (), subscribed_topic_regex="t")
    bench.tell("a", 1)
    answer = bench.join("b", (), subscribed_topic_regex="t")
    assert (answer.member_epoch, epochs(bench)) == (3, (3, 3))
    assert [tp.topic for tp in bench.group().durable.shares["b"]] == ["t", "t"]


def test_another_expression_is_resolved_ten_seconds_after_the_last_time(bench):
    bench.join("a", (), subscribed_topic_regex="t")
    bench.join("b", (), subscribed_topic_regex="u")
    for _ in range(2):
        bench.sleep(5_000)
        for member in "ab":
            bench.tell(member, bench.current(member).epoch)
        assert "u" not in bench.group().durable.resolved
    bench.sleep(1)
    bench.tell("a", bench.current("a").epoch)
    assert matches(bench, "u") == ("u",)


def test_a_new_topic_is_matched_ten_seconds_after_the_last_time_at_the_earliest(bench):
    bench.join("a", (), subscribed_topic_regex="[uv]")
    bench.tell("a", 1)
    bench.change_topics(**bench.topics, v=1)
    bench.sleep(10_000)
    bench.tell("a", 2)
    assert matches(bench, "[uv]") == ("u",)
    bench.sleep(1)
    assert bench.tell("a", 2).assignment is None
    assert (matches(bench, "[uv]"), bench.state()) == (("u", "v"), "Assigning")
    assert topics_of(bench.tell("a", 2)) == ["u", "u", "v"]


def test_expressions_are_resolved_again_after_the_interval_of_the_coordinator(bench):
    """Rights may have changed, which nobody tells the group."""
    bench.hidden["guest"] = {"u"}
    bench.join("a", (), subscribed_topic_regex="[tu]", principal="guest")
    assert matches(bench, "[tu]") == ("t",)
    bench.hidden.clear()
    for _ in range(20):
        bench.sleep(30_000)
        bench.tell("a", bench.current("a").epoch, principal="guest")
    assert matches(bench, "[tu]") == ("t",)
    bench.sleep(1)
    bench.tell("a", bench.current("a").epoch, principal="guest")
    assert matches(bench, "[tu]") == ("t", "u")


def test_expressions_match_what_the_member_may_describe_whose_heartbeat_resolves_them(bench):
    bench.hidden["guest"] = {"t"}
    bench.join("a", (), subscribed_topic_regex="[tu]", principal="guest")
    assert matches(bench, "[tu]") == ("u",)
    bench.join("b", (), subscribed_topic_regex="u")
    bench.sleep(10_001)
    bench.tell("b", bench.current("b").epoch, principal="root")
    assert matches(bench, "[tu]") == ("t", "u")


def test_expressions_are_resolved_anew_at_another_broker(bench):
    bench.join("a", (), subscribed_topic_regex="[uv]")
    bench.topics["v"] = 1
    bench.fail_over()
    bench.sleep(10_001)
    bench.tell("a", 1)
    assert matches(bench, "[uv]") == ("u", "v")


@pytest.mark.parametrize("leave", [lambda bench: bench.tell("a", -1), lambda bench: bench.sleep(45_000)])
def test_an_expression_is_forgotten_with_the_last_member_that_has_it(bench, leave):
    bench.join("a", (), subscribed_topic_regex="u")
    bench.join("b")
    leave(bench)
    assert bench.group().durable.resolved == {}
    assert "u" not in bench.group().subscribed_topics()


def test_a_member_with_another_expression_gives_up_what_only_the_old_one_matches(bench):
    bench.join("a", (), subscribed_topic_regex="u")
    bench.tell("a", 1)
    answer = bench.tell("a", 2, subscribed_topic_regex="t")
    assert (answer.member_epoch, answer.assignment) == (2, ())
    assert bench.current("a").state == "unrevoked partitions"
    assert list(bench.group().durable.resolved) == []


def test_an_expression_that_an_earlier_version_has_accepted_matches_nothing(bench):
    bench.join("a", ("t",), subscribed_topic_regex="u")
    bench.group().durable.patterns["("] = 1
    bench.sleep(10_001)
    assert bench.tell("a", 2).error is ErrorCode.NONE
    assert matches(bench, "(") == ()
