"""What each group is advised to do, from scores in files."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from rebalance_spark import findings
from rebalance_spark.advising import advice_table, as_file, check_ending
from rebalance_spark.parts import subjects_of
from rebalance_spark.report_tables import (
    notes,
    title_of,
    verdict,
)
from tests.rebalance_spark.score_files import found, row

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
    scored = stored([{**r, "team": "blue", "differing": None} for r in rows], more=texts)
    made = found(scored, baseline="today", **question).advice
    return made, advice_table(scored, made)


def test_a_group_switches_to_what_is_better_and_not_worse_in_anything_that_decides(stored):
    made, table = advised(stored)
    chosen = {r["scenario_id"]: (r["strategy"], r["reason"]) for r in table.to_pylist()}
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
    assert made.differences["two", "moved_partitions"].mean == -1.5
    assert made.differences["one", "rounds"].mean == 2.0
    assert made.worse == {"one": ["rounds"]}
    changes = {r["scenario_id"]: r["moved_partitions_change"] for r in table.to_pylist()}
    assert (changes["fewer-moves"], changes["the-same"], changes["unknown"]) == (-2.0, 0.0, None)


STOPPED = [pa.field("stopped_partition_seconds", pa.float64()), pa.field("duplicate_records", pa.float64())]


def stopped(name, strategy, seconds, moves=7.0, **fields):
    return row(name, strategy, moves, stopped_partition_seconds=seconds, **fields)


def test_stopped_time_decides_first_where_it_is_measured(stored):
    today = stopped("x", "today", 20.2, 12.0, duplicate_records=1.0)
    sticky = stopped("x", "sticky", 20.2, duplicate_records=1.0)
    cooperative = stopped("x", "cooperative", 7.3, rounds=2.0, duplicate_records=4.0)
    made = found(stored([cooperative, sticky, today], more=STOPPED), baseline="today").advice
    assert made.metrics == ["stopped_partition_seconds", "moved_partitions", "imbalance"]
    assert made.switches == [("cooperative", 1)]
    assert made.worse == {"cooperative": ["rounds", "duplicate_records"]}
    assert list(made.changes)[3:] == ["rounds", "duplicate_records"]
    planned = [{**each, "stopped_partition_seconds": None} for each in (cooperative, sticky, today)]
    without = found(stored(planned, more=STOPPED), baseline="today").advice
    assert (without.metrics, without.switches) == (made.metrics[1:], [("sticky", 1)])


def test_of_equals_in_what_decides_the_best_in_the_next_metric_is_advised(stored):
    figures = {"today": (20.0, 12.0, 5.0), "little": (10.0, 7.0, 4.0), "much": (10.09, 7.0, 1.0)}
    rows = [
        stopped("x", strategy, seconds, moves, duplicate_records=records, rounds=rounds)
        for strategy, (seconds, moves, records) in figures.items()
        for rounds in [2.0 if strategy == "much" else 2.01]
    ]
    assert found(stored(rows, more=STOPPED), baseline="today").advice.switches == [("much", 1)]


def test_what_becomes_worse_by_less_than_a_hundredth_is_no_price(stored):
    rows = [
        row(f"s-{n}", strategy, moves, rounds=rounds)
        for n in range(5)
        for strategy, moves, rounds in (("today", 5.0, 100.0), ("hair", 3.0, 100.9), ("price", 2.0, 101.1))
    ]
    scored = stored(rows)
    assert found(scored, baseline="today").advice.worse == {"price": ["rounds"]}
    assert found(scored.of(["today", "hair"]), baseline="today").advice.worse == {}


def test_a_strategy_without_figures_to_decide_by_is_refused(stored):
    scored = stored([{**row("x", "a", 1.0), "moved_partitions": None, "imbalance": None}])
    with pytest.raises(InputError, match="--baseline: found no figures of stopped_partition_seconds, moved"):
        found(scored, baseline="a")
    assert found(scored, baseline="a", deciding=["rounds"]).advice.metrics == ["rounds"]


HOURS = {  # today and other: moves in two hours
    "better-in-the-mean": ((5, 3), (1, 4)),
    "worse-in-the-mean": ((5, 3), (4, 7)),
    "failing-once": ((5, 3), (None, 1)),
    "unknown-once": ((None, 3), (1, 1)),
    "scored-once": ((5, 3), (3, ...)),
    "not-scored": ((5, 3), (..., ...)),
    "unknown": ((None, None), (1, 1)),
}


def hourly(stored):
    rows = [
        {
            **row(f"hour={hour}/a/{group}", s, moves and float(moves)),
            "hour": hour,
            "team": group[:3],
            "repairs": 1 + hour,
        }
        for group, each in HOURS.items()
        for s, of_hours in zip(("today", "other"), each, strict=True)
        for hour, moves in enumerate(of_hours)
        if moves is not ...
    ]
    kinds = {"hour": pa.int32(), "team": pa.string(), "repairs": pa.int32()}
    return stored(rows, more=[pa.field(name, kind) for name, kind in kinds.items()])


def test_the_hours_of_a_group_have_one_decision_by_their_means(stored):
    scored = hourly(stored)
    made = found(scored, baseline="today")
    table = advice_table(scored, made.advice).to_pylist()
    assert {r["group"]: (r["strategy"], r["reason"], r["moved_partitions_change"]) for r in table} == {
        "a/better-in-the-mean": ("other", "switch", -1.5),
        "a/worse-in-the-mean": ("today", "stay", 0.0),
        "a/failing-once": ("today", "stay", 0.0),
        "a/unknown-once": ("other", "switch", -2.0),
        "a/scored-once": ("other", "switch", -2.0),
        "a/not-scored": ("today", "stay", 0.0),
        "a/unknown": ("today", "no figures", None),
    }
    assert {(r["scenarios"], r["team"], r["repairs"]) for r in table} == {(2, g[:3], 3) for g in HOURS}
    assert "hour" not in table[0]
    assert verdict(made)[0] == (
        "switch 3 of 7 groups to other: -1.83 [-2, -1.5] moved_partitions, 0 [0, 0] imbalance"
    )
    assert title_of(made) == "14 scenarios of 7 groups, plan fidelity"


def test_advice_has_the_share_of_scenarios_that_give_the_same_alone(stored):
    table = advice_table(scored := hourly(stored), found(scored, baseline="today").advice).to_pylist()
    assert {r["group"].removeprefix("a/"): r["agree"] for r in table} == {
        "better-in-the-mean": 0.5,
        "worse-in-the-mean": 0.5,
        "failing-once": 0.5,
        "unknown-once": None,
        "scored-once": None,
        "not-scored": 1.0,
        "unknown": None,
    }


def of_hours(stored, hours):
    """The report on groups that have some scenarios each, and the sentence on those with one."""
    rows = [
        {**row(f"hour={hour}/{group}", s, moves), "hour": hour}
        for group, count in hours.items()
        for hour in range(count)
        for s, moves in (("today", 5.0), ("other", 3.0))
    ]
    made = found(stored(rows, more=[pa.field("hour", pa.int32())]), baseline="today")
    return made.left_out, verdict(made)[1:]


def test_groups_with_fewer_scenarios_than_others_are_named(stored):
    assert of_hours(stored, {"a": 2, "b": 2}) == ([], [])
    missing = "1 of 3 groups are missing under some keys, such as hours (b)"
    assert of_hours(stored, {"a": 2, "b": 1, "c": 2}) == ([missing], [])


def test_a_repaired_row_counts_once_and_not_in_each_draw(stored):
    more = [pa.field("draw", pa.int32()), pa.field("repairs", pa.int32())]
    rows = [{**row(f"draw={n}/a", name, 1.0), "draw": n, "repairs": 3} for n in (0, 1) for name in ("a", "b")]
    made = found(stored(rows, more=more), baseline="a")
    assert any(text.startswith("3 rows of the input were repaired, in 1 scenarios") for text in made.left_out)


def test_a_group_with_fewer_draws_has_not_fewer_scenarios_than_others(stored):
    ids = {f"draw={draw}/{group}": draw for group, members in (("a", 4), ("b", 2)) for draw in range(members)}
    rows = [{**row(name, "a", 1.0), "draw": draw} for name, draw in ids.items()]
    assert found(stored(rows, more=[pa.field("draw", pa.int32())])).left_out == []


def test_a_verdict_on_groups_with_one_scenario_says_so(stored):
    _, (sentence,) = of_hours(stored, {"a": 1, "b": 1, "c": 2})
    assert sentence == "2 of 3 groups have one scenario: score more hours, or --draws"
    alone = found(stored([row("x", s, 1.0) for s in ("today", "other")]), baseline="today")
    assert verdict(alone)[-1].startswith("Each decision rests on one scenario: ")


def test_an_hour_without_one_of_the_deciding_figures_does_not_decide(stored):
    rows = [
        {**row(f"hour={hour}/x", s, moves, imbalance), "hour": hour}
        for hour, imbalance, of_both in ((0, 1.0, (5.0, 3.0)), (1, None, (1.0, 9.0)))
        for s, moves in zip(("today", "other"), of_both, strict=True)
    ]
    made = found(stored(rows, more=[pa.field("hour", pa.int32())]), baseline="today")
    assert made.advice.switches == [("other", 1)]


@pytest.mark.parametrize(
    ("per", "names"),
    [
        ("scenario_id", [f"hour={hour}/a/{group}" for hour in (0, 1) for group in sorted(HOURS)]),
        ("team", ["bet", "fai", "not", "sco", "unk", "wor"]),
        ("group", [f"a/{group}" for group in sorted(HOURS)]),
        ("team,group", [f"team={group[:3]}/a/{group}" for group in sorted(HOURS)]),
    ],
)
def test_the_subjects_of_decisions_can_be_chosen(stored, per, names):
    assert subjects_of(hourly(stored), per).names == names


def test_ids_without_keys_are_subjects_by_themselves(stored):
    rows = [{**row(name, "a", 1.0), "team": "blue"} for name in ("x=1/b", "x=1/c")]
    scored = stored(rows, more=[pa.field("team", pa.string())])
    assert (subjects_of(scored).column, subjects_of(scored).names) == ("scenario_id", ["x=1/b", "x=1/c"])


def test_the_metrics_that_decide_can_be_chosen(stored):
    made, _ = advised(stored, deciding=["imbalance"])
    assert dict(made.switches) == {"two": 4}


RATED = [pa.field("weighted_imbalance", pa.float64()), pa.field("hour", pa.int32())]


def test_groups_without_rates_are_advised_by_their_partitions_and_named(stored):
    """Of a group with rates in some hours, these decide."""
    rates = {"rated": (2.0, 1.0), "mixed": (1.0, 2.0), "bare": (None, None)}
    rows = [
        {
            **row(f"hour={hour}/{name}", strategy, 1.0, counted),
            "weighted_imbalance": None if name == "mixed" and hour else weighted,
            "hour": hour,
        }
        for hour in range(2)
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
    changes = [(each["weighted_imbalance_change"], each["imbalance_change"]) for each in table.values()]
    assert list(zip(table, changes, strict=True)) == [
        ("bare", (None, -1.0)),
        ("mixed", (0.0, None)),
        ("rated", (-1.0, None)),
    ]
    assert verdict(made)[0] == (
        "switch 2 of 3 groups to other: 0 [0, 0] moved_partitions,"
        " -1 (one group: no interval) weighted_imbalance, -1 (one group: no interval) imbalance"
    )
    assert notes(made)[0].startswith("A group switches to a strategy that is better in at least one of")
    assert notes(made)[1] == (
        "1 of 3 groups have no rates (bare): imbalance, which counts partitions, decides about them in place"
        " of weighted_imbalance."
    )


def test_scores_without_any_rate_say_that_partitions_are_counted(stored):
    rows = [row("x", name, 1.0, balance) for name, balance in (("today", 2.0), ("other", 1.0))]
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
    assert made.rule.startswith("A scenario switches to a strategy that is better in imbalance. Of several")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_advice_is_a_file_with_the_columns_of_the_workload(stored, tmp_path, ending):
    _, table = advised(stored)
    path = tmp_path / f"advice{ending}"
    path.write_bytes(as_file(table, ending))
    read = pa.csv.read_csv(path) if ending == ".csv" else pq.read_table(path)
    assert read.column_names[:5] == ["scenario_id", "team", "today", "strategy", "reason"]
    assert read.num_rows == len(GROUPS)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"--advice: found .*advice.txt, expected a file that ends with"):
        check_ending(tmp_path / "advice.txt")
