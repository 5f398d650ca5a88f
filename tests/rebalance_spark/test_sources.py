"""Workloads as they come: Parquet, JSON Lines, groups, folders of scenarios; and what is none is said."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job
from rebalance_spark.schema import WORKLOAD_COLUMNS
from rebalance_spark.scoring import score
from rebalance_spark.sizes import size_of_text
from rebalance_spark.sources import read_workload
from tests.rebalance_spark.workloads import collected, scenario, scored_here, write_parquet

pytestmark = pytest.mark.slow

COLUMNS = [column.name for column in WORKLOAD_COLUMNS]
OF_SCENARIOS = ["scenario_id", "group", *COLUMNS[1:]]
RANGE = Job(("range",), Fidelity.PLAN)

GROUP = {
    "name": "shop",
    "topics": {"orders": {"partitions": 3, "weights": [5, 1, 1]}, "idle": {"partitions": 2}},
    "members": [
        {"id": "a", "topics": ["orders"], "capacity": 100, "rack": "r1", "owned": [["orders", 0]]},
        {"id": "b", "topics": ["orders", "idle"], "instance_id": "b-1"},
    ],
}


def lines(path, *documents):
    """A file with a document a line; text is a line as it is."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in documents]
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def read(spark, path, **options):
    return read_workload(spark, path, **options).scenarios


def by_id(workload):
    return {row["scenario_id"]: row for row in workload.toArrow().to_pylist()}


# --- Parquet


def test_parquet_is_read_as_it_is_and_columns_of_others_follow(spark, tmp_path):
    path = tmp_path / "workload.parquet"
    rows = {"colour": ["green"], "scenario": [scenario()], "members": [9], "scenario_id": ["x"]}
    pq.write_table(pa.table(rows), path)
    found = read(spark, str(path))
    assert found.columns == ["scenario_id", "group", "scenario", "members", "colour"]
    assert found.collect() == [("x", "x", scenario(), 9, "green")]


def test_a_folder_of_parquet_files_is_one_workload(spark, tmp_path):
    for name in ("x", "y"):
        write_parquet(tmp_path / f"{name}.parquet", {name: scenario()})
    found = read(spark, str(tmp_path))
    assert found.columns == OF_SCENARIOS
    assert sorted(row.scenario_id for row in found.collect()) == ["x", "y"]


@pytest.mark.parametrize("missing", ["scenario_id", "scenario"])
def test_parquet_with_other_columns_is_refused_by_name(spark, tmp_path, missing):
    there = {"scenario_id": "scenario", "scenario": "scenario_id"}[missing]
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({there: ["x"], "colour": ["green"]}), path)
    with pytest.raises(InputError) as caught:
        read(spark, str(path))
    assert str(caught.value) == f"{path}: found the columns {there}, colour, expected {missing!r} among them"


PER_PARTITION = (
    "a row per partition with group, member, topic, partition (other names: --columns"
    " group=NAME,member=NAME or, in Python, group=NAME)"
)


def test_of_any_other_table_both_forms_are_named(spark, tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"app": ["x"], "partition": [0]}), path)
    with pytest.raises(InputError) as caught:
        read(spark, str(path))
    expected = f"scenario_id and scenario, or {PER_PARTITION}"
    assert str(caught.value) == f"{path}: found the columns app, partition, expected {expected}"


def test_columns_of_a_table_with_a_row_per_partition_may_have_other_names(spark, tmp_path):
    rows = {"app": ["x", "x"], "pod": ["a", "b"], "topic": ["t"] * 2, "partition": [0, 1], "rate": [1.0, 2.0]}
    path = str(tmp_path / "named.parquet")
    pq.write_table(pa.table({**rows, "wait": [5, 6], "team": ["red"] * 2}), path)
    named = {"group": "app", "member": "pod", "lag": "wait"}
    spark.read.parquet(path).createOrReplaceTempView("partitions_of_apps")
    found = [
        read(spark, path, **named, draws=2),
        read(spark, "", table="partitions_of_apps", **named, draws=2),
    ]
    assert found[0].columns == found[1].columns
    rows = by_id(found[0])
    assert rows == by_id(found[1])
    assert {name: (row["draw"], row["team"]) for name, row in rows.items()} == {
        "draw=0/x": (0, "red"),
        "draw=1/x": (1, "red"),
    }
    topics = json.loads(rows["draw=0/x"]["scenario"])["topics"]
    assert topics == {"t": {"partitions": 2, "rates": [1.0, 2.0], "backlog": [5, 6]}}
    for lost in ("member", "rate"):
        with pytest.raises(InputError, match=f"expected 'lost' among them for {re.escape(PER_PARTITION)}"):
            read(spark, path, **{**named, lost: "lost"})


