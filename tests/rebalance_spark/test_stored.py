"""Scores in files: what is read, what counts, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from rebalance_spark.findings import Question, found_in
from rebalance_spark.stored import ScoredColumn as Column
from rebalance_spark.stored import check_paired, metric_columns, scored_of, stored_scores
from tests.rebalance_spark.score_files import found, row, write


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
    made = found_in(scored, Question(), everything=False, pairs=False)
    assert "lag_record_seconds" not in asked
    assert (made.unread, made.wins) == (1, {})


def test_strategies_keep_the_order_in_which_they_are_asked_for(tmp_path):
    write(tmp_path, [row("x", "a", 1.0), row("x", "b", None), row("y", "a", 2.0), row("y", "b", 3.0)])
    scored = stored_scores(tmp_path)
    turned = scored.of(["b", "a"])
    assert turned.status.tolist() == scored.status[:, [1, 0]].tolist()
    assert turned.figures("moved_partitions")[:, 1].tolist() == [1.0, 2.0]


def test_a_strategy_with_less_than_half_of_the_rows_is_left_out(tmp_path):
    rows = [row(name, "a", 1.0) for name in "vwxyz"]
    rows += [row(name, "b", 1.0) for name in "vwx"] + [row(name, "c", 1.0) for name in "vw"]
    write(tmp_path, rows)
    scored = stored_scores(tmp_path)
    whole = scored.without_partly_scored()
    assert (list(whole.strategies), dict(whole.partly)) == (["a", "b"], {"c": 2})
    assert list(scored.without_partly_scored(["c"]).strategies) == ["a", "b", "c"]
