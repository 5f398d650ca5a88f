"""Scores of a workload on Spark: the same however it is divided, and of every row, whatever is in it."""

import json
import re
from random import Random

import pytest
from pyspark.sql import functions as sf
from pyspark.sql.classic.dataframe import DataFrame

from coordinator_core.errors import InputError, PluginError
from rebalance_lab.scoring.documents import seed_of
from rebalance_lab.scoring.outcomes import Fidelity, Status
from rebalance_lab.scoring.rows import Job, computed_metrics
from rebalance_spark import score, spark_session
from rebalance_spark.schema import CARRIED, score_columns
from rebalance_spark.scoring import LARGE_MS, ScoreOptions, checked_job, cost_of, units
from rebalance_spark.sizes import size_of_text, with_sizes
from tests.rebalance_spark.workloads import collected, frame, scenario, scored_here

pytestmark = pytest.mark.slow

MOODY = '''
"""An assignor whose mood is in the name of the first topic."""

import os


class Moody:
    name = "moody"

    def assign(self, cluster, group):
        mood = min(cluster.topics)
        if mood == "exit":
            os._exit(3)
        if mood == "raise":
            raise LookupError("not today")
        while mood == "loop":
            pass
        owned = {member: [] for member in group}
        owned[min(owned)] = [(t, p) for t, info in cluster.topics.items() for p in range(info.partitions)]
        return owned
'''

STRATEGIES = ("range", "sticky", "cooperative-sticky+static")
PLAN = Job(STRATEGIES, Fidelity.PLAN)
GIANT = scenario(partitions=3_000, members=30)


def plain(count=6):
    """Small scenarios, of which no two are alike."""
    return {f"s-{n}": scenario(partitions=5 + n, members=2 + n % 3, seed=n) for n in range(count)}


# --- the same scores


@pytest.fixture(scope="module")
def workload():
    return {**plain(), "giant": GIANT, "wrong": "topics: [", "empty": ""}


@pytest.fixture(scope="module")
def expected(workload):
    return scored_here(PLAN, workload)


@pytest.mark.parametrize(("partitions", "tasks"), [(1, 2), (2, 7), (7, 1)])
def test_scores_are_those_of_a_scorer_however_the_workload_is_divided(
    spark, workload, expected, partitions, tasks
):
    divided = frame(spark, workload).repartition(partitions)
    assert divided.rdd.getNumPartitions() == partitions
    assert collected(score(divided, STRATEGIES, fidelity="plan", tasks=tasks)) == expected


def test_neither_the_order_of_rows_nor_columns_of_their_cost_change_scores(spark, workload, expected):
    shuffled = dict(Random(3).sample(sorted(workload.items()), len(workload)))
    bare = frame(spark, shuffled, sized=False)
    assert collected(score(bare, STRATEGIES, fidelity="plan", tasks=2)) == expected


def test_a_run_of_every_message_is_scored_the_same_and_a_seed_takes_the_place_of_the_scenarios(spark):
    texts = plain(2)
    job = Job(("range",), Fidelity.PROTOCOL, seed=99)
    found = collected(score(frame(spark, texts), ["range"], seed=99, tasks=1))
    assert found == scored_here(job, texts)
    assert {(row["seed"], row["fidelity"]) for row in found} == {
        (seed_of(name, 99), "protocol") for name in texts
    }
    assert all(row["messages"] > 0 for row in found)


# --- whatever is in a row


@pytest.fixture(scope="module")
def moody(tmp_path_factory):
    path = tmp_path_factory.mktemp("moody") / "moody.py"
    path.write_text(MOODY)
    return f"{path}:Moody"


@pytest.fixture(scope="module")
def moods(spark, moody):
    """All moods in one task, which Spark has to try again when its process has gone."""
    texts = {name: scenario(name) for name in ("good", "raise", "loop", "exit", "better")}
    texts |= {"wrong": scenario(duration="soon"), "null": None, "cut off": scenario()[:40]}
    rows = collected(score(frame(spark, texts), [moody, "range"], fidelity="plan", timeout=3.0, tasks=1))
    return {(row["scenario_id"], row["strategy"]): row for row in rows}


