"""Simulated runs, written as Kafka's broker and Java client would log them, are diagnosed as they were."""

from pathlib import Path

import pytest

from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.process.clients import CLIENTS
from rebalance_lab.traces.history import History
from rebalance_logs.causes import diagnosed
from rebalance_logs.clocks import shifts_of
from rebalance_logs.findings import Cause
from rebalance_logs.groups import groups_of
from rebalance_logs.reading import read_logs
from tests.places import SCENARIOS
from tests.rebalance_logs.kafka_lines import BEGAN_MS, logs_of

TRUTH = {
    "shop": {Cause.MEMBER_LEFT: {"kafka-python"}, Cause.MEMBER_JOINED: {"new"}},
    "scale-out": {Cause.SESSION_EXPIRED: {"c2"}, Cause.MEMBER_JOINED: {"c3"}},
    "bounce": {Cause.SESSION_EXPIRED: {"c2"}},
    "bounce-short": {Cause.SESSION_EXPIRED: {"c2"}},
    "leave": {Cause.MEMBER_LEFT: {"C1"}},
    "third-joins": {Cause.MEMBER_JOINED: {"c3"}},
}
STRATEGIES = ("range", "cooperative-sticky")
APART_MS = 50 + CLIENTS["java"].reads_apart_ms
"""How much later than another a member may learn of a generation: the latency, and how late it reads."""


def diagnosis(folder: Path):
    logs = read_logs([str(folder)])
    (group,) = groups_of(logs, shifts_of(logs))
    return diagnosed(group)


def causes_of(found):
    """The causes with their members, without the start of the group."""
    return {each.cause: set(each.members) for each in found.causes if each.stopped_ms is not None}


@pytest.fixture(scope="module")
def run_of():
    runs = {}

    def run(name, strategy):
        if (name, strategy) not in runs:
            runs[name, strategy] = logs_of(load_scenario(SCENARIOS / f"{name}.yaml"), strategy)
        return runs[name, strategy]

    return run


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", TRUTH)
@pytest.mark.parametrize("without", [(), ("broker",)], ids=["all logs", "logs of members"])
def test_causes_and_stopped_time_are_those_of_the_run(name, strategy, without, run_of, tmp_path):
    run = run_of(name, strategy)
    found = diagnosis(run.write(tmp_path, without=without))
    assert causes_of(found) == TRUTH[name]
    true_ms = History(run.trace).stops.stopped_ms
    # when a process was killed is known to a heartbeat interval of three seconds
    killed = Cause.SESSION_EXPIRED in TRUTH[name]
    assert found.stopped_ms == pytest.approx(true_ms, rel=0.01, abs=3_000 * 4 if killed else 100)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", TRUTH)
def test_rounds_of_the_coordinators_log_are_those_of_the_run(name, strategy, run_of, tmp_path):
    run = run_of(name, strategy)
    others = [file for file in run.lines if file != "broker"]
    found = diagnosis(run.write(tmp_path, without=others))
    began = [
        (e.event.generation + 1, e.at_ms)
        for e in run.trace.events
        if type(e.event).__name__ == "GroupStateChanged" and e.event.after == "PreparingRebalance"
    ]
    assert [(r.generation, r.began_ms - BEGAN_MS) for r in found.group.rounds] == began
    # a coordinator cannot tell whether a member that it removed, and that joins anew, ended or stood still
    truth = {Cause.STOOD_STILL if name == "bounce" and c is Cause.SESSION_EXPIRED else c for c in TRUTH[name]}
    assert {each.cause for each in found.causes if not each.is_start} == truth
    assert all(each.stopped_ms is None for each in found.causes)


@pytest.mark.parametrize("name", TRUTH)
def test_clocks_that_differ_are_put_right(name, run_of, tmp_path):
    run = run_of(name, "range")
    ahead = {file: number * 3_600_000 - 2_300 for number, file in enumerate(run.lines) if number % 2}
    logs = read_logs([str(run.write(tmp_path, ahead_ms=ahead))])
    base = ahead.get("broker", 0)
    for file, shift in zip(logs.files, shifts_of(logs), strict=True):
        assert shift == pytest.approx(ahead.get(Path(file.path).stem, 0) - base, abs=APART_MS)
    assert causes_of(diagnosis(tmp_path)) == TRUTH[name]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", TRUTH)
def test_lines_out_of_order_and_lost_change_no_cause(name, strategy, run_of, tmp_path):
    run = run_of(name, strategy)
    assert causes_of(diagnosis(run.write(tmp_path, shuffled=True))) == TRUTH[name]
    assert set(causes_of(diagnosis(run.write(tmp_path, lost=0.03)))) == set(TRUTH[name])


@pytest.mark.parametrize("name", ["rolling-deploy", "killed-pods"])
@pytest.mark.slow
def test_a_deployment_is_one_cause(name, run_of, tmp_path):
    found = diagnosis(run_of(name, "range").write(tmp_path))
    assert set(causes_of(found)) == {Cause.ROLLING_RESTART}
    assert len(found.causes[0].members) == 40


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", TRUTH)
def test_partitions_of_members_without_a_log_do_not_stand_still_for_ever(name, strategy, run_of, tmp_path):
    run = run_of(name, strategy)
    true_ms = History(run.trace).stops.stopped_ms
    for number, kept in enumerate([file for file in run.lines if file != "broker"][:3]):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = diagnosis(run.write(folder, without=[f for f in run.lines if f not in (kept, "broker")]))
        assert found.stopped_ms <= 1.5 * true_ms + 3_000


@pytest.mark.parametrize(
    "kept", ["confluent-kafka", "aiokafka"], ids=["the leader's log", "a follower's log"]
)
def test_members_without_a_log_keep_what_they_have_in_a_first_round_that_is_cooperative(
    kept, run_of, tmp_path
):
    """No log shows which partitions stood still of those that they are given in the round."""
    run = run_of("shop", "cooperative-sticky")
    found = diagnosis(run.write(tmp_path, without=[f for f in run.lines if f not in (kept, "broker")]))
    assert bool(found.group.rounds[0].owners) is (kept == "confluent-kafka")
    assert 0 < found.stopped_ms <= History(run.trace).stops.stopped_ms
