"""Settings and parameters in the names of strategies."""

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scoring.labels import parted
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job, Scorer
from rebalance_spark.scoring import ScoreOptions, checked_job
from tests.rebalance_spark.workloads import scenario


def strategies(names, *settings):
    return checked_job(ScoreOptions(names, settings=settings)).strategies


def test_alternatives_in_braces_are_strategies_of_their_own():
    assert strategies(["optimal+tolerance={1%, 2%}", "sticky"]) == (
        "optimal+tolerance=1%",
        "optimal+tolerance=2%",
        "sticky",
    )


def test_settings_are_part_of_the_name_of_a_strategy():
    assert strategies(["sticky"], "session.timeout.ms=6s,45s") == (
        "sticky session.timeout.ms=6s",
        "sticky session.timeout.ms=45s",
    )
    assert strategies(["sticky session.timeout.ms=6s"]) == ("sticky session.timeout.ms=6s",)
    assert parted("a b.py:Mine session.timeout.ms=6s heartbeat.interval.ms=1s") == (
        "a b.py:Mine",
        ["session.timeout.ms=6s", "heartbeat.interval.ms=1s"],
    )
    assert parted("optimal+tolerance=1%") == ("optimal+tolerance=1%", [])


def test_each_combination_has_a_hash_of_its_own():
    hashes = checked_job(ScoreOptions(["sticky"], settings=["session.timeout.ms=6s,45s"])).hashes
    assert len(set(hashes)) == 2


@pytest.mark.parametrize(
    ("name", "setting", "problem"),
    [
        ("sticky", "session.timeout=6s", "found the unknown setting 'session.timeout'"),
        ("sticky", "session.timeout.ms", "--set: found 'session.timeout.ms', expected NAME=VALUE"),
        (
            "sticky+{static",
            "session.timeout.ms=6s",
            "strategy: found 'sticky.{static', expected alternatives",
        ),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_is_scored(name, setting, problem):
    with pytest.raises(InputError, match=problem):
        strategies([name], setting)


def test_the_setting_of_a_strategy_is_in_place_of_that_of_the_scenario():
    text = scenario(events=[{"at": "10s", "crash": "m-0"}], config={"session.timeout.ms": "40s"})
    names = ("sticky", "sticky session.timeout.ms=10s")
    rows = Scorer(Job(names, Fidelity.PROTOCOL)).rows("s", text)
    stopped = [row["stopped_partition_seconds"] for row in rows]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert stopped[1] < stopped[0] / 2


def test_an_unknown_metric_is_refused():
    with pytest.raises(InputError, match="metrics: found 'round', expected one of"):
        checked_job(ScoreOptions(["range"], fidelity="plan", metrics=["round"]))
    with pytest.raises(InputError, match="metrics: found 'max_lag'"):
        checked_job(ScoreOptions(["range"], fidelity="plan", metrics=["max_lag"]))


def test_a_job_with_chosen_metrics_is_another_one():
    hashes = [
        checked_job(ScoreOptions(["range"], fidelity="plan", metrics=m)).hashes for m in ((), ["rounds"])
    ]
    assert hashes[0] != hashes[1]
