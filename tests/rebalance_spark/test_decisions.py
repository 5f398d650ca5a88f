"""What each group is advised to do, from scores by hand."""

from inspect import cleandoc

import pyarrow.parquet as pq
import pytest
from pyarrow.csv import read_csv

from coordinator_core.errors import InputError
from rebalance_spark.decisions import Question, decide, decision_schema, decisions, last_rows
from rebalance_spark.scoring import score
from tests.places import ROOT
from tests.rebalance_spark.score_files import as_scores, by_hour, hourly, row
from tests.rebalance_spark.workloads import frame, scenario


def decided(rows, today="today", **options):
    """The decisions by group."""
    found = decisions(last_rows(as_scores(rows)), Question(today, **options)).to_pylist()
    return {each.get("group") or each[next(iter(each))]: each for each in found}


def advised(rows, **options):
    return {name: each["advised"] for name, each in decided(rows, **options).items()}


def of(name, *pairs, **columns):
    """Rows of a group in twelve hours: strategies with moves and imbalance."""
    return hourly([row(name, s, m, b, **columns) for s, m, b in pairs])


GROUPS = {  # today, one, two: moves and imbalance
    "fewer-moves": ((5, 1.5), (3, 1.5), (4, 1.0)),
    "even-moves": ((5, 1.5), (3, 1.5), (3, 1.2)),
    "a-price": ((5, 1.5), (3, 1.6), (6, 1.0)),
    "a-hair": ((5, 1.5), (3, 1.51), (6, 1.0)),
    "the-same": ((5, 1.5), (4.96, 1.5), (5, 1.49)),
    "unknown": ((None, 1.5), (3, 1.5), (4, 1.0)),
    "failing": ((5, 1.5), (None, 1.5), (4, 1.5)),
}


def test_a_group_switches_to_what_is_better_and_not_worse_in_anything_that_decides():
    strategies = ("today", "one", "two")
    rows = [
        each
        for name, figures in GROUPS.items()
        for each in of(name, *((s, *f) for s, f in zip(strategies, figures, strict=True)))
    ]
    found = decided(rows)
    assert {name: (each["advised"], each["reason"]) for name, each in found.items()} == {
        "fewer-moves": ("one", "moves less"),
        "even-moves": ("two", "moves less, is better balanced"),
        "a-price": ("today", "one moves less, may be worse balanced"),
        "a-hair": ("one", "moves less"),
        "the-same": ("today", "none is known to be better"),
        "unknown": ("today", "today has no figures"),
        "failing": ("two", "moves less"),
    }
    assert found["fewer-moves"]["moved_change"] == pytest.approx(-2)
    assert found["the-same"]["moved_change"] is None


def test_a_group_with_few_scenarios_stays_and_says_how_many_it_has():
    rows = [row("x", "today", 5.0), row("x", "other", 1.0)]
    assert decided(hourly(rows, 5))["x"]["reason"] == "5 of 6 scenarios"
    assert decided(hourly(rows, 6))["x"]["advised"] == "other"


def test_stopped_time_decides_first_where_it_is_measured():
    rows = hourly(
        [
            row("x", name, moves, stopped_partition_seconds=seconds)
            for name, moves, seconds in (("today", 12.0, 20.2), ("sticky", 7.0, 20.2), ("coop", 7.0, 7.3))
        ]
    )
    found = decided(rows)["x"]
    assert (found["advised"], found["reason"]) == ("coop", "stops less")
    assert found["stopped_today"] == pytest.approx(20.2)
    assert found["stopped_change"] == pytest.approx(-12.9)
    assert found["low"] <= found["stopped_change"] <= found["high"]


