"""What each group is advised to do, from scores in files."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from rebalance_lab.verdicts.reasons import metric_of
from rebalance_spark import findings
from rebalance_spark.advising import Advice, Held
from rebalance_spark.parts import subjects_of
from rebalance_spark.report_tables import advice_table, as_file, check_ending
from rebalance_spark.sentences import notes, title_of, verdict
from tests.rebalance_spark.score_files import HOUR, found, hourly, row

GROUPS = {  # today, one, two: moves and imbalance
    "fewer-moves": ((5, 1.5), (3, 1.5), (4, 1.0)),
    "even-moves": ((5, 1.5), (3, 1.5), (3, 1.2)),
    "a-price": ((5, 1.5), (3, 1.6), (6, 1.0)),
    "a-hair": ((5, 1.5), (3, 1.51), (6, 1.0)),
    "the-same": ((5, 1.5), (4.96, 1.5), (5, 1.49)),
    "unknown": (None, (3, 1.5), (4, 1.0)),
    "failing": ((5, 1.5), None, (4, 1.5)),
}


def advised(stored, **question):
    rows = [
        row(
            name,
            strategy,
            *((figures and map(float, figures)) or [None]),
            rounds=3.0 if strategy == "one" else 1.0,
        )
        for name, each in GROUPS.items()
        for strategy, figures in zip(("today", "one", "two"), each, strict=True)
    ]
    texts = [pa.field(name, pa.string()) for name in ("team", "differing")]
    scored = stored([{**r, "team": "blue", "differing": None} for r in hourly(rows)], more=[*texts, HOUR])
    made = found(scored, baseline="today", **question).advice
    return made, advice_table(scored, made)


def test_a_group_switches_to_what_is_better_and_not_worse_in_anything_that_decides(stored):
    made, table = advised(stored)
    chosen = {r["group"]: (r["strategy"], r["reason"]) for r in table.to_pylist()}
    assert chosen == {
        "fewer-moves": ("one", "switch"),
        "even-moves": ("two", "switch"),
        "a-price": ("today", "stay"),
        "a-hair": ("one", "switch"),
        "the-same": ("today", "stay"),
        "unknown": ("today", "no figures"),
        "failing": ("two", "switch"),
    }
    assert made.switches == [("one", 2), ("two", 2)]
    assert made.change("two", "moved_partitions").value == pytest.approx(-1.5)
    assert made.change("one", "rounds").value == pytest.approx(2.0)
    assert made.worse == {"one": ["rounds"], "two": []}
    changes = {r["group"]: r["moved_partitions_change"] for r in table.to_pylist()}
    assert (changes["fewer-moves"], changes["the-same"], changes["unknown"]) == (-2.0, 0.0, None)


def test_a_group_with_few_scenarios_stays_and_says_how_many_it_has(stored):
    pair = [row("x", "today", 5.0), row("x", "other", 1.0), row("y", "today"), row("y", "other", 1.0)]
    for hours, reasons in (
        (5, ["not enough data: 5 of 6 scenarios", "no figures"]),
        (6, ["switch", "no figures"]),
    ):
        scored = stored(hourly(pair, hours), more=[HOUR])
        made = found(scored, baseline="today")
        assert advice_table(scored, made.advice).column("reason").to_pylist() == reasons
        assert np.isnan(made.advice.agree).tolist() == [hours < 6, True]


STOPPED = [pa.field("stopped_partition_seconds", pa.float64()), pa.field("duplicate_records", pa.float64())]


def stopped(name, strategy, seconds, moves=7.0, **fields):
    return row(name, strategy, moves, stopped_partition_seconds=seconds, **fields)


def test_stopped_time_decides_first_where_it_is_measured(stored):
    today = stopped("x", "today", 20.2, 12.0, duplicate_records=1.0)
    sticky = stopped("x", "sticky", 20.2, duplicate_records=1.0)
    cooperative = stopped("x", "cooperative", 7.3, rounds=2.0, duplicate_records=4.0)
    rows = hourly([cooperative, sticky, today])
    made = found(stored(rows, more=[*STOPPED, HOUR]), baseline="today").advice
    assert made.metrics == ["stopped_partition_seconds", "imbalance"]
    assert made.switches == [("cooperative", 1)]
    assert made.worse == {"cooperative": ["rounds", "duplicate_records"]}
    assert list(made.changes)[2:] == ["moved_partitions", "rounds", "duplicate_records"]
    planned = [{**each, "stopped_partition_seconds": None} for each in rows]
    without = found(stored(planned, more=[*STOPPED, HOUR]), baseline="today").advice
    assert (without.metrics, without.switches) == (["moved_partitions", "imbalance"], [("sticky", 1)])


PARTS = ("waiting", "waiting_heartbeat", "messages")


def waiting(strategy, seconds, parts, rounds=1.0):
    """A score with parts of the stopped time, in seconds."""
    parts = {metric_of(part): value for part, value in zip(PARTS, parts, strict=True)}
    return stopped("x", strategy, seconds, rounds=rounds, **parts)


def test_what_partitions_wait_for_is_said_of_strategies_that_stop_them_longer_than_today(stored):
    rows = [
        waiting("today", 10.0, (0.0, 0.0, 10.0)),
        waiting("alike", 10.4, (0.0, 0.0, 10.4)),
        waiting("cooperative", 20.0, (18.0, 16.0, 2.0), rounds=2.0),
        waiting("slow", 12.0, (3.0, 3.0, 9.0)),
    ]
    more = [*STOPPED, *(pa.field(metric_of(part), pa.float64()) for part in PARTS)]
    said = [line for line in notes(found(stored(rows, more=more), baseline="today")) if "stop longer" in line]
    assert said == [
        "Under cooperative, partitions stop longer than under today (20 for 10 stopped_partition_seconds in"
        " the mean): in 80 % of this time, rounds waited for members that had yet to learn of them in their"
        " next heartbeats; there are 2 rounds for 1, as partitions that move wait for a second one.",
        "Under slow, partitions stop longer than under today (12 for 10 stopped_partition_seconds in the"
        " mean): in 75 % of this time, assignments were under way.",
    ]


def test_scores_without_parts_of_the_stopped_time_do_not_say_what_partitions_wait_for(stored):
    rows = [stopped("x", "today", 10.0), stopped("x", "slow", 20.0)]
    assert not any(
        "stop longer" in line for line in notes(found(stored(rows, more=STOPPED), baseline="today"))
    )


def test_of_equals_in_what_decides_the_best_in_the_next_metric_is_advised(stored):
    figures = {"today": (20.0, 12.0, 5.0), "little": (10.0, 7.0, 4.0), "much": (10.09, 7.0, 1.0)}
    rows = [
        stopped("x", strategy, seconds, moves, duplicate_records=records, rounds=rounds)
        for strategy, (seconds, moves, records) in figures.items()
        for rounds in [2.0 if strategy == "much" else 2.01]
    ]
    scored = stored(hourly(rows), more=[*STOPPED, HOUR])
    assert found(scored, baseline="today").advice.switches == [("much", 1)]


def test_what_becomes_worse_by_less_than_the_margin_is_no_price(stored):
    rows = [
        row("x", strategy, moves, rounds=rounds)
        for strategy, moves, rounds in (("today", 5.0, 100.0), ("hair", 3.0, 104.0), ("price", 2.0, 106.0))
    ]
    scored = stored(hourly(rows), more=[HOUR])
    assert found(scored, baseline="today").advice.worse == {"price": ["rounds"]}
    assert found(scored.of(["today", "hair"]), baseline="today").advice.worse == {"hair": []}


def test_a_strategy_without_figures_to_decide_by_is_refused(stored):
    scored = stored([{**row("x", "a", 1.0), "moved_partitions": None, "imbalance": None}])
    with pytest.raises(InputError, match="--baseline: found no figures of stopped_partition_seconds, moved"):
        found(scored, baseline="a")
    assert found(scored, baseline="a", deciding=["rounds"]).advice.metrics == ["rounds"]


def test_a_strategy_that_completed_no_scenario_is_refused(stored):
    scored = stored([row("x", "a"), row("x", "b", 1.0)])
    with pytest.raises(InputError, match="--baseline: found no scenario that a completed, expected some;"):
        found(scored, baseline="a")


HOURS = {  # today and other: moves in twelve hours
    "better-nearly-always": ((5,) * 12, (*(1,) * 11, 6)),
    "worse-at-times": ((5,) * 12, (*(1,) * 6, *(25,) * 6)),
    "leaning": ((5,) * 12, (*(3,) * 6, *(7,) * 6)),
    "failing-once": ((5,) * 12, (None, *(1,) * 11)),
    "unknown-once": ((None, *(3,) * 11), (1,) * 12),
    "scored-once-less": ((5,) * 12, (*(3,) * 11, ...)),
    "scored-twice": ((5,) * 12, (*(3,) * 2, *[...] * 10)),
    "not-scored": ((5,) * 12, (...,) * 12),
    "unknown": ((None,) * 12, (1,) * 12),
}


def of_hours(stored):
    rows = [
        {
            **row(f"hour={hour}/a/{group}", s, moves and float(moves)),
            "hour": hour,
            "team": group[:3],
            "repairs": 1 + hour,
        }
        for group, each in HOURS.items()
        for s, figures in zip(("today", "other"), each, strict=True)
        for hour, moves in enumerate(figures)
        if moves is not ...
    ]
    kinds = {"hour": pa.int32(), "team": pa.string(), "repairs": pa.int32()}
    return stored(rows, more=[pa.field(name, kind) for name, kind in kinds.items()])


def test_the_hours_of_a_group_have_one_decision_by_their_pairs(stored):
    scored = of_hours(stored)
    made = found(scored, baseline="today")
    table = advice_table(scored, made.advice).to_pylist()
    assert {r["group"]: (r["strategy"], r["reason"], r["agree"]) for r in table} == {
        "a/better-nearly-always": ("other", "switch", 11 / 12),
        "a/worse-at-times": ("today", "stay", 6 / 12),
        "a/leaning": ("today", "not enough data: 12 of about 57 scenarios", 6 / 12),
        "a/failing-once": ("today", "stay", 1.0),
        "a/unknown-once": ("other", "switch", 1.0),
        "a/scored-once-less": ("other", "switch", 1.0),
        "a/scored-twice": ("today", "not enough data: 2 of 6 scenarios", None),
        "a/not-scored": ("today", "stay", 1.0),
        "a/unknown": ("today", "no figures", None),
    }
    assert {(r["scenarios"], r["team"], r["repairs"]) for r in table} == {(12, g[:3], 78) for g in HOURS}
    assert "hour" not in table[0]
    assert verdict(made)[1:] == [
        "leave 6 of 9 groups as they are, with today (1 of them have no figures)",
        "3 of 9 groups (a/leaning, a/scored-twice and a/unknown) do not have enough data for a switch yet:"
        " one with 12 scenarios needs about 57 (more hours by --keys, or score --draws 5)",
    ]
    assert title_of(made) == "108 scenarios of 9 groups, plan fidelity"


def test_a_group_with_rates_is_not_counted_under_a_value_under_which_it_has_no_scenarios(stored):
    more = [pa.field("weighted_imbalance", pa.float64()), pa.field("batch", pa.string()), HOUR]
    rows = [
        {
            **row(f"batch={batch}/hour={hour}/{name}", strategy, 1.0, balance),
            "weighted_imbalance": balance if name == "rated" else None,
            "batch": batch,
            "hour": hour,
        }
        for name, batches in (("rated", ["5ms"]), ("bare", ["5ms", "700ms"]))
        for batch in batches
        for strategy, balance in (("today", 2.0), ("other", 1.0))
        for hour in range(12)
    ]
    question = {"baseline": "today", "deciding": ["weighted_imbalance"], "across": "batch"}
    advice = found(stored(rows, more=more), **question).advice
    assert dict(zip(advice.subjects.names, advice.holds, strict=True)) == {
        "bare": "all",
        "rated": "5ms, (700ms)",
    }


def test_gains_of_a_day_order_the_switches_and_are_summed(stored):
    rows = [
        {**row(f"hour={hour}/{name}", strategy, moves + 0.1 * (hour % 3)), "hour": hour, "deployments": times}
        for name, gain, times in (("rarely", 4.0, 1), ("often", 1.0, 6), ("unknown", 2.0, None))
        for hour in range(12)
        for strategy, moves in (("today", 9.0), ("other", 9.0 - gain))
    ]
    scored = stored(rows, more=[HOUR, pa.field("deployments", pa.int32())])
    made = found(scored, baseline="today", deciding=["moved_partitions"], per_day="deployments")
    table = advice_table(scored, made.advice).to_pylist()
    changes = {r["group"]: r["moved_partitions_change_per_day"] for r in table}
    assert list(changes) == ["often", "rarely", "unknown"]
    assert changes == {
        "often": pytest.approx(-6.0, abs=0.01),
        "rarely": pytest.approx(-4.0, abs=0.01),
        "unknown": None,
    }
    each = found(scored, baseline="today", deciding=["moved_partitions"], per_day="2").advice
    assert each.change_per_day("moved_partitions").value == pytest.approx(-2 * 7.0, abs=0.01)
    (line,) = [line for line in verdict(made) if "in a day" in line]
    assert line.startswith("all switches together, in a day: -10")
    assert line.endswith("moved_partitions, without 1 of which it is not known how often")


@pytest.mark.parametrize(("given", "wrong"), [("0", "'0'"), ("nothing", "'nothing'"), ("hour=x", "hour=x")])
def test_how_often_a_day_is_a_number_or_a_column(given, wrong, stored):
    scored = stored(hourly([row("x", "today", 5.0), row("x", "other", 1.0)]), more=[HOUR])
    with pytest.raises(InputError, match=f"--per-day: found .*{wrong}"):
        found(scored, baseline="today", per_day=given)


def test_the_runner_up_is_the_next_best_of_those_that_are_better(stored):
    figures = {"today": 9.0, "best": 1.0, "second": 2.0, "worse": 12.0}
    scored = stored(hourly([row("x", name, moves) for name, moves in figures.items()]), more=[HOUR])
    (only,) = advice_table(scored, found(scored, baseline="today").advice).to_pylist()
    assert (only["strategy"], only["runner_up"]) == ("best", "second")
    scored = scored.of(["today", "second", "worse"])
    (only,) = advice_table(scored, found(scored, baseline="today").advice).to_pylist()
    assert (only["strategy"], only["runner_up"]) == ("second", "today")


@pytest.mark.parametrize(("moves", "chosen"), [(5.1, "even"), (6.0, "few")])
def test_of_several_better_strategies_less_than_the_margin_does_not_decide(moves, chosen, stored):
    """``even`` has 2 % more moves than ``few``, or 20 %, and is better balanced."""
    rows = [
        {**row(f"hour={hour}/x", strategy, figure, balance), "hour": hour}
        for hour in range(12)
        for strategy, figure, balance in (("today", 9.0, 2.0), ("few", 5.0, 1.5), ("even", moves, 1.0))
    ]
    assert found(stored(rows, more=[HOUR]), baseline="today").advice.switches == [(chosen, 1)]


def test_what_holds_groups_back_that_could_gain_is_told(stored):
    """With twelve hours, ``other`` is known to be better balanced, and its moves are anything."""
    rows = [
        {**row(f"hour={hour}/{name}", strategy, own[hour % 2], balance), "hour": hour}
        for name, others in (("held", (11.0, 7.0)), ("switches", (9.0, 9.0)))
        for hour in range(12)
        for strategy, balance, own in (("today", 2.0, (9.0, 9.0)), ("other", 1.0, others))
    ]
    made = found(stored(rows, more=[HOUR]), baseline="today")
    assert made.advice.switches == [("other", 1)]
    rest = {"moved_partitions": 0.0}, {"moved_partitions": 0.5}
    assert made.advice.held == [Held("other", ["held"], {"imbalance": -1.0}, *rest)]
    (line,) = [line for line in notes(made) if "though" in line]
    assert line == (
        "1 group (held) stays though other is known to be better (-1 imbalance): it may be worse by more than"
        " 5 % in the rest (0 moved_partitions, worse in 50 % of the scenarios). --decide imbalance decides"
        " without."
    )


def test_a_group_that_stays_has_the_strategy_closest_to_a_switch_with_its_changes(stored):
    rows = hourly([row("x", "today", 5.0, 2.0), row("x", "close", 6.0, 1.0), row("x", "far", 9.0, 2.0)])
    scored = stored(rows, more=[HOUR])
    (found_row,) = advice_table(scored, found(scored, baseline="today").advice).to_pylist()
    assert (found_row["strategy"], found_row["moved_partitions_change"]) == ("today", 0)
    assert found_row["runner_up"] in ("close", "far")
    assert (
        found_row["runner_up_moved_partitions_change"] == {"close": 1.0, "far": 4.0}[found_row["runner_up"]]
    )


def test_scenarios_with_members_that_have_too_much_are_counted(stored):
    busy = {"today": [1.2, 1.0, 0.9], "other": [0.8, 0.9, 0.7]}
    rows = [
        row(f"hour={hour}/x", strategy, 5.0) | {"hour": hour, "utilization": figures[hour]}
        for strategy, figures in busy.items()
        for hour in range(3)
    ]
    made = found(stored(rows, more=[HOUR, pa.field("utilization", pa.float64())]), baseline="today")
    assert made.overloaded == {"other": 0, "today": 1}
    (line,) = [line for line in notes(made) if "busiest" in line]
    assert line == (
        "The busiest member has more than it can handle in 1 of 3 scenarios under today, none under other."
    )


def test_great_losses_in_another_metric_are_a_price_though_there_are_few(stored):
    rows = [
        {**row(f"hour={hour}/x", strategy, moves, loss if hour == 7 else balance), "hour": hour}
        for hour in range(12)
        for strategy, moves, balance, loss in (("today", 5.0, 1.0, 1.0), ("other", 3.0, 0.98, 4.0))
    ]
    made = found(stored(rows, more=[HOUR]), baseline="today").advice
    assert (made.switches, made.chances.tolist()) == ([], [1.0])


def test_switches_come_first_with_the_greatest_gain_on_top(stored):
    rows = [
        row(name, strategy, moves)
        for name, after in (("a", 5.0), ("b", 4.0), ("c", 2.0), ("d", 5.0))
        for strategy, moves in (("today", 5.0), ("other", after))
    ]
    scored = stored(hourly(rows, 24), more=[HOUR])
    table = advice_table(scored, found(scored, baseline="today").advice)
    assert table.column("group").to_pylist() == ["c", "b", "a", "d"]
    assert max(table.column("p").to_pylist()[:2]) < 0.001
    lows, highs = (table.column(f"moved_partitions_{end}").to_pylist() for end in ("low", "high"))
    changes = table.column("moved_partitions_change").to_pylist()
    assert all(low <= change <= high for low, change, high in zip(lows, changes, highs, strict=True))


def test_a_decision_says_under_which_values_of_a_column_it_holds(stored):
    moves = {  # today and other, under each value
        "always": ((5.0, 3.0), (5.0, 4.0)),
        "fast": ((5.0, 3.0), (5.0, 5.0)),
        "few": ((5.0, 3.0), (5.0, 3.0)),
        "few-alike": ((5.0, 5.0), (5.0, 5.0)),
    }
    rows = [
        {**row(f"batch={value}/hour={hour}/{name}", strategy, figure), "batch": value, "hour": hour}
        for name, each in moves.items()
        for value, pair in zip(("5ms", "700ms"), each, strict=True)
        for strategy, figure in zip(("today", "other"), pair, strict=True)
        for hour in range(3 if name.startswith("few") and value == "700ms" else 12)
    ]
    scored = stored(rows, more=[pa.field("batch", pa.string()), HOUR])
    advice = found(scored, baseline="today", across="batch").advice
    table = advice_table(scored, advice).to_pylist()
    assert {r["group"]: (r["strategy"], r["holds"]) for r in table} == {
        "always": ("other", "all"),
        "fast": ("other", "5ms"),
        "few": ("other", "5ms, (700ms)"),
        "few-alike": ("today", "5ms, (700ms)"),
    }
    assert (
        "1 of 3 switches are advised under each value of batch by itself (--advice FILE has the values)."
        in (notes(found(scored, baseline="today", across="batch")))
    )
    with pytest.raises(InputError, match="--across: found 'bach', expected one of batch, hour"):
        found(scored, baseline="today", across="bach")


def test_of_many_switches_the_share_of_those_by_chance_can_be_set(stored):
    figures = np.random.default_rng(3).lognormal(0, 0.3, (2, 200, 12)) * [[[1.0]], [[0.9]]]
    rows = [
        {**row(f"hour={hour}/{group}", strategy, 1.0, float(value)), "hour": hour}
        for strategy, groups in zip(("today", "other"), figures, strict=True)
        for group, values in enumerate(groups)
        for hour, value in enumerate(values)
    ]
    scored = stored(rows, more=[HOUR])
    counts = [
        sum(n for _, n in found(scored, baseline="today", rate=rate).advice.switches) for rate in (0.05, 0.5)
    ]
    assert counts[0] < counts[1]


def test_a_verdict_on_scenarios_alone_says_that_several_are_needed(stored):
    alone = found(stored([row("x", s, 1.0) for s in ("today", "other")]), baseline="today")
    assert verdict(alone)[-1] == (
        "Each decision rests on one scenario, and takes 6: score more hours (--keys) or --draws, or decide"
        " --per COLUMN"
    )


def test_an_hour_without_one_of_the_deciding_figures_does_not_decide(stored):
    good, bad = (
        [row("x", s, moves) for s, moves in each]
        for each in ((("today", 5.0), ("other", 3.0)), (("today", 1.0), ("other", 9.0)))
    )
    rows = hourly(good) + [{**r, "scenario_id": "hour=9/x", "hour": 9, "imbalance": None} for r in bad]
    made = found(stored(rows, more=[HOUR]), baseline="today")
    assert made.advice.switches == [("other", 1)]


@pytest.mark.parametrize(
    ("per", "names"),
    [
        (
            "scenario_id",
            sorted(f"hour={h}/a/{group}" for h in range(12) for group in HOURS),
        ),
        ("team", ["bet", "fai", "lea", "not", "sco", "unk", "wor"]),
        ("group", [f"a/{group}" for group in sorted(HOURS)]),
        ("team,group", [f"team={group[:3]}/a/{group}" for group in sorted(HOURS)]),
    ],
)
def test_the_subjects_of_decisions_can_be_chosen(stored, per, names):
    assert subjects_of(of_hours(stored), per).names == names


def test_ids_without_keys_are_subjects_by_themselves(stored):
    rows = [{**row(name, "a", 1.0), "team": "blue"} for name in ("x=1/b", "x=1/c")]
    scored = stored(rows, more=[pa.field("team", pa.string())])
    assert (subjects_of(scored).column, subjects_of(scored).names) == ("scenario_id", ["x=1/b", "x=1/c"])


def test_the_metrics_that_decide_can_be_chosen(stored):
    made, _ = advised(stored, deciding=["imbalance"])
    assert dict(made.switches) == {"two": 4}


RATED = [pa.field("weighted_imbalance", pa.float64()), HOUR]


def test_groups_without_rates_are_advised_by_their_partitions_and_named(stored):
    """Of a group with rates in some hours, these decide."""
    rates = {"rated": (2.0, 1.0), "mixed": (1.0, 2.0), "bare": (None, None)}
    rows = [
        {
            **row(f"hour={hour}/{name}", strategy, 1.0, counted),
            "weighted_imbalance": None if name == "mixed" and hour > 5 else weighted,
            "hour": hour,
        }
        for hour in range(12)
        for name, each in rates.items()
        for strategy, weighted, counted in (("today", each[0], 2.0), ("other", each[1], 1.0))
    ]
    scored = stored(rows, more=RATED)
    made = found(scored, baseline="today")
    advice = made.advice
    table = {each["group"]: each for each in advice_table(scored, advice).to_pylist()}
    assert {name: each["reason"] for name, each in table.items()} == {
        "rated": "switch",
        "mixed": "stay",
        "bare": "switch",
    }
    assert advice.counted == ["bare"]
    assert {
        n: (each["weighted_imbalance_change"], each["imbalance_change"]) for n, each in table.items()
    } == {
        "bare": (None, pytest.approx(-1.0)),
        "mixed": (0.0, None),
        "rated": (pytest.approx(-1.0), None),
    }
    assert verdict(made)[0].startswith(
        "switch 2 of 3 groups to other (bare and rated): -1 weighted_imbalance"
    )
    assert notes(made)[0].startswith("A group switches to a strategy only if that is known to be better in")
    assert notes(made)[1] == (
        "1 of 3 groups have no rates (bare): imbalance, which counts partitions, decides about them in place"
        " of weighted_imbalance."
    )


def test_scores_without_any_rate_say_that_partitions_are_counted(stored):
    rows = hourly([row("x", name, 1.0, balance) for name, balance in (("today", 2.0), ("other", 1.0))])
    made = found(stored(rows, more=RATED), baseline="today")
    assert made.advice.switches == [("other", 1)]
    assert made.left_out == [
        "No scenario has rates: the balance is by partitions, imbalance in place of weighted_imbalance."
    ]
    assert found(stored(rows, more=RATED), baseline="today", balance="imbalance").left_out == []


def test_balance_is_by_rate_where_the_scores_have_it(stored):
    more = [pa.field("weighted_imbalance", pa.float64())]
    rows = [row("x", "a", 1.0)]
    assert found(stored(rows, more=more)).balance == "imbalance"
    assert found(stored([{**rows[0], "weighted_imbalance": 1.5}], more=more)).balance == "weighted_imbalance"


def test_higher_figures_are_better_where_the_metric_says_so(stored, monkeypatch):
    monkeypatch.setattr(findings, "higher_is_better", lambda name: name == "imbalance")
    made, _ = advised(stored, deciding=["imbalance"])
    assert dict(made.switches) == {"one": 1}
    assert made.rules[0].startswith(
        "A group switches to a strategy only if that is known to be better in imbalance by more than 1 %. All"
    )


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_advice_is_a_file_with_the_columns_of_the_workload(stored, tmp_path, ending):
    _, table = advised(stored)
    path = tmp_path / f"advice{ending}"
    path.write_bytes(as_file(table, ending))
    read = pa.csv.read_csv(path) if ending == ".csv" else pq.read_table(path)
    assert read.column_names[:6] == ["group", "scenarios", "agree", "team", "today", "strategy"]
    assert read.num_rows == len(GROUPS)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"--advice: found .*advice.txt, expected a file that ends with"):
        check_ending(tmp_path / "advice.txt")


def test_the_strategies_to_switch_to_come_by_the_number_of_their_groups():
    advice = SimpleNamespace(
        chosen=np.array([0, 2, 1, 2, 0, 0, 2]), strategies=["today", "one", "two"], baseline="today"
    )
    assert Advice.switches.fget(advice) == [("two", 3), ("one", 1)]


def test_a_day_has_the_sum_of_what_was_seen_and_the_greatest_gain_is_on_top(stored):
    """Also where groups differ a hundredfold in size, and the change of each is drawn towards the others."""
    gains = {"great": (4_000.0, 3_000.0), "small": (40.0, 39.0), "middle": (400.0, 200.0)}
    rows = [
        {**row(f"hour={hour}/{name}", strategy, moves * (1 + hour % 3 / 10), 1.0), "hour": hour}
        for name, pair in gains.items()
        for strategy, moves in zip(("today", "other"), pair, strict=True)
        for hour in range(12)
    ]
    scored = stored(rows, more=[HOUR])
    made = found(scored, baseline="today", per_day="2").advice
    table = advice_table(scored, made).to_pylist()
    assert [each["group"] for each in table] == ["great", "middle", "small"]
    assert [each["moved_partitions_seen_change"] for each in table] == pytest.approx([-1_100, -220, -1.1])
    whole = made.change_per_day("moved_partitions")
    assert whole.value == pytest.approx(-2 * 1_321.1)
    assert whole.low < whole.value < whole.high
