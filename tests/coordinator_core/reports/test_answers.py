"""The sentences above a comparison: who stops partitions least, and why partitions stop."""

import json
import re
from dataclasses import replace
from math import nan

import pytest

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.answers import STOPS, answers, largest_part, parts_under, what_it_takes
from coordinator_core.reports.comparison import Candidate, Comparison, Figure, comparison_of
from coordinator_core.reports.comparison_formats import as_html, as_json
from coordinator_core.reports.comparison_tables import tables_of
from coordinator_core.traces.stopped import PARTS

METRICS = [
    MetricSpec(STOPS, "partition seconds", lambda history: 0.0, group="stops", headline=True),
    *(MetricSpec(f"stopped_{part}_partition_seconds", "", lambda history: 0.0) for part in PARTS),
    MetricSpec("stopped_standing_partition_seconds", "", lambda history: 0.0),
    MetricSpec("stopped_unassigned_partition_seconds", "", lambda history: 0.0),
    MetricSpec("duplicate_records", "records", lambda history: 0.0, group="lag"),
]


def figures(standing=0, unassigned=0, twice=0, **parts):
    """The figures of a run with those parts of stopped time. Two of them are counted in `detection`, too."""
    parts["detection"] = parts.get("detection", 0) + standing + unassigned
    known = {f"stopped_{part}_partition_seconds": float(parts.get(part, 0)) for part in PARTS}
    causes = {"standing": standing, "unassigned": unassigned}
    more = {f"stopped_{name}_partition_seconds": float(value) for name, value in causes.items()}
    return {STOPS: sum(known.values()), **known, **more, "duplicate_records": float(twice)}


def compared(**candidates):
    return comparison_of("day", 7, METRICS, candidates)


def test_the_first_strategy_is_what_the_best_is_compared_with():
    made = compared(
        a=figures(waiting=90, detection=10), b=figures(away=20, detection=5), c=figures(messages=30)
    )
    least, first, best = answers(made)
    assert least == (
        "b stops partitions least: 25 partition seconds, 75 % less than a and 17 % less than c, the next."
    )
    assert first.startswith(
        "a, 90 % of the stopped time: rounds waited for members to finish batches, and for members that had "
    )
    assert best.startswith(
        "b, 80 % of the stopped time: static members were closed or starting. To shorten it: "
    )


@pytest.mark.parametrize(("least", "share"), [(1.5, "98 %"), (1, "99 %"), (0.25, "over 99 %"), (0, "100 %")])
def test_no_figure_but_0_is_100_percent_less(least, share):
    made = compared(a=figures(waiting=100), b=figures(messages=least))
    assert answers(made)[0].endswith(f", {share} less than a.")


def test_pages_and_documents_have_the_answers():
    made = compared(a=figures(waiting=90, messages=10), b=figures(away=20, detection=5))
    assert json.loads(as_json(made))["answers"] == answers(made)
    assert all(f"<p>{text}</p>" in as_html(made) for text in answers(made))


def test_if_the_first_is_the_best_the_worst_is_named():
    made = compared(a=figures(messages=10), b=figures(messages=20), c=figures(messages=40))
    least, why = answers(made)
    assert (
        least == "a stops partitions least: 10 partition seconds, 50 % less than b, the next. c stops"
        " them most: 40."
    )
    assert why.startswith("a, 100 % of the stopped time: assignments were under way.")


@pytest.mark.parametrize(
    ("alike", "names"), [("b", "b stops"), ("bc", "b and c stop"), ("bcd", "b and others stop")]
)
def test_strategies_that_are_alike_are_the_best_together(alike, names):
    made = compared(a=figures(messages=100), **{name: figures(messages=10) for name in alike})
    assert answers(made)[0] == f"{names} partitions least: 10 partition seconds, 90 % less than a."


def test_a_tie_is_no_win():
    made = compared(a=figures(messages=100), b=figures(messages=99.5))
    assert answers(made)[0] == "All stop partitions alike, within 1 %: 99.5 to 100 partition seconds."


