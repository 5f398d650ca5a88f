"""``spark.read.format("rebalance_workload")``: the same rows wherever they are made."""

import pytest
from pyspark.errors import AnalysisException

from coordinator_core.registry.registry import default_registry
from rebalance_spark.generator import FORMAT, as_row

pytestmark = pytest.mark.slow

PLUGIN = """
from coordinator_core.registry.hookspecs import WorkloadSpec, hookimpl


def lonely(seed, row, *, width=1):
    return {
        "name": f"lonely-{seed}-{row}",
        "duration": "1m",
        "topics": {"t": {"partitions": width, "rate": 1}},
        "members": [{"id": "a", "topics": ["t"]}],
    }


@hookimpl
def workloads():
    return [WorkloadSpec("lonely", lonely, options={"width": int})]
"""


def generated(spark, **options):
    texts = {name: str(value) for name, value in options.items()}
    return spark.read.format(FORMAT).options(**texts).load()


def made_here(profile, rows, *, seed=0, **options):
    """The rows of a profile, made in this process."""
    generate = default_registry().generator(profile, options)
    return [as_row(profile, seed, number, generate(seed, number)) for number in range(rows)]


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_rows_are_the_same_in_however_many_partitions_they_are_made(spark, partitions):
    found = generated(spark, profile="microservices", rows=9, seed=5, partitions=partitions)
    assert found.rdd.getNumPartitions() == partitions
    rows = sorted(found.toArrow().to_pylist(), key=lambda row: row["scenario_id"])
    assert rows == made_here("microservices", 9, seed=5)


def test_a_file_of_measured_traffic_is_replayed(spark, tmp_path):
    path = tmp_path / "traffic.csv"
    path.write_text("t,p0,p1\n" + "".join(f"{n},{10 * n},{n}\n" for n in range(8)))
    options = {"rates_csv": str(path), "interval": "1m", "window": "3m", "step": "1m", "members": "2"}
    found = generated(spark, profile="replay", rows=3, **options).toArrow().to_pylist()
    assert sorted(found, key=lambda row: row["scenario_id"]) == made_here("replay", 3, **options)
    assert len({row["scenario"] for row in found}) == 3


def test_a_profile_of_a_module_that_workers_were_sent_is_known(spark, tmp_path):
    path = tmp_path / "sent_for_generating.py"
    path.write_text(PLUGIN)
    spark.addArtifacts(str(path), pyfile=True)
    found = generated(spark, profile="lonely", rows=2, plugins="sent_for_generating", width=3)
    rows = found.collect()
    assert sorted(row.scenario_id for row in rows) == ["lonely-0-0", "lonely-0-1"]
    assert [row.partitions for row in rows] == [3, 3]


def test_what_is_wrong_with_the_options_is_said_by_whoever_reads(spark):
    with pytest.raises(AnalysisException, match="InputError: profile: found 'microservice', expected one of"):
        generated(spark, profile="microservice", rows=1).collect()
