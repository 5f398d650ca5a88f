"""Summaries of scores are what plain Python makes of the same rows."""

from collections import Counter
from itertools import permutations
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from coordinator_core.errors import InputError
from rebalance_spark import advice, differences, findings, pareto, summary, wins
from rebalance_spark.findings import Question, found_in
from rebalance_spark.schema import SCORE_COLUMNS, arrow_schema
from rebalance_spark.stored import collected_scores
from rebalance_spark.summaries import quantiles, statuses

pytestmark = pytest.mark.slow

STRATEGIES = ("calm", "eager", "moody")
METRICS = ("moved_partitions", "imbalance", "cache-hits", "nothing")
HIGHER = "cache-hits"
CLOSE = 1 + 1e-12
"""A factor that makes no difference."""


def row(scenario_id, strategy, status="ok", **figures):
    plain = {
        "scenario_id": scenario_id,
        "strategy": strategy,
        "scenario_hash": "s",
        "job_hash": "j",
        "run_id": "r",
        "fidelity": "plan",
        "status": status,
        "error": None if status == "ok" else "something",
        "wall_ms": 1.5,
        "cpu_ms": 1.5,
        "program_version": "1.0",
        "plugin_versions": "mine 2.0" if strategy == "moody" else "",
    }
    return {**plain, **figures}


def random_rows():
    """Few different figures, so that there are ties; rows without figures; scenarios not scored by all."""
    random = Random(8)
    rows = []
    for number in range(60):
        for strategy in STRATEGIES:
            status = random.choices(("ok", "error", "timeout"), (16, 1, 1))[0]
            figures = {
                "moved_partitions": float(random.randrange(12)),
                "imbalance": random.choice((1.0, 1.25, 1.25 * CLOSE, 0.1 + 0.2, 0.3, random.random())),
                HIGHER: random.choice((None, 0.0, 5.0, random.uniform(0, 9))),
            }
            if random.random() < 0.95:
                rows.append(row(f"s-{number}", strategy, status, **(figures if status == "ok" else {})))
    return rows


def frame(spark, rows, metrics=METRICS):
    schema = pa.schema([*arrow_schema(SCORE_COLUMNS), *(pa.field(name, pa.float64()) for name in metrics)])
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


ROWS = random_rows()


def figures_of(metric, strategy):
    """By scenario."""
    return {
        r["scenario_id"]: r[metric]
        for r in ROWS
        if r["strategy"] == strategy and r.get(metric) is not None and r["status"] == "ok"
    }


COMPLETED = set.intersection(
    *({r["scenario_id"] for r in ROWS if (r["strategy"], r["status"]) == (s, "ok")} for s in STRATEGIES)
)


def comparable_figures(metric, strategy):
    """Those of the scenarios that all strategies completed with a figure."""
    common = COMPLETED.intersection(*(figures_of(metric, s) for s in STRATEGIES))
    assert 0 < len(common) < 60
    return {name: value for name, value in figures_of(metric, strategy).items() if name in common}


@pytest.fixture(scope="module", autouse=True)
def one_is_better_the_higher_it_is():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "higher_is_better", lambda name: name == HIGHER)
        yield


@pytest.fixture(scope="module")
def scores(spark):
    return frame(spark, ROWS)


@pytest.fixture(scope="module")
def plane(scores):
    return pareto(scores).collect()


@pytest.fixture(scope="module")
def found(scores):
    return found_in(collected_scores(scores), Question())


def test_the_rows_have_ties_gaps_and_failures():
    assert {r["status"] for r in ROWS} == {"ok", "error", "timeout"}
    assert len({len(figures_of(metric, s)) for metric in METRICS[:3] for s in STRATEGIES}) > 3


def test_a_summary_is_of_the_scenarios_that_every_strategy_completed(scores):
    rows = {(r.metric, r.strategy): r for r in summary(scores).collect()}
    assert set(rows) == {(metric, s) for metric in METRICS[:3] for s in STRATEGIES}
    for (metric, strategy), r in rows.items():
        figures = comparable_figures(metric, strategy)
        values = list(figures.values())
        assert r.rows == len(values)
        assert [r.mean, r.p50, r.p95, r.p99] == pytest.approx(
            [np.mean(values), *np.percentile(values, [50, 95, 99])], rel=1e-12
        )
        worst = min(values) if metric == HIGHER else max(values)
        assert r.worst == worst
        assert r.worst_scenario == max(name for name, value in figures.items() if value == worst)


def test_quantiles_are_evenly_spaced_from_the_least_to_the_most(scores):
    rows = quantiles(scores, 8).collect()
    assert len(rows) == 9
    for r in rows:
        values = list(comparable_figures(r.metric, r.strategy).values())
        assert r["values"] == pytest.approx(list(np.percentile(values, np.linspace(0, 100, 9))), rel=1e-12)


def test_statuses_are_counted_by_strategy(scores):
    counted = Counter((r["strategy"], r["status"]) for r in ROWS)
    rows = {
        r.strategy: {k: v for k, v in r.asDict().items() if k != "strategy"}
        for r in statuses(scores).collect()
    }
    assert rows == {s: {each: counted[s, each] for each in ("ok", "error", "timeout")} for s in STRATEGIES}


def outcomes(metric, mine, other):
    """How often a strategy is better, even, worse, of the scenarios where both have the figure."""
    ours, theirs = figures_of(metric, mine), figures_of(metric, other)
    counted = Counter()
    for name in ours.keys() & theirs.keys():
        even = abs(ours[name] - theirs[name]) <= 1e-9 * max(abs(ours[name]), abs(theirs[name]))
        better = ours[name] > theirs[name] if metric == HIGHER else ours[name] < theirs[name]
        counted["even" if even else better] += 1
    return counted[True], counted["even"], counted[False]


