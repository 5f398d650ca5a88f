"""Assignments on Spark: as a DataFrame and in SQL."""

import json

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_spark import assign
from rebalance_spark.assigning import assignment_or_error
from tests.rebalance_spark.strangers import SMALL_TEXT

GROUP = {
    "topics": {"t": {"partitions": 3}},
    "members": [
        {"id": "a", "topics": ["t"], "owned": [["t", 2]], "generation": 4},
        {"id": "b", "topics": ["t"]},
        {"id": "c", "topics": []},
    ],
}
TEXT = json.dumps(GROUP)
ASSIGNED = {"a": [["t", 2], ["t", 1]], "b": [["t", 0]], "c": []}


def assigned(text, assignor="sticky"):
    return assignment_or_error(text, assignor, default_registry(), 0.0)


def pairs(assignment):
    return {
        member: [[pair["topic"], pair["partition"]] for pair in owned] for member, owned in assignment.items()
    }


def test_a_group_is_assigned_as_by_the_command():
    assert assigned(TEXT) == (ASSIGNED, None)


def test_the_partitions_of_spark_are_pairs_too():
    for own in ({"topic": "t", "partition": 2}, ["t", "2"]):
        members = [{**GROUP["members"][0], "owned": [own]}, *GROUP["members"][1:]]
        assert assigned(json.dumps({**GROUP, "members": members})) == (ASSIGNED, None)


def test_the_members_of_a_scenario_are_assigned():
    assignment, error = assigned(SMALL_TEXT, "range")
    assert (assignment, error) == (
        {"a": [["orders", 0], ["orders", 1]], "b": [["orders", 2], ["orders", 3]]},
        None,
    )


@pytest.mark.parametrize(
    ("text", "assignor", "problem"),
    [
        ("", "range", "group: found nothing (it is empty)"),
        ("[1]", "range", "group: found"),
        (json.dumps({**GROUP, "members": [3]}), "range", "group: members[0]: found 3"),
        (TEXT, "rang", "assignor: found 'rang', expected one of"),
    ],
)
def test_a_group_that_is_wrong_has_an_error(text, assignor, problem):
    assignment, error = assigned(text, assignor)
    assert assignment is None
    assert error.startswith(problem)


@pytest.mark.slow
def test_each_row_gets_an_assignment_or_an_error(spark):
    rows = [(1, TEXT), (2, "{")]
    frame = spark.createDataFrame(rows, "number int, value string")
    found = {row.number: row for row in assign(frame, "sticky").collect()}
    assert pairs(found[1].assignment) == ASSIGNED
    assert found[1].error is None
    assert found[2].assignment is None
    assert found[2].error.startswith("group: line ")
    structure = spark.read.json(spark.sparkContext.parallelize([TEXT]))
    (row,) = assign(structure, "sticky").collect()
    assert (pairs(row.assignment), row.error) == (ASSIGNED, None)
    for wrong, problem in (
        (lambda: assign(frame, "stiky"), "assignor: found 'stiky'"),
        (lambda: assign(frame, "range", document="text"), "groups: found no column 'text'"),
        (lambda: assign(frame.select("number"), "range"), "groups: found the columns number"),
    ):
        with pytest.raises(InputError, match=problem):
            wrong()


@pytest.mark.slow
def test_sql_has_a_function_with_a_row_per_partition(spark):
    spark.createDataFrame([(TEXT,), ("{",)], "document string").createOrReplaceTempView("documents")
    query = "SELECT found.* FROM documents, LATERAL rebalance_assign(document, 'sticky') AS found"
    rows = [tuple(row) for row in spark.sql(query).collect()]
    expected = [("a", "t", 2, None), ("a", "t", 1, None), ("b", "t", 0, None), ("c", None, None, None)]
    assert [row for row in rows if row[3] is None] == expected
    assert [row[:3] for row in rows if row[3] is not None] == [(None, None, None)]


@pytest.mark.slow
def test_spark_finds_the_data_source_without_a_registration(spark):
    source = spark.newSession().read.format("rebalance_workload").option("profile", "microservices")
    assert source.option("rows", "1").load().count() == 1