def test_spreads_that_overlap_are_no_win():
    values = {"a": (10.0, 30.0), "b": (20.0, 40.0)}
    candidates = [
        Candidate(name, {m.name: Figure(own if m.name == STOPS else (0.0, 0.0)) for m in METRICS})
        for name, own in values.items()
    ]
    assert answers(Comparison("day", (1, 2), METRICS, candidates)) == [
        "All stop partitions alike, within 1 %, or the spreads overlap: 20 to 30 partition seconds."
    ]


def test_of_several_runs_the_least_is_that_of_all():
    candidates = [
        Candidate(name, {m.name: Figure((value, value)) for m in METRICS})
        for name, value in (("a", 9.0), ("b", 3.0))
    ]
    (least, *_) = answers(Comparison("day", (1, 2), METRICS, candidates))
    assert least.startswith("b stops partitions least: 3 partition seconds")


@pytest.mark.parametrize(
    ("clients", "helps"),
    [
        ((), True),
        (("java",), True),
        (("kafka-python", "librdkafka"), True),
        (("kafka-python",), False),
        (("kafka-python", "aiokafka"), False),
    ],
)
def test_a_cooperative_assignor_is_a_remedy_where_members_work_during_its_rounds(clients, helps):
    made = replace(compared(a=figures(waiting=9, detection=1)), clients=clients)
    (why,) = answers(made)
    assert ("To shorten it: static members, a cooperative assignor, a smaller" in why) is helps
    if not helps:
        named = " and ".join(sorted(clients))
        assert why.endswith(f"session.timeout.ms. With {named} a cooperative assignor does not shorten it.")
    (other,) = answers(replace(compared(a=figures(away=1)), clients=clients))
    assert "cooperative" not in other


def test_a_reason_that_both_have_is_named_once():
    made = compared(a=figures(messages=10, waiting=1), b=figures(messages=5))
    assert [text.split(",")[0] for text in answers(made)[1:]] == ["a"]


def test_of_one_strategy_only_the_reason_is_named():
    (why,) = answers(compared(a=figures(detection=1)))
    assert why.startswith("a, 100 % of the stopped time: the group still counted on members")


def test_without_stops_there_is_no_reason():
    assert answers(compared(a=figures())) == []
    assert largest_part(compared(a=figures()).candidates[0]) is None


def test_without_the_figure_there_is_no_answer():
    assert answers(comparison_of("day", 7, [METRICS[1]], {"a": {METRICS[1].name: 1.0}})) == []
    assert answers(compared(a=dict.fromkeys(figures(), nan), b=figures())) == []


def test_tables_have_the_largest_part_of_the_stopped_time():
    made = compared(a=figures(waiting=90, messages=10), b=figures())
    (table,) = tables_of(made, everything=False, units=False)
    assert [[cell.text for cell in row] for row in table.rows] == [
        [STOPS, "100", "*0"],
        ["  mostly", "waiting 90 %", ""],
    ]


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


def test_in_a_grid_the_best_and_the_worst_are_named_and_settings_without_effect():
    candidates = [
        Candidate(
            "a",
            {n: Figure((v,)) for n, v in figures(messages=stopped).items()},
            {"x.ms": (x, 0), "y.ms": (y, 0), "z": ("1", 1)},
        )
        for x, stopped in (("1s", 5), ("2s", 2), ("3s", 9))
        for y in ("7s", "8s")
    ]
    least, _, effect = answers(Comparison("day", (7,), METRICS, candidates))
    assert least == (
        "a with x.ms=2s, y.ms=7s and a with x.ms=2s, y.ms=8s stop partitions least: 2 partition"
        " seconds, 60 % less than a with x.ms=1s, y.ms=7s, the next. a with x.ms=3s, y.ms=7s stops them"
        " most: 9."
    )
    assert effect == "y.ms makes no difference."


