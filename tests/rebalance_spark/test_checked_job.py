"""The options of a job, which are checked before anything is read."""

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_spark.scoring import ScoreOptions, checked_job


def refused(strategies=("range",), *, timeout=0.0, metrics=()):
    with pytest.raises(InputError) as caught:
        checked_job(ScoreOptions(strategies, fidelity=Fidelity.PLAN, timeout=timeout, metrics=metrics))
    return caught.value.where


def test_a_job_has_strategies_metrics_and_a_time_limit():
    job = checked_job(ScoreOptions(["range"], fidelity="plan", metrics=["rounds"]))
    assert list(job.strategies) == ["range"]


def test_options_that_mean_nothing_are_refused():
    assert refused("range") == "strategies"
    assert refused([]) == "strategies"
    assert refused(timeout=-0.001) == "timeout"
    assert refused(timeout=float("nan")) == "timeout"
    assert refused(metrics=["rounds", "nope"]) == "metrics"
