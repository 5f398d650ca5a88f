"""The suite in the pytest of an author: a class, a decorator, a fixture; and nothing to pay for others."""

import os
import re
import subprocess
import sys

import pytest

from rebalance_conformance.checks import CHECKS
from tests.rebalance_lab.cli.commands import PATHS

pytestmark = pytest.mark.slow

THREE_WAYS = """
from rebalance_conformance.pytest_plugin import AssignorConformance, parametrize_with_checks
from tests.rebalance_conformance.wrong import dealt, drops_the_last, gives_to_two, Unbalanced

class TestClass(AssignorConformance):
    assignor = "roundrobin"
    examples = 5

class TestFunction(AssignorConformance):
    assignor = gives_to_two
    examples = 5
    expected_failed_checks = {
        "assigned-twice": "it is shared", "no-partitions": "not so"
    }

class TestNothing(AssignorConformance):
    pass

@parametrize_with_checks(["range", Unbalanced], {"unbalanced": "on purpose"}, examples=5)
def test_decorated(assignor, check):
    check(assignor)

def test_fixture(check_assignor):
    assert check_assignor(dealt, checks=["raises", "unicode-names"], examples=5).passed

def test_fixture_fails(check_assignor):
    check_assignor(drops_the_last, checks=["partition-left-out"], examples=5)
"""


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": PATHS, "PYTEST_ADDOPTS": "", "COLUMNS": "400"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


SHOWN = "raises or assigned-twice or unbalanced or no-partitions or more-members or takes-from or not-sticky"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Test -> its outcome and what pytest says of it."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "test_mine.py").write_text(THREE_WAYS)
    out = run(folder, "-rA", "--tb=short", "-k", f"fixture or {SHOWN}").stdout
    said = {}
    for outcome, test, reason in re.findall(r"^([A-Z]+) test_mine.py::(\S+)(?: - (.*))?$", out, re.MULTILINE):
        said[test] = (outcome, reason)
    return said, out


def test_the_class_has_a_test_for_each_check(tmp_path):
    (tmp_path / "test_mine.py").write_text(THREE_WAYS)
    out = run(tmp_path, "--collect-only", "-q").stdout
    for check in CHECKS:
        assert f"test_mine.py::TestClass::test_conforms[{check.name}]" in out
        assert f"test_mine.py::test_decorated[range-{check.name}]" in out


def test_a_check_that_holds_passes(outcomes):
    said, _ = outcomes
    assert said["TestClass::test_conforms[raises]"][0] == "PASSED"
    assert said["TestClass::test_conforms[unbalanced]"][0] == "PASSED"
    assert said["test_decorated[range-raises]"][0] == "PASSED"
    assert said["test_decorated[Unbalanced-raises]"][0] == "PASSED"
    assert said["test_fixture"][0] == "PASSED"


def test_a_check_that_does_not_apply_is_skipped_with_the_reason(outcomes):
    _, out = outcomes
    assert "not applicable: it is not cooperative" in out
    assert "not applicable: it does not declare 'sticky'" in out


def test_an_expected_failure_is_one(outcomes):
    said, _ = outcomes
    assert said["TestFunction::test_conforms[assigned-twice]"] == ("XFAIL", "it is shared")
    assert said["test_decorated[Unbalanced-unbalanced]"] == ("XFAIL", "on purpose")


def test_what_passes_against_expectation_fails(outcomes):
    said, out = outcomes
    assert said["TestFunction::test_conforms[no-partitions]"][0] == "FAILED"
    assert "[XPASS(strict)] not so" in out


def test_a_failure_tells_what_went_wrong_and_the_group(outcomes):
    said, out = outcomes
    assert said["TestFunction::test_conforms[more-members]"] == (
        "FAILED",
        "Failed: more-members: orders-0 went to 'c1' and to 'c2'",
    )
    assert said["test_fixture_fails"][0] == "FAILED"
    assert '"topics":{"orders":{"partitions":1}},"members":[{"id":"c1","topics":["orders"]}]}' in out


def test_a_class_without_an_assignor_says_what_is_missing(outcomes):
    said, _ = outcomes
    assert said["TestNothing::test_conforms[raises]"] == (
        "FAILED",
        "Failed: TestNothing.assignor is not set: name the assignor to check",
    )


@pytest.mark.parametrize("way", ["class", "decorator"])
def test_an_expected_failure_of_no_check_ends_the_run(tmp_path, way):
    ways = {
        "class": "class TestX(AssignorConformance):\n    expected_failed_checks = {'nope': 'x'}",
        "decorator": "@parametrize_with_checks(['range'], {'nope': 'x'})\ndef test_x(assignor, check): pass",
    }
    head = THREE_WAYS.splitlines()[1]
    (tmp_path / "test_mine.py").write_text(f"{head}\n{ways[way]}\n")
    done = run(tmp_path)
    assert done.returncode not in (0, 1)
    assert "expected_failed_checks: check: found 'nope', expected one of raises, " in done.stdout


def test_a_run_that_does_not_use_it_does_not_pay_for_it(tmp_path):
    (tmp_path / "test_strangers.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    assert 'rebalance_conformance.pytest_plugin' in sys.modules\n"
        "    assert {'numpy', 'coordinator_core.model', 'msgspec'}.isdisjoint(sys.modules)\n"
        "    rooms = ('coordinator_core', 'assignors', 'rebalance_conformance')\n"
        "    ours = {m for m in sys.modules if m.partition('.')[0] in rooms}\n"
        "    assert len(ours) == 2, ours\n"
    )
    done = run(tmp_path, "-q", "-W", "error")
    assert done.returncode == 0, done.stdout