def test_every_row_is_scored_beside_those_that_raise_loop_and_end_their_process(moods, moody):
    names = ("good", "raise", "loop", "exit", "better", "wrong", "null", "cut off")
    assert sorted(moods) == sorted((name, strategy) for name in names for strategy in (moody, "range"))
    ok = {key for key, row in moods.items() if row["status"] == Status.OK}
    assert ok == {("good", moody), ("better", moody)} | {(name, "range") for name in names[:5]}
    assert all(moods[key]["imbalance"] is not None and moods[key]["error"] is None for key in ok)


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("raise", Status.ERROR, r"LookupError: not today"),
        ("loop", Status.TIMEOUT, r"^no result within 3 s$"),
        ("exit", Status.ERROR, r"^the process that scored it died \(exit status 3"),
        ("wrong", Status.ERROR, r"^wrong: duration: found 'soon', expected "),
        ("null", Status.ERROR, r"^null: found nothing \(it is empty\)"),
        ("cut off", Status.ERROR, r"^cut off: line 1, column \d+: found what cannot be read"),
    ],
)
def test_what_went_wrong_is_said_in_the_row(moods, moody, name, status, error):
    row = moods[name, moody]
    assert row["status"] == status
    assert re.search(error, row["error"])
    assert row["imbalance"] is None


def test_a_row_without_an_id_and_one_whose_id_is_a_number_are_scored_too(spark):
    texts = spark.createDataFrame([(None, scenario()), (7, scenario())], "scenario_id int, scenario string")
    sized = texts.select("*", *(sf.lit(1).alias(name) for name in ("members", "partitions", "events")))
    found = collected(score(sized, ["range"], fidelity="plan", tasks=1))
    assert [(row["scenario_id"], row["status"]) for row in found] == [("", "ok"), ("7", "ok")]
    assert [row.scenario_id for row in with_sizes(texts).collect()] == ["", "7"]


def test_a_module_that_workers_were_sent_contributes_assignors_and_is_named_in_the_row(
    spark, tmp_path, search_path
):
    (tmp_path / "sent_for_scoring.py").write_text(
        "from assignors.range import RangeAssignor\n"
        "from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl\n\n"
        "@hookimpl\n"
        "def assignors():\n"
        "    return [AssignorSpec('sent', type('Named', (RangeAssignor,), {'name': 'sent'}))]\n"
    )
    spark.addArtifacts(str(tmp_path / "sent_for_scoring.py"), pyfile=True)
    search_path.insert(0, str(tmp_path))
    scores = score(frame(spark, plain(1)), ["sent"], fidelity="plan", plugins=["sent_for_scoring"], tasks=1)
    (row,) = scores.collect()
    assert (row.status, row.strategy) == ("ok", "sent")
    assert "sent_for_scoring" in row.plugin_versions.split(", ")


def test_a_strategy_is_sent_with_the_source_of_its_file_as_it_was_when_it_was_scored(spark, tmp_path):
    path, found = tmp_path / "mine.py", []
    for line in (
        "from assignors.range import RangeAssignor as Mine",
        "def Mine(cluster, group): return 1 / 0",
    ):
        path.write_text(line)
        found.append(score(frame(spark, plain(1)), [f"{path}:Mine"], fidelity="plan", tasks=1))
    path.unlink()
    (right,), (wrong,) = (scores.collect() for scores in found)
    (expected,) = scored_here(Job(("range",), Fidelity.PLAN), plain(1))
    assert (right.status, right.moved_partitions) == ("ok", expected["moved_partitions"])
    assert wrong.status == "error"
    assert f"ZeroDivisionError: division by zero ({path}:1)" in wrong.error


# --- columns