def test_the_hours_of_a_group_have_one_decision_by_their_pairs():
    moves = {  # today and other: moves in twelve hours
        "better-nearly-always": ([5] * 12, [*[1] * 11, 6]),
        "worse-at-times": ([5] * 12, [*[1] * 6, *[25] * 6]),
        "leaning": ([5] * 12, [*[3] * 6, *[7] * 6]),
        "failing-once": ([5] * 12, [None, *[1] * 11]),
        "unknown-once": ([None, *[3] * 11], [1] * 12),
        "scored-once-less": ([5] * 12, [*[3] * 11, ...]),
        "scored-twice": ([5] * 12, [*[3] * 2, *[...] * 10]),
    }
    rows = []
    for name, each in moves.items():
        figures = [[m if m in (None, ...) else {"moves": m} for m in own] for own in each]
        rows += by_hour(name, today=figures[0], other=figures[1])
    assert {name: (each["advised"], each["reason"]) for name, each in decided(rows).items()} == {
        "better-nearly-always": ("other", "moves less"),
        "worse-at-times": ("today", "none is known to be better"),
        "leaning": ("today", "12 of about 57 scenarios"),
        "failing-once": ("today", "none is known to be better"),
        "unknown-once": ("other", "moves less"),
        "scored-once-less": ("other", "moves less"),
        "scored-twice": ("today", "2 of 6 scenarios"),
    }


def test_of_several_scores_of_a_scenario_that_of_the_last_run_counts():
    rows = of("x", ("today", 5.0, 1.0), ("other", 3.0, 1.0))
    later = [{**each, "run_id": "2", "moved_partitions": 9.0} for each in rows if each["strategy"] == "other"]
    assert advised(rows) == {"x": "other"}
    assert advised([*later, *rows]) == {"x": "today"}


def test_figures_of_a_row_that_failed_do_not_count():
    rows = of("x", ("today", 5.0, 1.0), ("other", 3.0, 1.0))
    failed = [{**r, "status": "timeout"} if (r["hour"], r["strategy"]) == (3, "other") else r for r in rows]
    assert advised(failed) == {"x": "today"}


def test_the_runner_up_is_the_next_best_of_those_that_are_better():
    rows = of("x", ("today", 9.0, 1.0), ("best", 1.0, 1.0), ("second", 2.0, 1.0), ("worse", 12.0, 1.0))
    assert (decided(rows)["x"]["advised"], decided(rows)["x"]["runner_up"]) == ("best", "second")
    found = decided(rows, strategies=["second", "worse"])["x"]
    assert (found["advised"], found["runner_up"]) == ("second", None)


def test_a_group_that_stays_has_the_strategy_closest_to_a_switch():
    rows = of("x", ("today", 5.0, 2.0), ("close", 6.0, 1.0), ("far", 9.0, 2.0))
    assert decided(rows)["x"]["runner_up"] == "close"
    assert decided(rows)["x"]["reason"] == "close is better balanced, may move more"


@pytest.mark.parametrize(("moves", "chosen"), [(5.1, "even"), (6.0, "few")])
def test_of_several_better_strategies_less_than_the_margin_does_not_decide(moves, chosen):
    """``even`` has 2 % more moves than ``few``, or 20 %, and is better balanced."""
    assert advised(of("x", ("today", 9.0, 2.0), ("few", 5.0, 1.5), ("even", moves, 1.0))) == {"x": chosen}


def test_of_equals_in_what_decides_the_one_with_fewer_rounds_is_advised():
    rows = hourly(
        [row("x", s, m, 1.0, rounds) for s, m, rounds in (("today", 9, 1), ("first", 5, 2), ("lean", 5, 1))]
    )
    assert advised(rows) == {"x": "lean"}


@pytest.mark.parametrize(("margin", "chosen"), [(0.01, "today"), (0.05, "other")])
def test_a_gain_may_cost_a_margin_in_the_rest(margin, chosen):
    rows = of("x", ("today", 100.0, 2.0), ("other", 103.0, 1.0))
    assert advised(rows, margin=margin) == {"x": chosen}


@pytest.mark.parametrize("great", [20.0, 7.0])
def test_few_great_losses_outweigh_many_small_gains(great):
    """The mean is a quarter greater than today's, or 2 %."""
    other = [{"moves": great if hour == 7 else 4.92} for hour in range(12)]
    found = decided(by_hour("x", today=[{"moves": 5.0}] * 12, other=other))["x"]
    assert (found["advised"], found["p"]) == ("today", 1.0)