def test_options_for_a_row_per_partition_are_refused_elsewhere(spark, tmp_path):
    whole = write_parquet(tmp_path / "whole.parquet", {"x": scenario()})
    for path, found in ((whole, "the columns"), (lines(tmp_path / "lines.jsonl", GROUP), "the columns")):
        for option, given in (("group", "app"), ("draws", 2), ("application", {"client": "java"})):
            expected = f"found {found}.*, expected a table with a row per partition for {option}"
            with pytest.raises(InputError, match=expected):
                read(spark, path, **{option: given})


def test_of_a_table_with_a_row_per_partition_the_missing_column_is_named(spark, tmp_path):
    folder = tmp_path / "hour=7"
    folder.mkdir()
    pq.write_table(pa.table({"group": ["x"], "topic": ["t"], "partition": [0]}), folder / "part.parquet")
    with pytest.raises(InputError) as caught:
        read(spark, str(folder), keys=["hour"])
    assert str(caught.value) == (
        f"{folder}: found the columns group, topic, partition, hour,"
        f" expected 'member' among them for {PER_PARTITION}"
    )


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing that follows from it"], ids=["empty", "cut off"])
def test_a_file_that_is_no_parquet_is_refused_by_name(spark, tmp_path, content):
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match="a file that is not Parquet") as caught:
        read(spark, str(path))
    assert caught.value.where == str(path)
    assert "\n" not in str(caught.value)


def test_a_path_where_nothing_is_is_refused_by_name(spark, tmp_path):
    with pytest.raises(
        InputError, match=r"missing\.parquet: found no such file or folder, expected Parquet or JSON"
    ):
        read(spark, str(tmp_path / "missing.parquet"))


def test_a_url_where_nothing_is_is_refused_by_name(spark, tmp_path):
    for path in (f"file:{tmp_path}/missing", f"file://{tmp_path}/missing", f"{tmp_path}/missing*"):
        with pytest.raises(InputError, match="found no such file or folder") as caught:
            read(spark, path)
        assert caught.value.where == path


@pytest.fixture(scope="module")
def hours(tmp_path_factory):
    """The same groups in two hours."""
    folder = tmp_path_factory.mktemp("hours")
    for hour in (7, 8):
        part = folder / "dt=2026-01-01" / f"hour={hour}"
        part.mkdir(parents=True)
        write_parquet(part / "groups.parquet", {"x": scenario(partitions=hour)})
    return folder


def test_columns_of_partitions_can_be_a_part_of_the_key(spark, hours):
    found = read(spark, str(hours), keys=["dt", "hour"])
    names = ["dt=2026-01-01/hour=7/x", "dt=2026-01-01/hour=8/x"]
    assert sorted(row.scenario_id for row in found.collect()) == names
    assert {(row["group"], row["hour"]) for row in by_id(found).values()} == {("x", 7), ("x", 8)}
    problems = {row.kind: row.example for row in read_workload(spark, str(hours)).problems.collect()}
    assert problems == {"repeated_id": "x: 2 rows"}
    problems = {
        row.kind: row.example for row in read_workload(spark, str(hours), keys=["hour"]).problems.collect()
    }
    assert problems == {"few_scenarios": "x: 2 of 6"}
    with pytest.raises(InputError, match=r"^keys: found 'minute', expected one of scenario_id, .*hour"):
        read(spark, str(hours), keys=["minute"])