def test_columns_of_the_workload_follow_the_id_and_the_metrics_that_are_computed_the_outcome(spark):
    wide = frame(spark, plain(1)).withColumns({"the colour": sf.lit("green"), "budget": sf.lit(2.5)})
    wide = wide.select("the colour", "scenario", "scenario_id", "members", "partitions", "events", "budget")
    scores = score(wide, ["range", "sticky"], fidelity="plan", tasks=1)
    own = score_columns(computed_metrics(checked_job(ScoreOptions(["range"], fidelity="plan"))))
    carried = ["the colour", "members", "partitions", "events", "budget"]
    assert scores.columns == ["scenario_id", *carried, *(column.name for column in own[1:])]
    assert [f.name for f in scores.schema if f.metadata.get(CARRIED)] == carried
    assert {f.name: f.metadata.get("unit") for f in scores.schema}["wall_ms"] == "ms"
    assert [row[:6] for row in scores.collect()] == [("s-0", "green", 2, 5, 1, 2.5)] * 2
    few = score(wide.drop("events"), ["range"], fidelity="plan", tasks=1, metrics=["rounds"], start="range")
    assert few.columns[4:10] == ["budget", "events", "strategy", "status", "error", "rounds"]
    assert few.columns[10:15] == ["wall_ms", "cpu_ms", "seed", "fidelity", "start_assignor"]


def test_no_job_runs_before_an_action(spark):
    workload = frame(spark, plain(2))
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("lazy", "lazy")
    try:
        scores = score(workload, ["range"], fidelity="plan").where("status = 'ok'").select("rounds")
        assert tracker.getJobIdsForGroup("lazy") == []
        assert scores.count() == 2
        assert len(tracker.getJobIdsForGroup("lazy")) > 0
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("name", ["Status", "which", "rounds", "run", "start_assignor"])
def test_a_column_of_the_workload_with_the_name_of_one_of_scores_is_refused(spark, name):
    with pytest.raises(InputError, match=f"found a column '{name}', expected another name"):
        score(frame(spark, plain(1)).withColumn(name, sf.lit(1)), ["range"], fidelity="plan")


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("double", float("nan"), None),
        ("double", float("inf"), None),
        ("double", -1e9, None),
        ("double", 3.0, 3),
        ("string", "many", None),
        ("string", "7", 7),
        ("bigint", 2**40, None),
        ("array<int>", [1], None),
        ("boolean", True, None),
    ],
)
def test_a_cost_that_is_no_number_counts_as_absent(spark, kind, value, kept):
    names = ("members", "partitions", "events")
    columns = ", ".join(f"{name} {kind}" for name in names)
    row = ("x", scenario(), *[value] * 3)
    workload = spark.createDataFrame([row], f"scenario_id string, scenario string, {columns}")
    (sized,) = with_sizes(workload).collect()
    assert sized[2:] == (kept,) * 3
    if kept is None and kind == "double":
        assert [row.status for row in score(workload, ["range"], fidelity="plan").collect()] == ["ok"]


def test_a_scenario_may_be_a_structure(spark):
    document = json.loads(scenario())
    text = json.dumps({"scenario_id": "x", "scenario": document, "team": "red"})
    workload = spark.createDataFrame([(text,)], "value string").select(
        sf.inline(sf.array(sf.from_json("value", sf.schema_of_json(sf.lit(text)))))
    )
    assert dict(workload.dtypes)["scenario"].startswith("struct<")
    (row,) = score(workload, ["range"], fidelity="plan", tasks=1).collect()
    (expected,) = scored_here(Job(("range",), Fidelity.PLAN), {"x": scenario()})
    assert (row.status, row.team, row.imbalance) == ("ok", "red", expected["imbalance"])


