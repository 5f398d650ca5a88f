"""Scores in files become findings without Spark: what is compared, differences, and parts."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from coordinator_core.errors import InputError
from rebalance_spark.paired import MOST_BLOCKS, difference
from rebalance_spark.parts import MOST_PARTS, parts_of
from rebalance_spark.report_tables import (
    differences_table,
    parts_tables,
)
from rebalance_spark.schema import SCORE_COLUMNS, arrow_schema
from rebalance_spark.stored import ScoredColumn as Column
from rebalance_spark.stored import scored_of
from tests.rebalance_spark.score_files import METRICS, found, row

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
        assert len({made.figures[metric, s]._replace(curve=()) for s in made.strategies}) == 1
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
    table = differences_table(made, ["moved_partitions"])
    assert [[cell.text for cell in line] for line in table.rows] == [["moved_partitions", f"-3 ({one})"]]


def test_a_part_of_one_group_has_no_interval(stored):
    rows = [row(f"g-{n}", name, moves) for n in range(3) for name, moves in (("today", 4.0), ("other", 1.0))]
    made = found(stored(rows), baseline="today", by=("team", ["red", "blue", "blue"]))
    (table,) = (t for t in parts_tables(made) if t.title.startswith("moved_partitions minus"))
    assert [[cell.text for cell in line] for line in table.rows] == [
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
        found(scored, baseline="today", per=per).figures["moved_partitions", "other"].change
        for per in ("", "scenario_id")
    )
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_differences_are_to_the_strategy_of_today_in_the_same_scenarios(stored):
    made = found(stored(same_code(failing=range(8))), baseline="good")
    change = made.figures["moved_partitions", "crashing"].change
    assert (change.mean, change.low, change.high) == (0.0, 0.0, 0.0)
    assert made.figures["moved_partitions", "good"].change is None


def test_a_strategy_or_metric_that_there_is_not_is_refused(stored):
    scored = stored([row("x", "a", 1.0)])
    with pytest.raises(InputError, match="--baseline: found 'gone', expected one of a"):
        found(scored, baseline="gone")
    with pytest.raises(InputError, match="--baseline: found 'gone', expected one of a"):
        found(scored, baseline="gone", deciding=["rounds"])
    with pytest.raises(InputError, match="metric: found 'colour', expected one of moved_partitions"):
        found(scored, baseline="a", deciding=["colour"])


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
    assert made.parts[1].figures["moved_partitions", "good"].mean == np.mean(range(8, 20))
    change = made.parts[1].figures["moved_partitions", "less"].change
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


@pytest.mark.parametrize("scenarios", [5, 12])
def test_the_front_is_without_those_that_another_strategy_is_known_to_be_better_than(stored, scenarios):
    """From few scenarios nothing is known, and a difference that changes its side is none."""
    moves = {"few": (2.0, 2.0), "unsteady": (1.0, 4.0), "many": (9.0, 8.0)}
    rows = [row(f"s-{n}", name, each[n % 2]) for n in range(scenarios) for name, each in moves.items()]
    front = {point.strategy: point.on_front for point in found(stored(rows)).front}
    assert front == {"few": True, "unsteady": True, "many": scenarios == 5}