@pytest.mark.parametrize(
    "path", ["{}/dt=*/hour=7", "file:{}/dt=2026-01-01/hour=7", "{}/*/hour=[1-7]/*.parquet"]
)
def test_a_part_of_a_folder_has_the_ids_of_the_whole(spark, hours, path):
    found = read(spark, path.format(hours), keys=["dt", "hour"])
    assert [row.scenario_id for row in found.collect()] == ["dt=2026-01-01/hour=7/x"]


def test_a_table_of_the_catalog_is_a_workload(spark, hours):
    read(spark, str(hours)).createOrReplaceTempView("groups_by_hour")
    found = read(spark, "", table="groups_by_hour", keys=["hour"])
    assert sorted(row.scenario_id for row in found.collect()) == ["hour=7/x", "hour=8/x"]
    for name, problem in (("no_such_table", "no such table"), ("not a name", "PARSE_SYNTAX_ERROR")):
        with pytest.raises(InputError, match=f"^table {name}: found .*{problem}"):
            read(spark, "", table=name)


# --- JSON Lines


@pytest.fixture(scope="module")
def mixed(spark, tmp_path_factory):
    """One file with all that a line may be."""
    wrong = {"name": "odd", "topics": {"orders": {"partitions": -1}}, "members": []}
    path = lines(
        tmp_path_factory.mktemp("lines") / "mixed.jsonl",
        {"scenario_id": "as text", "scenario": scenario()},
        {"scenario_id": "as object", "scenario": json.loads(scenario(partitions=7))},
        {"scenario_id": 0, "scenario": scenario()},
        {"scenario": scenario(partitions=9)},
        json.loads(scenario(name="bare")),
        "",
        GROUP,
        wrong,
        "{nonsense",
        '["a", "list"]',
    )
    return read(spark, path).toArrow().to_pylist()


@pytest.fixture(scope="module")
def scores(mixed):
    texts = {row["scenario_id"]: row["scenario"] for row in mixed}
    return {row["scenario_id"]: row for row in scored_here(RANGE, texts)}


def test_each_line_but_an_empty_one_is_a_row_with_its_size(mixed):
    assert len(mixed) == 9
    assert all(list(row) == OF_SCENARIOS for row in mixed)
    for row in mixed:
        assert tuple(row[name] for name in COLUMNS[2:]) == size_of_text(row["scenario"])


@pytest.mark.parametrize(
    ("name", "partitions"), [("as text", 4), ("as object", 7), ("0", 4), ("bare", 4), ("shop", 5)]
)
def test_a_scenario_may_be_text_an_object_the_line_itself_or_a_group(mixed, scores, name, partitions):
    row = next(row for row in mixed if row["scenario_id"] == name)
    assert row["partitions"] == partitions
    assert scores[name]["status"] == "ok"


def test_a_line_without_an_id_is_called_after_its_file_and_content(mixed, scores):
    nameless = [row["scenario_id"] for row in mixed if row["scenario_id"].startswith("mixed.jsonl ")]
    assert len(set(nameless)) == 3
    assert sorted(scores[name]["status"] for name in nameless) == ["error", "error", "ok"]


def test_a_group_becomes_a_scenario_in_which_a_member_leaves(mixed):
    made = json.loads(next(row["scenario"] for row in mixed if row["scenario_id"] == "shop"))
    assert made["topics"] == {"orders": {"partitions": 3, "rates": [5, 1, 1]}, "idle": {"partitions": 2}}
    assert made["members"] == [
        {"id": "a", "topics": ["orders"], "process_rate": 100, "rack": "r1", "owned": {"orders": [0]}},
        {"id": "b", "topics": ["orders", "idle"], "instance_id": "b-1"},
    ]
    assert made["events"] == [{"at": "5m", "leave": "a"}]


def test_a_line_that_is_wrong_is_an_error_in_its_row_that_names_the_place(scores):
    assert scores["odd"]["status"] == "error"
    assert scores["odd"]["error"].startswith("odd: ")
    wrong = sorted(row["error"] for name, row in scores.items() if row["status"] == "error")
    assert len(wrong) == 3
    assert all(name in " ".join(wrong) for name in ("mixed.jsonl ", "odd: "))


