"""Rounds of groups from the logs of a cluster's coordinators, on Spark."""

import pytest

from coordinator_core.errors import InputError
from rebalance_logs.on_spark import incidents_from_logs, rounds_from_logs
from rebalance_spark import read_workload, score
from tests.places import DATA
from tests.rebalance_logs.test_on_spark import EXPECTED, LOGS, rows_of


@pytest.mark.slow
def test_lines_in_any_partition_give_the_same_rounds(spark):
    rounds = rounds_from_logs(spark.read.text(str(LOGS)).repartition(4))
    assert rows_of([row.asDict() for row in rounds.collect()]) == EXPECTED


@pytest.mark.slow
def test_a_column_that_is_not_there_is_named(spark):
    with pytest.raises(InputError, match="text: found 'line', expected a column: value"):
        rounds_from_logs(spark.read.text(str(LOGS)), text="line")


@pytest.mark.slow
def test_the_groups_of_logs_are_a_workload(spark, tmp_path):
    groups = incidents_from_logs(spark.read.text(str(DATA / "logs" / "java-killed"))).cache()
    assert [row["scenario_id"] for row in groups.collect()] == ["payments"]
    groups.write.parquet(str(tmp_path / "groups"))
    scores = read_workload(spark, str(tmp_path / "groups")).transform(score, ["range", "cooperative-sticky"])
    assert {row["status"] for row in scores.collect()} == {"ok"}
