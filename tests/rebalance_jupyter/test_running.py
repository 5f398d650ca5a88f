"""Runs of strategies: code of authors in a process, with a limit; code of this program in this one."""

import os
import sys
import threading
from multiprocessing import get_context

import pytest

from coordinator_core.errors import AssignmentError
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import run
from rebalance_jupyter.running import run_each, run_one
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.simulation.run import simulate
from tests.rebalance_jupyter.samples import ALONE, SCALE_OUT

NEVER = 0.5
"""Seconds; what is ended after them would not end."""


def deals(cluster, group):
    """Each partition to a subscriber, in turn."""
    members = group.sorted_members()
    given = {member: [] for member in members}
    for topic, info in cluster.topics.items():
        for number in range(info.partitions):
            given[members[number % len(members)]].append((topic, number))
    return given


class Endless:
    """Hangs when a third member joins."""

    def assign(self, cluster, group):
        while len(group) == 3:
            self.spins = True
        return deals(cluster, group)


@pytest.fixture
def registry():
    return default_registry()


def scenario(text=SCALE_OUT):
    return load_scenario_text(text, "scenario", registry=default_registry())


def test_code_of_authors_runs_in_another_process_and_other_code_in_this_one(registry, monkeypatch):
    where = get_context("fork").SimpleQueue()

    def noted(cluster, group):
        where.put(os.getpid())
        return deals(cluster, group)

    assert run(ALONE, noted).ended.group_state == "Stable"
    assert where.get() != os.getpid()
    monkeypatch.setattr("rebalance_jupyter.running.Worker", None)
    assert run(ALONE, "sticky").ended.group_state == "Stable"


def test_an_assignor_of_a_single_member_is_code_of_an_author_too(monkeypatch):
    monkeypatch.setattr("rebalance_jupyter.running.Worker", None)
    own = ALONE.replace("topics: [t]}", f"topics: [t], assignors: ['{__name__}:deals']}}")
    with pytest.raises(AttributeError, match="copied"):
        run(own, "range")


def test_a_run_that_goes_on_is_not_ended_by_the_limit(registry):
    reached = []
    run_one(scenario(), registry.strategy(deals), registry, reached.append, limit_s=30)
    assert reached == sorted(reached)
    assert reached[-1] == 180_000


def test_output_of_an_assignor_is_printed_until_it_is_too_much(capsys, monkeypatch):
    monkeypatch.setattr("rebalance_jupyter.running._MOST_PRINTED", 100)

    def talks(cluster, group):
        print("members:", len(group))  # noqa: T201
        print("!" * 1_000, file=sys.stderr)  # noqa: T201
        return deals(cluster, group)

    run(ALONE, talks)
    out = capsys.readouterr().out
    assert out.startswith("members: 1\n!!!")
    assert out.endswith("!\n(the rest of the output is left out)\n")
    assert len(out) < 200


def test_errors_are_listed_beside_the_traces_of_the_others(registry):
    def fails(cluster, group):
        return [][0]

    strategies = [registry.strategy(each) for each in (fails, "range")]
    traces, errors = run_each(scenario(), strategies, registry)
    assert [trace.strategy for trace in traces] == ["range"]
    (error,) = errors
    assert error.startswith("fails: assignor ")
    assert "raised IndexError: list index out of range" in error


# --- in a process, and in a thread where processes cannot be copied


@pytest.fixture(params=["process", "thread"])
def place(request, monkeypatch):
    """Where authors' code runs; no thread stays behind."""
    monkeypatch.setattr("rebalance_jupyter.running.CAN_COPY", request.param == "process")
    before = set(threading.enumerate())
    yield request.param
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.usefixtures("place")
def test_any_form_of_an_assignor_gives_the_trace_of_a_simulation(registry):
    expected = simulate(scenario(), registry.strategy(deals), registry)
    assert run(SCALE_OUT, deals) == run(SCALE_OUT, f"{__name__}:deals") == expected


@pytest.mark.usefixtures("place")
def test_a_run_that_stands_still_ends_with_its_strategy_its_time_and_its_line():
    with pytest.raises(AssignmentError) as caught:
        run(SCALE_OUT, Endless, limit_s=NEVER)
    line = Endless.assign.__code__.co_firstlineno
    text = str(caught.value)
    assert text.startswith(f"assignor '{__name__}:Endless': did not get further than 3")
    assert f"s of the scenario within {NEVER} s (tests/rebalance_jupyter/test_running.py:" in text
    assert int(text.removesuffix(")").rpartition(":")[2]) in (line + 1, line + 2)


@pytest.mark.usefixtures("place")
def test_an_exception_of_the_progress_ends_the_run(registry):
    def progress(at_ms):
        if at_ms > 20_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_one(scenario(), registry.strategy(Endless), registry, progress)


def test_an_assignor_that_leaves_or_ends_its_process_is_an_error(place):
    def leaves(cluster, group):
        sys.exit("enough")

    def ends(cluster, group):
        os._exit(3)

    with pytest.raises(AssignmentError, match=r"raised SystemExit: enough \(tests/rebalance_jupyter/test_ru"):
        run(ALONE, leaves)
    if place == "process":
        with pytest.raises(AssignmentError, match="its process ended with status 3"):
            run(ALONE, ends)