def test_a_folder_of_lines_is_one_workload_and_spark_scores_it(spark, tmp_path):
    lines(tmp_path / "a.jsonl", {"scenario_id": "one", "scenario": scenario()})
    lines(tmp_path / "b.ndjson", GROUP, {"name": "odd", "topics": {}, "members": 3})
    found = collected(score(read(spark, str(tmp_path)), ["range"], fidelity="plan", tasks=1))
    assert {row["scenario_id"]: row["status"] for row in found} == {"one": "ok", "shop": "ok", "odd": "error"}


def test_lines_that_are_the_same_have_the_same_id_and_cannot_be_told_apart(spark, tmp_path):
    nameless = {key: value for key, value in GROUP.items() if key != "name"}
    path = lines(tmp_path / "twice.jsonl", nameless, GROUP, nameless)
    found = read_workload(spark, path)
    ids = [row.scenario_id for row in found.scenarios.collect()]
    assert len(ids) == 3
    assert len(set(ids)) == 2
    example = next(row.example for row in found.problems.collect() if row.kind == "repeated_id")
    assert re.fullmatch(r"twice\.jsonl -?\d+: 2 rows", example)


def test_a_folder_of_documents_has_a_scenario_each_by_its_path_and_needs_no_other_file(spark, tmp_path):
    folder = tmp_path / "scenarios"
    (folder / "deep").mkdir(parents=True)
    (folder / "plain.yaml").write_text(
        "name: plain\nduration: 1m\ntopics: {t: {partitions: 2, rate: 1}}\nmembers: [{id: a, topics: [t]}]\n"
    )
    (folder / "deep" / "measured.yml").write_text(
        "name: measured\nduration: 2m\n"
        "topics: {t: {partitions: 2, rates_csv: ../rates.csv, interval: 1m}}\n"
        "members: [{id: a, topics: [t]}, {id: b, topics: [t]}]\n"
    )
    (folder / "rates.csv").write_text("minute,p0,p1\n0,60,120\n1,30,30\n")
    (folder / "text.json").write_text(scenario())
    (folder / "broken.yaml").write_text("name: broken\nduration: [\n")
    (folder / "no-rates.yaml").write_text(
        (folder / "deep" / "measured.yml").read_text().replace("../rates", "lost")
    )
    (folder / "deep" / "garbled.yaml").write_text(
        (folder / "deep" / "measured.yml").read_text().replace("../rates", "garbled")
    )
    (folder / "deep" / "garbled.csv").write_bytes(b"60,120\n30,\xff\n")
    (folder / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    (folder / "notes.txt").write_text("not a scenario")
    found = read(spark, str(folder)).toArrow().to_pylist()
    assert read(spark, f"file:{folder}").toArrow().to_pylist() == found
    for each in sorted(folder.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    documents = {row["scenario_id"]: row for row in found}
    names = ["broken.yaml", "deep/garbled.yaml", "deep/measured.yml"]
    assert list(documents) == [*names, "latin.yaml", "no-rates.yaml", "plain.yaml", "text.json"]
    members = {name: row["members"] for name, row in documents.items() if row["members"]}
    assert members == {"deep/measured.yml": 2, "plain.yaml": 1, "text.json": 2}
    rows = scored_here(RANGE, {name: row["scenario"] for name, row in documents.items()})
    errors = {row["scenario_id"]: row["error"] for row in rows if row["status"] == "error"}
    starts = {
        "broken.yaml": "broken.yaml: line ",
        "deep/garbled.yaml": "deep/garbled.yaml: topics.t.rates_csv: deep/garbled.csv, row ",
        "latin.yaml": "latin.yaml: line 1: found bytes that are not UTF-8",
        "no-rates.yaml": "no-rates.yaml: topics.t.rates_csv: lost.csv: found a file that cannot be read (",
    }
    assert {name: error[: len(starts[name])] for name, error in errors.items()} == starts
    measured = json.loads(documents["deep/measured.yml"]["scenario"])["topics"]["t"]
    assert measured == {"partitions": 2, "interval": "1m", "rates_rows": [[60.0, 120.0], [30.0, 30.0]]}


def test_a_folder_with_nothing_in_it_is_refused_by_name(spark, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match="found a folder without scenarios") as caught:
        read(spark, str(tmp_path))
    assert caught.value.where == str(tmp_path)
