"""Why strategies stop partitions: the largest part of the stopped time, and the remedies that were run."""

import re
from dataclasses import replace

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.traces.causes import PARTS
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.comparison import Comparison, Remedy
from rebalance_lab.verdicts.comparison_tables import tables_of
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.reasons import STOPS, largest_part, parts_under
from tests.rebalance_lab.verdicts.compared import METRICS, compared, figures


def test_a_reason_that_both_have_is_named_once():
    made = compared(a=figures(messages=10, waiting=1), b=figures(messages=5))
    assert [text.split(",")[0] for text in answers(made)[1:]] == ["a"]


def test_of_one_strategy_only_the_reason_is_named():
    (why,) = answers(compared(a=figures(detection=1)))
    assert why.startswith("a, 100 % of the stopped time of all seeds: the group still counted on members")


def test_without_stops_there_is_no_reason():
    assert answers(compared(a=figures())) == []
    assert largest_part(compared(a=figures()).candidates[0]) is None


def test_tables_have_the_largest_part_of_the_stopped_time():
    made = compared(a=figures(waiting=90, messages=10), b=figures())
    (table,) = tables_of(made, everything=False, units=False)
    assert [[cell.text for cell in row] for row in table.rows] == [
        [STOPS, "100", "*0"],
        ["  mostly", "waiting 90 %", ""],
    ]


def test_a_cause_of_waiting_is_named_with_its_part():
    (table,) = tables_of(
        compared(a=figures(waits={"heartbeat": 9}, messages=1)), everything=False, units=False
    )
    assert table.rows[1][1].text == "waiting (heartbeat) 90 %"


def test_a_cause_of_less_than_half_of_the_waiting_is_not_named():
    made = compared(a=figures(waits={"heartbeat": 4, "batch": 3, "session": 2}, messages=1))
    (table,) = tables_of(made, everything=False, units=False)
    assert table.rows[1][1].text == "waiting 90 %"
    assert answers(made) == ["a, 90 % of the stopped time of all seeds: rounds waited for members."]


def test_no_other_part_is_larger_than_the_cause_that_is_named():
    """Members that had ended or stood still are more together, but each is less than the waits."""
    figures_of_a = figures(detection=30, standing=30, waits={"heartbeat": 35, "callback": 5})
    made = compared(a=figures_of_a)
    (table,) = tables_of(made, everything=False, units=False)
    assert table.rows[1][1].text == "waiting (heartbeat) 35 %"
    (why,) = answers(made)
    assert why.startswith("a, 35 % of the stopped time of all seeds: rounds waited for members that had yet")


def test_a_column_of_a_grid_has_the_largest_part():
    known = {name: Figure((value,)) for name, value in figures(away=3, messages=1).items()}
    candidates = [Candidate("a", known, {"x.ms": (text, 0)}) for text in ("1s", "2s")]
    (table,) = tables_of(Comparison("day", (1,), METRICS, candidates), everything=False)
    assert table.head[-1] == "mostly"
    assert [row[-1].text for row in table.rows] == ["away 75 %", "away 75 %"]


def test_every_part_of_the_stopped_time_can_be_the_largest():
    names = default_registry().metrics()
    for part in PARTS:
        assert f"stopped_{part}_partition_seconds" in names
        assert largest_part(compared(a=figures(**{part: 1})).candidates[0]) == (part, 1.0)
        assert len(answers(compared(a=figures(**{part: 1})))) == 1


def under(text, **parts):
    """The last sentence above a table with one strategy."""
    strategy = default_registry().strategy(text)
    known = parts_under(default_registry().protocol(strategy.protocol), delayed=strategy.delay_ms is not None)
    own = {name: Figure((value,)) for name, value in figures(**parts).items()}
    (answer,) = answers(Comparison("day", [1], METRICS, [Candidate(text, own, parts=known)]))
    return answer


@pytest.mark.parametrize("costs_later", [True, False])
def test_of_a_remedy_that_may_cost_more_when_a_member_freezes_that_is_said(costs_later):
    made = compared(a=figures(detection=10), b=figures(detection=10))
    made = replace(made, remedies={"a": (Remedy("x=1s", 10.0, 5.0, helps=True, costs_later=costs_later),)})
    said = answers(made)[-1].partition(" What helps: x=1s: 10 -> 5.")[2]
    assert said == costs_later * (
        " `rebalance-lab advise` has the price when a member crashes, is closed or freezes."
    )


def test_members_that_stand_still_are_no_members_that_have_ended():
    assert under("range", standing=9, detection=1) == (
        "range, 90 % of the stopped time: members stood still or were cut off, and the group still counted on"
        " them."
    )
    assert "members that had ended" in under("range", standing=1, detection=9)
    assert "the registry still had the sessions" in under("range+watcher", standing=9)


@pytest.mark.parametrize("protocol", ["watcher", "peers"])
@pytest.mark.parametrize("part", [*PARTS, "standing"])
def test_members_without_a_coordinator_do_not_wait_for_batches_or_sessions_of_it(protocol, part):
    assert not re.search(r"max\.poll|batches| session\.timeout\.ms", under(f"range+{protocol}", **{part: 9}))