def test_a_group_that_does_not_work_is_no_answer():
    a, b, c = (
        Candidate(name, {n: Figure((v,)) for n, v in own.items()}, findings=["broken"] * (name == "a"))
        for name, own in (("a", figures()), ("b", figures(away=5)), ("c", figures(away=9)))
    )
    least, _ = answers(Comparison("day", (7,), METRICS, [a, b, c]))
    assert least == "b stops partitions least: 5 partition seconds. c stops them most: 9."
    assert len(answers(Comparison("day", (7,), METRICS, [a, b]))) == 0
    assert answers(Comparison("day", (7,), METRICS, [a])) == []


# --- protocols


def under(text, **parts):
    """The last sentence above a table with one strategy."""
    strategy = default_registry().strategy(text)
    known = parts_under(default_registry().protocol(strategy.protocol), delayed=strategy.delay_ms is not None)
    own = {name: Figure((value,)) for name, value in figures(**parts).items()}
    (answer,) = answers(Comparison("day", [1], METRICS, [Candidate(text, own, parts=known)]))
    return answer


def test_the_records_that_the_best_handles_twice_are_its_price():
    made = compared(a=figures(waiting=90), b=figures(messages=1, twice=2_468_270))
    assert answers(made)[1] == "b handles 2,468,270 records twice, a 0."
    made = compared(a=figures(messages=1, twice=9), b=figures(waiting=90, twice=3), c=figures(waiting=90))
    assert answers(made)[1] == "a handles 9 records twice, c 0."
    lag = {"max_lag": 1_000.0}
    for twice, said in ((100, False), (101, True)):
        made = compared(a=figures(waiting=90), b=figures(messages=1, twice=twice) | lag)
        assert any("twice" in text for text in answers(made)) is said
    assert not any("twice" in text for text in answers(compared(a=figures(away=9), b=figures(away=1))))


def test_members_that_stand_still_are_no_members_that_have_ended():
    assert under("range", standing=9, detection=1).startswith(
        "range, 90 % of the stopped time: members stood still or were cut off, and the group still counted on"
        " them. To shorten it: a shorter max.poll.interval.ms for pauses"
    )
    assert "members that had ended" in under("range", standing=1, detection=9)
    assert "zookeeper.session.timeout.ms for freezes" in under("range+watcher", standing=9)


@pytest.mark.parametrize("protocol", ["server-side", "watcher", "peers"])
@pytest.mark.parametrize("part", PARTS)
def test_no_remedy_is_named_that_the_protocol_does_not_support(protocol, part):
    assert not re.search("static|cooperative", under(f"range+{protocol}", **{part: 9}))


@pytest.mark.parametrize("part", ["detection", "standing", "waiting", "messages"])
def test_remedies_of_groups_that_are_reconciled_are_settings_of_the_coordinator(part):
    text = under("range+reconcile", **{part: 9})
    assert "group.consumer." in text
    assert not re.search(r"max\.poll\.records|batches| session\.timeout\.ms", text)


@pytest.mark.parametrize("protocol", ["watcher", "peers"])
@pytest.mark.parametrize("part", [*PARTS, "standing"])
def test_members_without_a_coordinator_do_not_wait_for_batches_or_sessions_of_it(protocol, part):
    assert not re.search(r"max\.poll|batches| session\.timeout\.ms", under(f"range+{protocol}", **{part: 9}))


def test_partitions_that_wait_for_their_member_are_named_with_the_delay():
    text = under("cooperative-sticky+delay=60s", unassigned=9, detection=1)
    assert text == (
        "cooperative-sticky+delay=60s, 90 % of the stopped time: no round ran, and the group kept the"
        " partitions of members that had ended for them. To shorten it: static members, a shorter delay."
    )
    assert "delay" not in under("cooperative-sticky", unassigned=9)


def test_partitions_that_the_group_does_not_know_of_are_not_those_of_members_that_ended():
    text = under("range", unassigned=9, detection=4, standing=2)
    assert text == (
        "range, 60 % of the stopped time: no round ran, and partitions that the group did not know of yet had"
        " no owner. To shorten it: a shorter metadata.max.age.ms."
    )
    assert "no retries left" in under("range+watcher", unassigned=9)


