"""Scores in files become findings without Spark: what is compared, differences, parts, and advice."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from rebalance_spark import findings
from rebalance_spark.advising import advice_table, as_file, check_ending
from rebalance_spark.findings import Question, found_in
from rebalance_spark.paired import MOST_BLOCKS, difference
from rebalance_spark.parts import MOST_PARTS, parts_of, subjects_of
from rebalance_spark.report_tables import (
    differences_table,
    notes,
    parts_differences_table,
    title_of,
    verdict,
)
from rebalance_spark.schema import SCORE_COLUMNS, arrow_schema
from rebalance_spark.stored import ScoredColumn as Column
from rebalance_spark.stored import check_paired, metric_columns, scored_of, stored_scores
from tests.rebalance_spark.score_files import METRICS, row, write


@pytest.fixture
def stored(tmp_path):
    """The scores of rows, as they are read from a file."""

    def store(rows, more=()):
        write(tmp_path / "scores", rows, more=more)
        return stored_scores(tmp_path / "scores")

    return store


def found(scored, **question):
    return found_in(scored, Question(**question))


# --- the start


@pytest.mark.parametrize(
    ("moves", "sentence"),
    [
        (
            [9, 0, 7, None],
            "In 2 of 3 examined scenarios, the owners at the start are not those that range gives",
        ),
        ([9, 0, 7, 2], "In 3 of 4 scenarios, the owners at the start are not those that range gives"),
        ([0, 0, 0, 0], ""),
        ([None] * 4, ""),
    ],
)
def test_a_strategy_that_did_not_make_the_owners_is_said_to_be_charged_for_them(stored, moves, sentence):
    rows = [row(f"s-{n}", "range", 3.0, start_moves=count) for n, count in enumerate(moves)]
    rows += [row(f"s-{n}", "sticky", 2.0, start_moves=0) for n in range(4)]
    scored = stored(rows)
    assert [line.partition(";")[0] for line in found(scored, baseline="range").left_out] == [sentence] * bool(
        sentence
    )
    for baseline in ("sticky", ""):
        assert not found(scored, baseline=baseline).left_out


def test_the_start_of_scores_is_named(stored):
    rows = [row("s", name, 3.0, start_assignor="range", start_moves=0) for name in ("range", "sticky")]
    assert found(stored(rows)).left_out == ["Running groups start with the assignment of range (--start)."]


# --- a fair comparison


def same_code(failing):
    """Two strategies with the same figures, of which one fails on some scenarios, and another one."""
    rows = []
    for n in range(40):
        rows += [row(f"s-{n:02}", name, float(n), 1 + n / 10) for name in ("good", "same")]
        rows.append(row(f"s-{n:02}", "crashing", None if n in failing else float(n), 1 + n / 10))
    return rows


def test_strategies_with_the_same_figures_have_the_same_means_if_one_fails_on_some(stored):
    made = found(stored(same_code(failing=range(8))))
    assert (made.scenarios, made.common) == (40, 32)
    for metric in METRICS:
        assert len({replace(made.figures[metric, s]) for s in made.strategies}) == 1
    assert made.figures["moved_partitions", "good"].mean == np.mean(range(8, 40))
    assert made.left_out == [
        "8 scenarios are left out, because not all strategies have figures:"
        " crashing failed in 8 (s-00, s-01, s-02, ...)"
    ]


def test_a_strategy_that_completed_nothing_is_named_and_takes_nothing_from_the_others(stored):
    made = found(stored(same_code(failing=range(40))))
    assert made.common == 40
    assert made.left_out == ["crashing completed no scenario and is not compared"]
    assert [(p.strategy, p.on_front) for p in made.front] == [("good", True), ("same", True)]


def test_a_metric_that_a_strategy_never_has_is_compared_among_the_others(stored):
    rows = [row(f"s-{n}", s, 1.0, rounds=None if s == "c" or (s, n) == ("b", 0) else 2.0)
            for n in range(5) for s in "abc"]  # fmt: skip
    made = found(stored(rows))
    assert {key: made.figures[key].rows for key in made.figures if key[0] == "rounds"} == {
        ("rounds", "a"): 4,
        ("rounds", "b"): 4,
    }


def test_some_strategies_can_be_compared_alone(stored):
    scored = stored(same_code(failing=range(8)))
    made = found(scored.of(["same", "good"]))
    assert (made.strategies, made.common, made.left_out) == (["same", "good"], 40, [])
    assert made.figures["moved_partitions", "same"].mean == np.mean(range(40))
    with pytest.raises(InputError, match="strategy: found 'gone', expected one of crashing, good, same"):
        scored.of(["gone"])


PARTLY = [row(f"s-{n}", s, 1.0) for n in range(5) for s in ("a", "b", "few") if s != "few" or n < 2]


def test_a_strategy_that_is_scored_for_few_scenarios_is_named_and_does_not_take_the_others_from_the_rest(
    stored,
):
    scored = stored(PARTLY)
    made = found(scored.without_partly_scored())
    assert (made.strategies, made.common) == (["a", "b"], 5)
    assert made.left_out == [
        "few is not compared: only 2 of 5 scenarios are scored under it so far"
        " (-s names the strategies to compare)"
    ]
    assert scored.without_partly_scored(keep=["few"]).strategies == ["a", "b", "few"]


def test_what_is_not_scored_yet_has_not_failed(stored):
    made = found(stored([*PARTLY, row("s-2", "few", None)]))
    assert made.left_out == [
        "3 scenarios are left out, because not all strategies have figures:"
        " few failed in 1 (s-2); few is not scored yet for 2 (s-3, s-4)"
    ]
    alone = found(stored(PARTLY).of(["few"]))
    assert alone.left_out == ["3 scenarios are not scored yet under these strategies (s-2, s-3, s-4)"]


# --- reading


def test_of_several_scores_the_last_run_counts_and_other_scenarios_of_an_id_are_told_apart(tmp_path):
    write(tmp_path / "run=1", [row("x", "a", 1.0), row("y", "a", 5.0, scenario_hash="h1")])
    write(tmp_path / "run=2", [row("x", "a", 2.0, run_id="2"), row("y", "a", 6.0, scenario_hash="h2")])
    write(tmp_path / "_temporary", [row("z", "a", 9.0)])
    scored = stored_scores(tmp_path)
    assert scored.scenarios == ["x", "y h1", "y h2"]
    assert scored.figures("moved_partitions").tolist() == [[2.0], [5.0], [6.0]]


def test_ids_with_several_texts_are_named(tmp_path):
    rows = [row("y", name, 1.0, scenario_hash=text) for text in ("h1", "h2") for name in ("a", "b")]
    write(tmp_path, [*rows, row("x", "a", 1.0), row("x", "b", 1.0)])
    made = found(stored_scores(tmp_path))
    assert made.scenarios == 3
    assert made.left_out == [
        "1 ids have scenarios with different texts, such as those of two snapshots (y): each is a scenario by"
        " itself, with its hash after the id"
    ]


def test_a_later_run_with_fewer_metrics_hides_no_figures(tmp_path):
    write(tmp_path / "run=1", [row("x", "a", 5.0, 2.0, 3.0), row("y", "a", 6.0)])
    write(tmp_path / "run=2", [row("x", "a", 5.0, None, None, run_id="2")])
    write(tmp_path / "run=3", [row("x", "a", 5.0, None, 3.0, run_id="3")])
    scored = stored_scores(tmp_path)
    assert scored.figures("imbalance").tolist() == [[2.0], [1.0]]
    assert scored.figures("rounds").tolist() == [[3.0], [1.0]]


@pytest.mark.parametrize(
    "later",
    [
        {"program_version": "2"},
        {"plugin_versions": "metrics 2"},
        {"start_assignor": "range"},
        {"seed": 2},
        {"status": "timeout"},
        {"imbalance": 9.0, "rounds": 9.0},
    ],
)
def test_a_later_score_that_is_another_one_replaces_the_earlier_one(tmp_path, later):
    write(tmp_path / "run=1", [row("x", "a", 5.0, 2.0, 3.0)])
    last = row("x", "a", 7.0, None, None, run_id="2") | later
    write(tmp_path / "run=2", [last])
    scored = stored_scores(tmp_path)
    grid = scored.figures("moved_partitions")
    assert np.array_equal(grid, [[np.nan if "status" in later else 7.0]], equal_nan=True)
    assert scored.figures("imbalance")[0, 0] != 2.0


ALIKE = {"program_version": "1", "plugin_versions": "metrics 1", "fidelity": "plan"}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            {"program_version": "2"},
            "a by rebalance-lab 1 and b and c by rebalance-lab 2, expected scores made",
        ),
        (
            {"plugin_versions": "metrics 2, mine 3"},
            "by plugins metrics 1 and b and c by plugins metrics 2, mine",
        ),
        ({"fidelity": "protocol"}, "a by fidelity plan and b and c by fidelity protocol"),
        ({"start_assignor": "range"}, "a by --start none and b and c by --start range"),
    ],
)
def test_scores_of_a_scenario_that_were_made_differently_are_refused(stored, other, said):
    rows = [
        row(f"s-{n}", name, 1.0, **ALIKE | (other if name != "a" else {})) for n in range(3) for name in "abc"
    ]
    scored = stored(rows)
    with pytest.raises(InputError, match=rf"^scores of 3 scenarios, such as s-0: found .*{said}"):
        found(scored)
    assert found(scored.of(["b", "c"])).common == 3


def test_a_table_that_does_not_say_how_its_scores_were_made_is_compared():
    table = pa.table(
        {"scenario_id": ["x", "x"], "strategy": ["a", "b"], "status": ["ok", "ok"], "m": [1.0, 2.0]}
    )
    columns = [
        Column(name, str(kind)) for name, kind in zip(table.column_names, table.schema.types, strict=True)
    ]
    check_paired(scored_of(columns, table.select))


def test_scores_are_compared_if_another_plugin_came_or_each_scenario_has_its_version(stored):
    plugins = ("metrics 1", "metrics 1, mine", "metrics 1, yours")
    rows = [
        row("s-0", name, 1.0, **ALIKE | {"plugin_versions": listed})
        for name, listed in zip("abc", plugins, strict=True)
    ]
    rows += [row("s-1", name, 1.0, **ALIKE | {"program_version": "2"}) for name in "abc"]
    assert found(stored(rows)).common == 2


def test_files_of_other_runs_may_lack_a_metric(tmp_path):
    write(tmp_path, [row("x", "a", 1.0)], "a.parquet", more=[pa.field("messages", pa.float64())])
    write(tmp_path, [row("y", "a", 2.0)], "b.parquet")
    scored = stored_scores(tmp_path)
    assert scored.scenarios == ["x", "y"]
    assert np.isnan(scored.figures("messages")).all()


def test_other_files_are_no_scores(tmp_path):
    assert stored_scores(tmp_path) is None
    pq.write_table(pa.table({"colour": ["green"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="found the columns colour, expected scores, or nothing"):
        stored_scores(tmp_path)


def test_files_that_contradict_each_other_are_no_scores(tmp_path):
    for name, values in (("a", ["green"]), ("b", [1])):
        pq.write_table(pa.table({"colour": values}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="found files that contradict each other"):
        stored_scores(tmp_path)


def test_a_file_that_is_not_parquet_is_named(tmp_path):
    write(tmp_path, [row("x", "range", 1.0)])
    (tmp_path / "b.parquet").write_text("mine")
    with pytest.raises(
        InputError, match=r"/b.parquet: found a file that cannot be read \(Parquet file size is 4 bytes"
    ):
        stored_scores(tmp_path)


def test_a_file_with_damaged_figures_is_named(tmp_path):
    write(tmp_path, [row("x", "range", 1.0)], name="a.parquet")
    write(tmp_path, [row(f"y-{n}", "range", float(n)) for n in range(1_000)], name="b.parquet")
    whole = bytearray((tmp_path / "b.parquet").read_bytes())
    whole[1_000 : len(whole) // 2] = bytes(len(whole) // 2 - 1_000)
    (tmp_path / "b.parquet").write_bytes(whole)
    with pytest.raises(InputError, match=r"/b.parquet: found a file that cannot be read \("):
        found(stored_scores(tmp_path))


def test_numbers_of_the_workload_are_no_metrics():
    keys = [Column(name, "string") for name in ("scenario_id", "strategy", "status")]
    numbers = [Column("rounds", "double", "rounds"), Column("budget", "double", carried=True)]
    assert [c.name for c in metric_columns([*keys, *numbers])] == ["rounds"]


def test_the_table_reads_only_the_metrics_that_it_shows(stored):
    scored = stored([row("x", s, 1.0) for s in "ab"], more=[pa.field("lag_record_seconds", pa.float64())])
    asked = []
    read = scored._read
    scored._read = lambda names: asked.extend(names) or read(names)
    made = found_in(scored, Question(), everything=False, plots=False)
    assert "lag_record_seconds" not in asked
    assert (made.unread, made.curves, made.wins) == (1, {}, {})


# --- differences


def test_the_interval_of_a_difference_contains_the_mean_and_is_always_the_same():
    values = np.random.default_rng(1).normal(2.0, 5.0, 400)
    one, other = difference(values), difference(values.copy())
    assert one == other
    assert one.low < one.mean < one.high
    spread = 5.0 / np.sqrt(400)
    assert one.high - one.low == pytest.approx(2 * 1.96 * spread, rel=0.15)
    assert difference(np.full(7, 3.0)).is_clear
    assert not difference(np.array([-1.0, 1.0])).is_clear


@pytest.mark.parametrize("groups", [None, np.zeros(3, np.int64)])
def test_one_group_has_no_interval(groups):
    values = np.array([2.0]) if groups is None else np.array([1.0, 2.0, 3.0])
    change = difference(values, groups)
    assert change.mean == 2.0
    assert not change.has_interval
    assert not change.is_clear
    assert difference(np.array([2.0, 2.0])).has_interval


@pytest.mark.parametrize(
    ("keys", "one"),
    [(("",), "one scenario: no interval"), (("hour=1/", "hour=2/"), "one group: no interval")],
)
def test_one_group_or_one_scenario_is_reported_without_an_interval(stored, keys, one):
    rows = [
        {**row(f"{key}g", name, moves, rounds=rounds), "hour": hour}
        for hour, key in enumerate(keys, start=1)
        for name, moves, rounds in (("today", 4.0, 1.0), ("other", 1.0, 2.0))
    ]
    made = found(stored(rows, more=[pa.field("hour", pa.int32())] if keys[0] else ()), baseline="today")
    assert verdict(made)[0].endswith(
        f"to other: -3 ({one}) moved_partitions, 0 ({one}) imbalance; but +1 ({one}) rounds"
    )
    _, cells, _ = differences_table(made, ["moved_partitions"])
    assert [[cell.text for cell in line] for line in cells] == [["moved_partitions", f"-3 ({one})"]]


def test_a_part_of_one_group_has_no_interval(stored):
    rows = [row(f"g-{n}", name, moves) for n in range(3) for name, moves in (("today", 4.0), ("other", 1.0))]
    made = found(stored(rows), baseline="today", by=("team", ["red", "blue", "blue"]))
    _, cells, _ = parts_differences_table(made, "moved_partitions")
    assert [[cell.text for cell in line] for line in cells] == [
        ["blue", "-3 [-3, -3]"],
        ["red", "-3 (one scenario: no interval)"],
    ]


def test_more_scenarios_than_units_have_the_same_interval_within_its_precision():
    values = np.random.default_rng(2).exponential(1.0, 5 * MOST_BLOCKS)
    change = difference(values)
    assert change.high - change.low == pytest.approx(2 * 1.96 / np.sqrt(len(values)), rel=0.15)


def test_the_values_of_a_group_are_resampled_together():
    values = np.repeat(np.random.default_rng(3).normal(0.0, 1.0, 100), 4)
    alone, together = difference(values), difference(values, np.repeat(np.arange(100), 4))
    assert together.mean == alone.mean
    assert together.high - together.low == pytest.approx(2 * (alone.high - alone.low), rel=0.15)


def test_the_intervals_of_findings_are_over_groups(stored):
    rows = [
        {**row(f"hour={hour}/{group}", s, 5.0 if s == "today" else float(group)), "hour": hour}
        for hour in range(4)
        for group in range(6)
        for s in ("other", "today")
    ]
    scored = stored(rows, more=[pa.field("hour", pa.int32())])
    wide, narrow = (
        found(scored, baseline="today", per=per).differences["moved_partitions", "other"]
        for per in ("", "scenario_id")
    )
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_differences_are_to_the_strategy_of_today_in_the_same_scenarios(stored):
    made = found(stored(same_code(failing=range(8))), baseline="good")
    change = made.differences["moved_partitions", "crashing"]
    assert (change.mean, change.low, change.high) == (0.0, 0.0, 0.0)
    assert not any(strategy == "good" for _, strategy in made.differences)


def test_a_strategy_or_metric_that_there_is_not_is_refused(stored):
    scored = stored([row("x", "a", 1.0)])
    with pytest.raises(InputError, match="--baseline: found 'gone', expected one of a"):
        found(scored, baseline="gone")
    with pytest.raises(InputError, match="--baseline: found 'gone', expected one of a"):
        found(scored, baseline="gone", deciding=["rounds"])
    with pytest.raises(InputError, match="metric: found 'colour', expected one of moved_partitions"):
        found(scored, baseline="a", deciding=["colour"])


# --- advice

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


# --- parts


def test_few_numbers_are_parts_and_many_are_put_together_by_powers_of_two():
    assert [name for name, _ in parts_of([3, 1, 2, 1, None])] == ["1", "2", "3", "(none)"]
    many = parts_of([*range(1, 20), None])
    assert [name for name, _ in many] == ["1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "(none)"]
    assert [int(rows.sum()) for _, rows in many] == [1, 2, 4, 8, 4, 1]


def test_the_most_frequent_texts_are_parts_and_the_others_are_one_part():
    texts = [f"team-{n:02}" for n in range(30) for _ in range(1 if n % 3 == 0 else 3)]
    parts = parts_of(texts)
    assert len(parts) == MOST_PARTS + 1
    assert parts[-1][0] == "10 others"
    assert int(parts[-1][1].sum()) == 10


def test_the_parts_of_findings_have_the_means_of_their_scenarios(stored):
    rows = [*same_code(failing=range(8)), *(row(f"s-{n:02}", "less", n - n % 3) for n in range(40))]
    halves = ("half", ["low" if n < 20 else "high" for n in range(40)])
    made = found(stored(rows), by=halves, baseline="good")
    assert [(part.name, part.scenarios) for part in made.parts] == [("high", 20), ("low", 12)]
    assert made.parts[1].means["moved_partitions", "good"] == np.mean(range(8, 20))
    change = made.parts[1].differences["moved_partitions", "less"]
    assert change.mean == -np.mean([n % 3 for n in range(8, 20)])
    assert change.low < change.mean < change.high


def test_findings_have_the_fewest_and_the_most_events_of_a_scenario(stored):
    rows = [{**row(f"s-{n}", "a", 1.0), "events": n} for n in (3, 1, None)]
    assert found(stored(rows, more=[pa.field("events", pa.int32())])).events == (1, 3)


def test_scores_without_rows_have_no_figures():
    empty = pa.Table.from_pylist(
        [], schema=pa.schema([*arrow_schema(SCORE_COLUMNS), ("rounds", pa.float64())])
    )
    columns = [Column(field.name, str(field.type)) for field in empty.schema]
    made = found(scored_of(columns, empty.select), balance="")
    assert (made.scenarios, made.common, made.figures) == (0, 0, {})