def test_great_losses_in_another_metric_are_a_price_though_there_are_few():
    other = [{"moves": 3.0, "imbalance": 4.0 if hour == 7 else 0.98} for hour in range(12)]
    found = decided(by_hour("x", today=[{"moves": 5.0}] * 12, other=other))["x"]
    assert (found["advised"], found["p"]) == ("today", 1.0)


def test_switches_come_first_with_the_greatest_gain_on_top():
    rows = [
        each
        for name, after in (("a", 5.0), ("b", 4.0), ("c", 2.0), ("d", 5.0))
        for each in of(name, ("today", 5.0, 1.0), ("other", after, 1.0))
    ]
    assert list(decided(rows)) == ["c", "b", "a", "d"]


def test_an_hour_without_one_of_the_deciding_figures_does_not_decide():
    rows = of("x", ("today", 5.0, 1.0), ("other", 3.0, 1.0))
    bad = [row("x", s, m) for s, m in (("today", 1.0), ("other", 90.0))]
    rows += [{**each, "scenario_id": "hour=99/x", "imbalance": None} for each in bad]
    rows = [{**each, "weighted_imbalance": each["imbalance"]} for each in rows]
    assert (decided(rows)["x"]["advised"], decided(rows)["x"]["scenarios"]) == ("other", 12)


def test_groups_without_rates_are_decided_about_by_their_partitions():
    rates = {"rated": (2.0, 1.0), "mixed": (1.0, 2.0), "bare": (None, None)}
    rows = [
        each
        for name, pair in rates.items()
        for strategy, weighted, counted in (("today", pair[0], 2.0), ("other", pair[1], 1.0))
        for each in hourly([row(name, strategy, 1.0, counted, weighted_imbalance=weighted)])
    ]
    found = decided(rows)
    assert advised(rows) == {"rated": "other", "mixed": "today", "bare": "other"}
    assert found["bare"]["reason"] == "is better balanced"
    assert found["bare"]["balance_change"] == pytest.approx(-1.0)


def test_the_metrics_that_decide_and_the_columns_that_name_a_group_can_be_chosen():
    rows = of("x", ("today", 5.0, 1.5), ("other", 6.0, 1.0), team="blue")
    assert advised(rows) == {"x": "today"}
    found = decided(rows, metrics=["imbalance"], per=["team", "group"])
    assert [(each["team"], each["advised"]) for each in found.values()] == [("blue", "other")]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"today": "tody"}, "scores: found none of 'tody', expected one of"),
        ({"strategies": ["oter"]}, "scores: found none of 'oter'"),
        ({"per": ["tem"]}, "per: found no column 'tem'"),
        ({"metrics": ["max_lag"]}, "scores: found no column 'max_lag'"),
        ({"metrics": ["load"]}, "metrics: found 'load', expected another name: decisions have columns of"),
        ({"per": ["group", "reason"]}, "decisions: found a second column 'reason'"),
        ({"today": "broken"}, "scores: found no scenario that broken completed"),
    ],
)
def test_what_scores_do_not_have_is_one_error(options, problem):
    own = {"load": 0.5, "reason": "none"}
    rows = [*of("x", ("today", 5.0, 1.5), ("other", 6.0, 1.0), **own), row("x", "broken")]
    with pytest.raises(InputError) as caught:
        decided(rows, **{"today": "today", **options})
    assert str(caught.value).startswith(problem)


def test_scores_of_different_fidelities_are_not_compared():
    rows = of("x", ("today", 5.0, 1.5), ("other", 6.0, 1.0))
    mixed = [{**each, "fidelity": "protocol"} if each["strategy"] == "other" else each for each in rows]
    with pytest.raises(
        InputError, match=r"scores of 12 scenarios, such as hour=.*: found .*expected scores made"
    ):
        decided(mixed)


# --- overload


def loaded(name, hours, count=12, **loads):
    """A group with the load of its busiest member in the first hours, and twice the moves but today."""
    return by_hour(
        name,
        **{
            strategy: [
                {"moves": 5.0 if strategy == "today" else 10.0, "utilization": load if hour < hours else 0.5}
                for hour in range(count)
            ]
            for strategy, load in loads.items()
        },
    )