def test_wins_are_counted_where_both_have_the_figure_and_what_differs_by_rounding_is_even(scores):
    rows = {(r.metric, r.strategy, r.other): (r.wins, r.ties, r.losses) for r in wins(scores).collect()}
    pairs = list(permutations(STRATEGIES, 2))
    expected = {(metric, *pair): outcomes(metric, *pair) for metric in METRICS[:3] for pair in pairs}
    assert rows == expected | {("nothing", *pair): (0, 0, 0) for pair in pairs}
    assert all(min(counts) > 0 for counts in expected.values())


def test_the_front_is_of_the_scenarios_that_every_strategy_has_figures_for(plane):
    common = COMPLETED
    means = {
        s: [np.mean([figures_of(metric, s)[name] for name in sorted(common)]) for metric in METRICS[:2]]
        for s in STRATEGIES
    }
    assert {r.strategy for r in plane} == set(STRATEGIES)
    for r in plane:
        assert r.scenarios == len(common)
        assert [r.moved_partitions, r.imbalance] == pytest.approx(means[r.strategy], rel=1e-12)
    assert {r.on_front for r in plane} == {True}


def test_who_is_dominated_is_not_on_the_front_and_equals_are_both_on_it(spark):
    points = {
        "few": (1, 9),
        "even": (9, 1),
        "same": (9, 1),
        "worse": (9, 2),
        "middle": (5, 5),
        "last": (9, 9),
    }
    rows = [
        row(name, strategy, moved_partitions=float(moves), imbalance=float(balance))
        for strategy, (moves, balance) in points.items()
        for name in "abcdef"
    ]
    found = {r.strategy: r.on_front for r in pareto(frame(spark, rows)).collect()}
    assert found == {"few": True, "even": True, "same": True, "middle": True, "worse": False, "last": False}


def test_a_strategy_without_figures_is_left_out_of_the_front(spark):
    rows = [row("x", "calm", moved_partitions=1.0, imbalance=1.0), row("x", "moody", "error")]
    assert [(r.strategy, r.on_front) for r in pareto(frame(spark, rows)).collect()] == [("calm", True)]


def test_scenarios_are_read_once_from_a_frame_that_computes_them(spark):
    computed = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            computed.add(batch.num_rows)
            yield batch

    rows = frame(spark, ROWS)
    summary(rows.mapInArrow(count, rows.schema)).collect()
    assert computed.value == len(ROWS)


def test_differences_and_advice_are_those_of_the_same_scenarios(scores):
    (change,) = differences(scores, "calm").where("strategy = 'eager' and metric = 'imbalance'").collect()
    mine, base = comparable_figures("imbalance", "eager"), comparable_figures("imbalance", "calm")
    assert change.mean == pytest.approx(np.mean([mine[name] - base[name] for name in base]))
    assert change.low < change.mean < change.high
    rows = {r.scenario_id: r for r in advice(scores, "calm").collect()}
    assert set(rows) == {r["scenario_id"] for r in ROWS}
    assert {r.reason for r in rows.values()} == {"not enough data: 1 of 6 scenarios", "no figures"}
    together = scores.withColumn("team", sf.lit("red"))
    assert [(r.team, r.reason, r.scenarios) for r in advice(together, "calm", per="team").collect()] == [
        ("red", "stay", 60)
    ]


# --- findings


def test_findings_tell_whose_scores_they_are(found):
    assert found.scenarios == len({r["scenario_id"] for r in ROWS})
    assert found.fidelities == ["plan"]
    assert found.versions == ["rebalance-lab 1.0", "rebalance-lab 1.0, mine 2.0"]
    assert found.strategies == sorted(STRATEGIES)
    assert found.metrics == list(METRICS[:3])
    assert found.failed == sum(r["status"] != "ok" for r in ROWS)


def test_findings_have_what_the_summaries_say(found, scores):
    expected = {(r.metric, r.strategy): r[2:] for r in summary(scores).collect()}
    assert {key: each[:7] for key, each in found.figures.items()} == expected
    assert all(len(each.curve) == 101 for each in found.figures.values())
    assert found.wins["imbalance", "calm", "moody"] == outcomes("imbalance", "calm", "moody")
    assert found.statuses["calm"]["ok"] == sum(r["strategy"] == "calm" and r["status"] == "ok" for r in ROWS)


def test_the_front_of_findings_is_sorted_by_moves(found, plane):
    moves = [each.moves for each in found.front]
    assert moves == sorted(moves)
    by_strategy = {r.strategy: (r.moved_partitions, r.imbalance, r.on_front) for r in plane}
    assert sorted(by_strategy) == sorted(each.strategy for each in found.front)
    for each in found.front:
        assert (each.moves, each.balance, each.on_front) == pytest.approx(by_strategy[each.strategy])
    assert found.common == plane[0].scenarios == len(COMPLETED)
    assert found.balance == "imbalance"


# --- what are no scores


def test_what_are_no_scores_is_refused_by_its_columns(spark):
    with pytest.raises(InputError, match="scores: found the columns id, expected scenario_id, strategy"):
        summary(spark.range(1))
    with pytest.raises(InputError, match="scores: found the columns scenario_id, "):
        summary(frame(spark, [], ()))


@pytest.mark.parametrize("wrong", [{"moves": "colour"}, {"balance": "colour"}])
def test_a_front_of_a_metric_that_is_not_there_is_refused(scores, wrong):
    with pytest.raises(InputError, match=r"pareto: found 'colour', expected one of moved_partitions, imbal"):
        pareto(scores, **wrong)