def test_partitions_that_wait_for_their_member_are_named_with_the_delay():
    text = under("cooperative-sticky+delay=60s", unassigned=9, detection=1)
    assert text == (
        "cooperative-sticky+delay=60s, 90 % of the stopped time: no round ran, and the group kept the"
        " partitions of members that had ended for them."
    )
    assert "delay" not in under("cooperative-sticky", unassigned=9)


def test_partitions_that_the_group_does_not_know_of_are_not_those_of_members_that_ended():
    text = under("range", unassigned=9, detection=4, standing=2)
    assert text == (
        "range, 60 % of the stopped time: no round ran, and partitions that the group did not know of yet had"
        " no owner."
    )
    assert "no retries left" in under("range+watcher", unassigned=9)


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        ("heartbeat", "had yet to learn of them in their next heartbeats"),
        ("batch", "finish batches"),
        ("session", "had ended, stood still or were cut off"),
        ("callback", "callbacks"),
        ("start", "starting"),
        ("unknown", "does not show"),
    ],
)
def test_what_rounds_waited_for_is_named_by_its_largest_cause(cause, why):
    waits = {**dict.fromkeys(("heartbeat", "batch"), 2), cause: 6}
    text = under("range", waits=waits, messages=1)
    share = round(600 / (sum(waits.values()) + 1))
    assert text.startswith(f"range, {share} % of the stopped time: rounds waited for ")
    assert why in text


def test_a_protocol_has_words_of_its_own_for_its_waits():
    assert "each for itself" in under("range+peers", waits={"unknown": 9})


def with_remedies(*remedies):
    made = replace(compared(a=figures(waits={"heartbeat": 9})), remedies={"a": remedies})
    (why,) = answers(made)
    return why.removeprefix(
        "a, 100 % of the stopped time of all seeds: rounds waited for members that had yet to learn of them"
        " in their next heartbeats."
    )


def test_remedies_that_helped_are_named_with_their_effects_the_largest_first():
    assert with_remedies(
        Remedy("x=1s", 18.9, 12.0, helps=True),
        Remedy("y=2", 18.9, 18.8, helps=False),
        Remedy("z=3", 18.9, 7.65, helps=True),
    ) == (" What helps: z=3: 18.9 -> 7.65; x=1s: 18.9 -> 12.")


def test_if_no_remedy_helped_those_that_were_tried_are_named():
    tried = (Remedy("x=1s", 18.9, 18.9, helps=False), Remedy("y", 18.9, 30.0, helps=False))
    assert with_remedies(*tried) == " No change that was tried is known to help: x=1s, y."


def test_a_remedy_has_its_price():
    tried = Remedy("x=1s", 18.9, 12.0, helps=True, price=[("max_lag", 10.0, 20.0), ("rounds", 2.0, 3.0)])
    assert with_remedies(tried) == " What helps: x=1s: 18.9 -> 12 (price: max_lag 10 -> 20, rounds 2 -> 3)."


def test_a_remedy_of_which_it_is_not_known_whether_it_helps_is_named():
    unsure = Remedy("y", 18.9, 17.0, helps=False, is_known=False)
    not_known = " Not known from 6 seeds whether it helps: y: 18.9 -> 17."
    assert with_remedies(unsure) == not_known
    helps = Remedy("x=1s", 18.9, 12.0, helps=True)
    assert with_remedies(unsure, helps) == f" What helps: x=1s: 18.9 -> 12.{not_known}"


def test_without_a_trial_no_remedy_is_named():
    assert with_remedies() == ""


def test_a_remedy_that_is_a_candidate_is_not_told_again():
    made = compared(a=figures(waits={"heartbeat": 9}), b=figures(waits={"heartbeat": 3}))
    as_b = Remedy("b", 9.0, 3.0, helps=True)
    less, same = Remedy("x=1s", 9.0, 2.0, helps=True), Remedy("y=1s", 9.0, 9.0, helps=False)
    for tried, told in (
        ((as_b, less), " What else helps: x=1s: 9 -> 2."),
        ((as_b, same), " No other change that was tried is known to help: y=1s."),
        ((as_b,), "heartbeats."),
    ):
        assert answers(replace(made, remedies={"a": tried}))[1].endswith(told)


def test_the_shares_of_causes_are_those_of_all_seeds():
    """Each part is 0 in most of the seeds: the medians would leave the smallest one."""
    parts = {"waiting": (0, 0, 0, 0, 90, 90), "messages": (80, 0, 0, 0, 0, 0), "away": (1, 1, 1, 1, 1, 1)}
    own = {f"stopped_{part}_partition_seconds": Figure(values) for part, values in parts.items()}
    own |= {STOPS: Figure(tuple(map(sum, zip(*parts.values(), strict=True))))}
    (why,) = answers(Comparison("day", range(6), METRICS[:1], [Candidate("a", own)]))
    assert why == "a, 68 % of the stopped time of all seeds: rounds waited for members."