def test_a_group_switches_to_be_relieved_of_overload_whatever_it_costs():
    rows = [
        *loaded("busy", 8, today=1.5, other=0.9, third=1.4),
        *loaded("calm", 8, today=0.9, other=0.5, third=0.9),
    ]
    found = decided(rows)
    assert advised(rows) == {"busy": "other", "calm": "today"}
    busy = found["busy"]
    assert (busy["reason"], busy["overloaded"]) == ("relieves an overload", 8)
    assert (busy["load_today"], busy["load_change"]) == (1.5, pytest.approx(-0.6))
    assert advised(rows, metrics=["moved_partitions"]) == {"busy": "today", "calm": "today"}


def test_hours_without_overload_say_nothing_against_a_relief_and_few_hours_show_none():
    assert advised(loaded("x", 8, 40, today=1.5, other=0.9)) == {"x": "other"}
    assert advised(loaded("x", 5, today=1.5, other=0.9)) == {"x": "today"}


def test_a_load_that_is_less_in_all_hours_relieves_the_few_with_overload():
    curve = [0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 0.9, 0.8, 0.7, 0.6, 0.5]
    rows = by_hour(
        "x",
        today=[{"moves": 5.0, "utilization": load} for load in curve],
        other=[{"moves": 10.0, "utilization": 0.8 * load} for load in curve],
    )
    assert advised(rows) == {"x": "other"}


@pytest.mark.parametrize(("load", "chosen"), [(1.41, "today"), (1.39, "other"), (0.9, "other")])
def test_less_than_a_fifth_of_the_overload_is_no_relief(load, chosen):
    assert advised(loaded("x", 12, today=1.5, other=load)) == {"x": chosen}


def test_a_relief_takes_a_fifth_away_in_the_worst_scenario_too():
    rows = loaded("x", 12, today=1.5, other=1.3)
    worst = {"today": 3.0, "other": 2.8}
    rows = [{**each, "utilization": worst[each["strategy"]]} if each["hour"] == 7 else each for each in rows]
    assert advised(rows) == {"x": "today"}


@pytest.mark.parametrize(("load", "chosen"), [(1.205, "few"), (1.3, "many")])
def test_of_two_that_relieve_a_group_alike_the_rest_decides(load, chosen):
    moves = {"today": 5.0, "many": 20.0, "few": 6.0}
    rows = loaded("busy", 12, today=1.8, many=1.2, few=load)
    assert advised([{**r, "moved_partitions": moves[r["strategy"]]} for r in rows]) == {"busy": chosen}


def test_of_strategies_that_end_an_overload_alike_the_one_with_the_least_load_is_chosen():
    rows = loaded("x", 12, today=1.3, able=0.95, free=0.8)
    assert advised(rows) == {"x": "free"}
    moves = {"today": 5.0, "able": 6.0, "free": 20.0}
    assert advised([{**r, "moved_partitions": moves[r["strategy"]]} for r in rows]) == {"x": "able"}


def balanced(rows, today=2.0, other=1.2):
    return [
        {**r, "moved_partitions": 5.0, "weighted_imbalance": today if r["strategy"] == "today" else other}
        for r in rows
    ]


@pytest.mark.parametrize(("load", "chosen"), [(0.5, "today"), (0.9, "other")])
def test_balance_counts_where_the_busiest_member_is_not_at_ease(load, chosen):
    assert advised(balanced(loaded("x", 12, today=load, other=0.6 * load))) == {"x": chosen}


def test_balance_alone_is_no_reason_for_a_group_that_stays_overloaded():
    assert advised(balanced(loaded("x", 12, today=1.9, other=1.85))) == {"x": "today"}


def test_a_gain_does_not_pay_for_an_overload_of_a_few_hours():
    for load, chosen in ((1.2, "today"), (0.6, "other")):
        rows = loaded("x", 3, today=0.9, other=load)
        moved = [{**r, "moved_partitions": 5.0 - 2 * (r["strategy"] == "other")} for r in rows]
        assert advised(moved) == {"x": chosen}