def test_rounds_wait_for_sessions_only_where_members_have_ended():
    assert under("range", waiting=9) == (
        "range, 100 % of the stopped time: rounds waited for members to finish batches. To shorten it:"
        " static members, a cooperative assignor, a smaller max.poll.records."
    )
    assert "until their sessions expired" in under("range", waiting=9, detection=1)


@pytest.mark.parametrize(
    ("events", "helps"),
    [((), False), (("crash", "join"), False), (("restart",), True), (("rolling_restart",), True)],
)
def test_static_members_are_a_remedy_where_members_come_back(events, helps):
    parts = parts_under(default_registry().protocol("classic"), delayed=False, events=events)
    assert all(
        ("static members" in remedies) is helps for remedies in (parts["detection"][1], parts["waiting"][1])
    )


def lags(most, at_end, utilization=nan):
    return {"max_lag": float(most), "lag_at_end": float(at_end), "utilization": utilization}


def test_a_lag_that_is_left_under_all_strategies_comes_first():
    made = compared(a=figures(messages=1) | lags(100, 60, 1.5), b=figures(messages=9) | lags(1_000, 900, 1.2))
    first, second, *_ = answers(made)
    assert first == (
        "The lag has not come down by the end of the run: 60 records under a (the busiest"
        " member has 150 % of what it can handle) and 900 under b (120 %)."
    )
    assert second.startswith("a stops partitions least")


@pytest.mark.parametrize("left", [lags(100, 50), lags(1, 1), lags(100, nan)])
def test_a_lag_that_is_left_under_some_strategies_comes_after_the_answer(left):
    made = compared(a=figures(messages=1) | left, b=figures(messages=9) | lags(1_000, 900, 0.9))
    first, second, *_ = answers(made)
    assert first.startswith("a stops partitions least")
    assert second.endswith("by the end of the run: 900 records under b.")
    assert not any("lag" in text for text in answers(compared(a=figures(messages=1) | left)))


@pytest.mark.parametrize(("share", "told"), [(0.0004, "0.04"), (0.00001, "under 0.01")])
def test_the_share_of_the_records_that_meets_a_stopped_partition_is_told(share, told):
    lost = {"capacity_lost": share, "max_lag": 5.0}
    made = compared(a=figures(messages=9) | {"capacity_lost": 0.5}, b=figures(messages=1) | lost)
    assert answers(made)[0] == (
        f"b stops partitions least: 1 partition seconds ({told} % of the records came then),"
        " 89 % less than a."
    )
    made = compared(a=figures(messages=9), b=figures(messages=1) | lost | {"max_lag": nan})
    assert "records" not in answers(made)[0]


def test_a_setting_that_a_strategy_does_not_read_is_not_in_its_name():
    own = {name: Figure((value,)) for name, value in figures(messages=1).items()}
    unread, read = ({"x.ms": value} for value in (("-", None), ("1s", 1_000)))
    made = Comparison("day", [1], METRICS, [Candidate("a", own, unread), Candidate("b", own, read)])
    assert [made.label(candidate) for candidate in made.candidates] == ["a", "b with x.ms=1s"]


@pytest.mark.parametrize(("static", "advised"), [(120, False), (100, False), (60, True)])
def test_a_remedy_that_the_comparison_refutes_is_not_advised(static, advised):
    made = comparison_of(
        "day", 7, METRICS, {"range": figures(detection=100), "range+static": figures(detection=static)}
    )
    (why,) = [text for text in answers(made) if text.startswith("range, ")]
    assert ("static members" in why) == advised


def test_what_kafkas_own_clients_do_not_have_is_named_where_clients_assign():
    registry = default_registry()
    named = (
        "range",
        "cooperative-sticky+static",
        "uniform-848+reconcile",
        "rocketmq",
        "optimal+tolerance=5%",
        "Mine",
    )
    assert what_it_takes({name: name for name in named}, registry) == (
        "Kafka's own clients do not have optimal+tolerance=5% and Mine; kafka-python, aiokafka and the"
        " Consumer of rebalance_kafka do. Under optimal+tolerance=5%, members must report their rates;"
        " otherwise partitions are counted."
    )
    assert what_it_takes({name: name for name in named[:4]}, registry) == ""
