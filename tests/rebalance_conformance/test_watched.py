"""The suite in a process of its own: what hangs, or ends it, is named, and the rest goes on."""

import json
import time
from types import SimpleNamespace

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_conformance.checking import checks_named
from rebalance_conformance.results import Outcome
from rebalance_conformance.search import Bench, Listener
from rebalance_conformance.subject import subject_of
from rebalance_conformance.suite import check_assignor
from rebalance_conformance.watched import STARTUP_SECONDS, _next_result, results_in_time
from rebalance_lab.fuzzing.campaign import under_every_protocol
from tests.rebalance_conformance import wrong


def in_time(assignor, checks, seconds=60.0):
    results = results_in_time(subject_of(assignor), checks_named(checks), examples=10, seconds=seconds)
    return {each.check: each for each in results}


@pytest.mark.slow
def test_results_are_those_of_the_suite_itself():
    checks = ["raises", "assigned-twice", "not-sticky", "impure"]
    here = check_assignor(wrong.gives_to_two, checks=checks, examples=10)
    assert list(in_time(wrong.gives_to_two, checks).values()) == list(here.results)


@pytest.mark.killed
@pytest.mark.slow
def test_a_check_that_hangs_is_stopped_with_the_group_it_hung_on_and_the_others_go_on():
    found = in_time(wrong.HangsForThree, ["raises", "no-members", "partition-left-out"], seconds=4.0)
    assert found["raises"].outcome is found["partition-left-out"].outcome is Outcome.FAILED
    assert found["no-members"].outcome is Outcome.PASSED
    assert found["raises"].reason == "no answer within 4 s"
    assert len(json.loads(found["raises"].line)["members"]) == 3


@pytest.mark.killed
@pytest.mark.slow
def test_what_a_check_started_is_stopped_with_it(tmp_path):
    """As the processes are in which it looks for the influence of the hash seed."""
    beat = tmp_path / "beat"
    beats = f"import time\nwhile True: open({str(beat)!r}, 'a').write('.'); time.sleep(0.02)"
    file = tmp_path / "hangs.py"
    file.write_text(
        "import subprocess, sys, time\n"
        "def hangs(cluster, group):\n"
        f"    subprocess.Popen([sys.executable, '-I', '-S', '-c', {beats!r}])\n"
        "    time.sleep(1_000)\n"
    )
    in_time(f"{file}:hangs", ["raises"], seconds=5.0)
    assert beat.exists()
    before = beat.stat().st_size
    time.sleep(0.3)
    assert beat.stat().st_size == before


@pytest.mark.slow
def test_a_check_that_ends_the_process_is_named_and_the_others_go_on():
    found = in_time(wrong.EndsTheProcess, ["raises", "not-sticky"])
    assert found["raises"].reason == "it ended the process it ran in (status 3)"
    assert json.loads(found["raises"].line)["members"]
    assert found["not-sticky"].outcome is Outcome.NOT_APPLICABLE


@pytest.mark.slow
def test_a_fault_that_was_found_is_told_though_there_was_no_time_to_make_it_smaller(tmp_path):
    file = tmp_path / "slow.py"
    file.write_text(
        "import time\n"
        "def slow(cluster, group):\n"
        "    if len(group) > 1:\n"
        "        time.sleep(0.3)\n"
        "        raise ValueError('slow')\n"
        "    return {}\n"
    )
    found = in_time(f"{file}:slow", ["raises"], seconds=5.0)
    assert found["raises"].reason == f"raised ValueError: slow ({file}:5)"


@pytest.mark.slow
def test_the_limit_of_a_check_that_runs_scenarios_applies_to_each_run():
    """On a machine that is busy, all of its runs take longer than any sensible limit."""
    told = []

    class Counts(Listener):
        def running(self):
            told.append("running")

    (faults,) = checks_named(["fails-under-faults"])
    faults.run(Bench(subject_of("sticky"), 1, time.process_time, Counts()))
    assert len(told) == len(under_every_protocol("sticky", default_registry()))
    answers = iter([("begun", ""), ("running", ""), ("result", "passed")])
    limits = []
    connection = SimpleNamespace(poll=lambda limit: limits.append(limit) or True, recv=lambda: next(answers))
    assert _next_result(faults, SimpleNamespace(connection=connection), 9000.0) == ("passed", True)
    assert [limit > STARTUP_SECONDS for limit in limits] == [False, True, True]