def test_a_switch_that_leaves_overload_and_saves_no_member_is_in_vain():
    rows = loaded("x", 12, today=1.9, other=1.5)
    for more, chosen in (({"today": 4.0, "other": 4.0}, "today"), ({"today": 6.0, "other": 1.0}, "other")):
        own = [{**r, "members": 4, "missing_members": more[r["strategy"]]} for r in rows]
        assert (advised(own), decided(own)["x"]["missing_members"]) == ({"x": chosen}, more[chosen])


def test_where_no_number_of_members_is_enough_infinitely_many_are_missing():
    rows = [{**r, "members": 4, "missing_members": 1.0} for r in loaded("x", 12, today=1.9, other=1.9)]
    never = [{**r, "missing_members": None} if r["hour"] == 3 else r for r in rows]
    assert decided(rows)["x"]["missing_members"] == 1
    assert decided(never)["x"]["missing_members"] == float("inf")


def test_where_stops_are_not_measured_and_loads_are_known_moves_do_not_decide():
    rows = [
        {**r, "moved_partitions": 5.0 - 2 * (r["strategy"] == "other"), "weighted_imbalance": 1.5}
        for r in loaded("x", 12, today=0.9, other=0.9)
    ]
    assert advised(rows) == {"x": "today"}
    unknown = [{**r, "utilization": None} if r["hour"] == 3 else r for r in rows]
    assert advised(unknown) == {"x": "other"}


# --- Spark


@pytest.mark.slow
def test_decide_is_lazy_and_gives_the_same_rows_in_the_documented_columns(spark):
    rows = [*loaded("busy", 8, today=1.5, other=0.9), *of("x", ("today", 5.0, 1.5), ("other", 3.0, 1.5))]
    scores = as_scores(rows)
    frame = spark.createDataFrame(scores).transform(decide, today="today")
    assert (
        frame.columns
        == decision_schema(scores.column_names, ["group"], ["moved_partitions", "imbalance"]).names
    )
    assert [each.asDict() for each in frame.collect()] == decisions(scores, Question("today")).to_pylist()


@pytest.mark.slow
def test_a_strategy_that_is_not_scored_and_that_nobody_knows_is_refused_before_a_job(spark):
    """Another run may have scored one that a plugin knows."""
    scores = score(frame(spark, {"x": scenario()}), ["range", "sticky"], fidelity="plan")
    with pytest.raises(InputError, match=r"scores: found none of 'rang', expected one of range, sticky"):
        decide(scores.where("status = 'ok'"), "rang")
    decide(scores, "range", strategies=["optimal"])


def test_the_columns_of_decisions_are_described():
    columns = ["moved_partitions", "utilization", "missing_members"]
    text = cleandoc(decision_schema.__doc__)
    for name in decision_schema(columns, ["group"], columns[:1]).names:
        assert f"``{name}``" in text or name in ("group", "low", "high") or name.startswith("moved")


# --- recorded runs

RECORDED = ROOT / "tests" / "data" / "decisions"
ASKED = {"5": ["stopped_partition_seconds", "weighted_optimality_gap"]}
"""The metrics that decide, where they are not those by default."""


@pytest.mark.parametrize("run", [str(number) for number in range(1, 8)])
def test_the_choices_of_recorded_runs_stay(run):
    """Seven runs of 20 to 120 groups, at both fidelities, with and without overload."""
    scores = pq.read_table(RECORDED / "scores.parquet", filters=[("run", "==", run)])
    known = [name for name in scores.column_names if scores[name].null_count < len(scores)]
    rows = [row for row in read_csv(RECORDED / "choices.csv").to_pylist() if str(row["run"]) == run]
    question = Question(rows[0]["today"], metrics=ASKED.get(run, ()))
    found = decisions(last_rows(scores.select(known)), question)
    assert dict(zip(found["group"].to_pylist(), found["advised"].to_pylist(), strict=True)) == {
        row["group"]: row["advised"] for row in rows
    }
