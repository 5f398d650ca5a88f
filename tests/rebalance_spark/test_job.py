"""One small job on Spark: scores of workers equal those of a scorer in this process."""

import pytest

from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job
from rebalance_spark import score
from tests.rebalance_spark.workloads import collected, frame, scenario, scored_here


@pytest.mark.slow
def test_scores_equal_those_of_this_process(spark):
    workload = {f"s-{n}": scenario(partitions=5 + n, seed=n) for n in range(3)} | {"wrong": "topics: ["}
    strategies = ("range", "cooperative-sticky+static")
    found = collected(score(frame(spark, workload), strategies, fidelity="plan", tasks=1))
    assert found == scored_here(Job(strategies, Fidelity.PLAN), workload)
    assert [row["status"] for row in found] == ["ok"] * 6 + ["error"] * 2