def test_what_a_row_costs_is_derived_where_a_workload_does_not_say(spark):
    texts = {**plain(2), "wrong": "topics: [", "null": None}
    found = with_sizes(frame(spark, texts, sized=False)).collect()
    assert {row.scenario_id: row[2:] for row in found} == {n: size_of_text(t) for n, t in texts.items()}
    told = with_sizes(frame(spark, texts).withColumn("members", sf.lit(77)))
    assert {row.members for row in told.collect()} == {77}


# --- what is refused before anything is computed


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"strategies": ["rang"]}, r"strategy: found 'rang', .*did you mean 'range'"),
        ({"strategies": ["range+nonsense"]}, r"modifier of strategy 'range\+nonsense'"),
        ({"fidelity": "plann"}, r"fidelity: found 'plann', .*did you mean 'plan'"),
        ({"seed": -1}, r"seed: found -1, expected a whole number from 0 to 9,223,372,036,854,775,807"),
        ({"seed": 2**63}, r"seed: found 9223372036854775808, expected a whole number"),
    ],
)
def test_what_there_is_not_is_refused_without_a_look_at_the_workload(asked, problem):
    no_workload = object()
    with pytest.raises(InputError, match=problem):
        score(no_workload, **{"strategies": ["range"], **asked})


def test_a_module_that_cannot_be_imported_is_refused_without_a_look_at_the_workload():
    with pytest.raises(PluginError, match="no_such_module_anywhere"):
        score(object(), ["range"], plugins=["no_such_module_anywhere"])


@pytest.mark.parametrize("missing", ["scenario_id", "scenario"])
def test_a_column_that_is_missing_is_named_before_a_job_begins(spark, missing):
    def never(batches):
        raise AssertionError("a job has begun")

    other = {"scenario_id": "scenario", "scenario": "scenario_id"}[missing]
    columns = spark.range(1).mapInArrow(never, f"{other} string, colour string")
    with pytest.raises(InputError, match=rf"{other}, colour, expected '{missing}' among them"):
        score(columns, ["range"])


# --- how the work is spread


def test_a_large_row_is_a_unit_per_strategy_and_the_others_are_in_as_many_tasks_as_asked_for(
    spark, monkeypatch
):
    seen, map_in_arrow = {}, DataFrame.mapInArrow

    def spread(self, function, schema):
        seen["units"] = self
        return map_in_arrow(self, function, schema)

    monkeypatch.setattr(DataFrame, "mapInArrow", spread)
    giant = scenario(partitions=9_000, members=90)
    score(frame(spark, {**plain(60), "giant": giant}), STRATEGIES, tasks=4)
    rows = seen["units"].withColumn("task", sf.spark_partition_id()).collect()
    assert {row.task for row in rows} == {0, 1, 2, 3}
    assert sorted(row.which for row in rows if row.scenario_id == "giant") == [[0], [1], [2]]
    assert [row.which for row in rows if row.scenario_id != "giant"] == [[0, 1, 2]] * 60
    score(frame(spark, plain(1)), STRATEGIES)
    assert seen["units"].rdd.getNumPartitions() == int(spark.conf.get("spark.sql.shuffle.partitions"))


def test_a_search_costs_more_than_other_strategies_and_counting_less(spark):
    def cost(*strategies):
        job = checked_job(ScoreOptions(strategies, fidelity="plan"))
        return units(frame(spark, {"s": GIANT}), job).select(cost_of(job)).first()[0]

    assert cost("optimal") > 2 * cost("average") > 4 * cost("range")
    assert cost("range", "optimal", "average") == pytest.approx(
        cost("range") + cost("optimal") + cost("average")
    )
    assert cost("range") < LARGE_MS


# --- sessions


def test_a_session_that_there_is_keeps_its_settings(spark):
    kept = ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions", "spark.master")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        before = [spark.conf.get(key) for key in kept]
        again = spark_session("local[7]")
        assert [again.conf.get(key) for key in kept] == before
        assert spark_session(conf={"spark.sql.session.timeZone": "UTC"}).conf.get(kept[0]) == "UTC"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
