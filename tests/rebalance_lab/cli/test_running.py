"""Where runs are done: little work in this process, much work and the code of other authors in processes."""

import signal

import pytest

from coordinator_core.assigning import limits
from coordinator_core.assigning.limits import Worker
from coordinator_core.registry.hookspecs import AssignorSpec, MetricSpec, hookimpl
from coordinator_core.registry.registry import DISTRIBUTION, default_registry, installed_registry
from rebalance_lab.cli import running
from rebalance_lab.cli.running import Task, run_all, run_one
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.runs import Run


@pytest.fixture
def handed(monkeypatch):
    """The numbers of the runs that processes would do, and the number of processes, of each call."""
    calls = []

    def proceed(processes, count, seconds=0):
        left = [*processes.waiting]
        processes.waiting.clear()
        if left:
            calls.append((left, count))
            processes.results.update(dict.fromkeys(left, Run("done in a process")))

    monkeypatch.setattr(running._Processes, "proceed", proceed)
    monkeypatch.setattr(running, "available_cores", lambda: 2)
    return calls


@pytest.fixture
def clock(monkeypatch):
    """The CPU seconds of this process: so many more with each look."""
    step = [0.0]
    passed = [0.0]

    def process_time():
        passed[0] += step[0]
        return passed[0]

    monkeypatch.setattr(running, "process_time", process_time)
    return step


def tasks(small, *strategies):
    return [Task(load_scenario(small), strategy) for strategy in strategies]


def done_here(runs):
    return [run.strategy for run in runs if run.figures is not None]


THREE = ("range", "sticky", "cooperative-sticky")


@pytest.mark.parametrize(
    ("seconds", "tried", "cores", "here", "calls"),
    [
        pytest.param({}, 0.25, 2, 3, [], id="little-work-is-done-here"),
        pytest.param({"range": 0.2}, 0.25, 2, 1, [([1, 2], 1)], id="much-work-is-shared-as-soon-as-it-shows"),
        pytest.param({"sticky": 5.0}, 0.25, 2, 2, [([2], 1)], id="after-a-long-run-the-rest-is-shared"),
        pytest.param({"sticky": 0.001}, 0.0, 2, 3, [], id="work-that-is-nearly-done-is-not-shared"),
        pytest.param({"range": 0.2}, 0.25, 1, 3, [], id="on-one-core-nothing-is-shared"),
    ],
)
def test_much_work_is_shared_with_processes(
    small, handed, clock, monkeypatch, seconds, tried, cores, here, calls
):
    """The run that shows that there is much goes on in this process."""
    run = running._run

    def run_with_a_clock(task, *arguments, **more):
        clock[0] = seconds.get(task.strategy, 0.0)
        return run(task, *arguments, **more)

    monkeypatch.setattr(running, "_run", run_with_a_clock)
    monkeypatch.setattr(running, "TRIED_SECONDS", tried)
    monkeypatch.setattr(running, "available_cores", lambda: cores)
    runs = run_all(tasks(small, *THREE), jobs=None, timeout=60)
    assert done_here(runs) == [*THREE][:here]
    assert [run.strategy for run in runs[here:]] == ["done in a process"] * (3 - here)
    assert handed == calls


def test_shared_runs_have_the_results_of_runs_in_one_process(small, monkeypatch):
    monkeypatch.setattr(running, "TRIED_SECONDS", 0.0)
    monkeypatch.setattr(running, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(running, "available_cores", lambda: 2)
    started = []

    def start(*arguments):
        started.append(Worker(*arguments))
        return started[-1]

    monkeypatch.setattr(limits, "Worker", start)
    shared = run_all(tasks(small, *THREE), jobs=None, timeout=60)
    assert [worker.exit_status(0) for worker in started] == [-signal.SIGKILL]
    assert repr(shared) == repr(run_all(tasks(small, *THREE), jobs=1, timeout=60))  # NaN is not itself


def test_after_a_run_that_fails_the_rest_is_left_to_processes(small, handed, clock, monkeypatch):
    """Code that was too late may still run in this process."""
    run = running._run

    def fail(task, *arguments, **more):
        too_late = Run(task.strategy, error="no answer within 60 s")
        return too_late if task.strategy == "sticky" else run(task, *arguments, **more)

    monkeypatch.setattr(running, "_run", fail)
    runs = run_all(tasks(small, *THREE), jobs=None, timeout=60)
    assert [run.error for run in runs] == ["", "no answer within 60 s", ""]
    assert handed == [([2], 2)]


def test_a_single_run_has_a_trace_and_no_figures(small, monkeypatch):
    monkeypatch.setattr(running, "run_of", lambda *_, **__: pytest.fail("measured"))
    run = run_one(load_scenario(small), "range", timeout=60, watch=Invariants())
    assert run.trace is not None
    assert (run.trace.strategy, run.figures, run.error) == ("range", None, "")


def test_a_number_of_jobs_is_kept(small, handed, clock):
    assert done_here(run_all(tasks(small, *THREE), jobs=1, timeout=60)) == [*THREE]
    assert handed == []
    run_all(tasks(small, *THREE), jobs=3, timeout=60)
    assert handed == [([0, 1, 2], 3)]


def test_code_of_other_authors_runs_in_processes(small, handed, clock, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def mine(cluster, group):\n    return {}\n")
    run_all(tasks(small, "range", f"{path}:mine"), jobs=None, timeout=60)
    assert handed == [([0, 1], 2)]


# --- whose code a run executes


class Mine:
    def assign(self, cluster, group):
        return {}


def registry_with(**records):
    """The built-in plugins and another, which contributes records by hook."""
    registry = installed_registry()
    functions = {hook: hookimpl(lambda self, own=own: own) for hook, own in records.items()}
    registry.register(type("Plugin", (), functions)(), distribution="another")
    return registry


@pytest.mark.parametrize("text", ["range", "eager", "optimal+static+weights=none", "sticky+budget=2s"])
def test_a_run_of_built_in_parts_executes_our_code_alone(text):
    registry = default_registry()
    assert {plugin.distribution for plugin in registry.plugins} == {DISTRIBUTION}
    assert registry.is_ours(registry.strategy(text))


def test_an_assignor_of_another_distribution_is_not_ours():
    registry = registry_with(assignors=[AssignorSpec("mine", Mine)])
    assert registry.is_ours(registry.strategy("range+static"))
    assert not registry.is_ours(registry.strategy("mine+static"))
    assert not registry.is_ours(registry.strategy("range+budget=2s:mine"))


def test_metrics_of_another_distribution_run_with_every_strategy():
    registry = registry_with(metrics=[MetricSpec("mine", "", lambda history: 0.0)])
    assert not registry.is_ours(registry.strategy("range"))


def test_a_file_is_not_ours(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def mine(cluster, group):\n    return {}\n")
    registry = default_registry()
    assert not registry.is_ours(registry.strategy(f"{path}:mine"))
