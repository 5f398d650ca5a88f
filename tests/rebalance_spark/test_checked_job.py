"""The options of a job, which are checked before anything is read."""

import pytest

from coordinator_core.errors import InputError
from rebalance_spark.choices import Fidelity
from rebalance_spark.scoring import FEWEST_TASKS, MOST_TASKS, TASK_MS, _tasks, checked_job


def refused(strategies=("range",), *, timeout=0.0, metrics=()):
    with pytest.raises(InputError) as caught:
        checked_job(strategies, Fidelity.PLAN.value, timeout, None, (), metrics=metrics)
    return caught.value.where


def test_a_job_has_strategies_metrics_and_a_time_limit():
    job = checked_job(["range"], Fidelity.PLAN.value, 0.0, None, (), metrics=["rounds"])
    assert list(job.strategies) == ["range"]


def test_options_that_mean_nothing_are_refused():
    assert refused("range") == "strategies"
    assert refused([]) == "strategies"
    assert refused(timeout=-0.001) == "timeout"
    assert refused(timeout=float("nan")) == "timeout"
    assert refused(metrics=["rounds", "nope"]) == "metrics"


@pytest.mark.parametrize(
    ("total", "tasks"),
    [(0, FEWEST_TASKS), (100 * TASK_MS, 100), (10 * MOST_TASKS * TASK_MS, MOST_TASKS)],
)
def test_the_tasks_of_a_job_follow_from_its_cost_within_limits(total, tasks):
    assert _tasks([(0, 1, total / 2), (1, 1, total / 2)]) == tasks
