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
MISSING = "Failed: TestNothing.assignor is not set: name the assignor to check"


def test_tests_pass_fail_and_are_skipped_as_their_checks_and_say_why(tmp_path):
    (tmp_path / "test_mine.py").write_text(THREE_WAYS)
    out = run(tmp_path, "-rA", "--tb=short", "-k", f"fixture or {SHOWN}").stdout
    found = re.findall(r"^([A-Z]+) test_mine.py::(\S+)(?: - (.*))?$", out, re.MULTILINE)
    said = {test: (outcome, reason) for outcome, test, reason in found}
    for test, outcome, reason in (
        ("TestClass::test_conforms[raises]", "PASSED", ""),
        ("TestClass::test_conforms[unbalanced]", "PASSED", ""),
        ("test_decorated[range-raises]", "PASSED", ""),
        ("test_decorated[Unbalanced-raises]", "PASSED", ""),
        ("test_fixture", "PASSED", ""),
        ("TestFunction::test_conforms[assigned-twice]", "XFAIL", "it is shared"),
        ("test_decorated[Unbalanced-unbalanced]", "XFAIL", "on purpose"),
        ("TestFunction::test_conforms[no-partitions]", "FAILED", "[XPASS(strict)] not so"),
        (
            *("TestFunction::test_conforms[more-members]", "FAILED"),
            "Failed: more-members: orders-0 went to 'c1' and to 'c2'",
        ),
        ("TestNothing::test_conforms[raises]", "FAILED", MISSING),
    ):
        assert said[test] == (outcome, reason)
    assert said["test_fixture_fails"][0] == "FAILED"
    assert "not applicable: it is not cooperative" in out
    assert "not applicable: it does not declare 'sticky'" in out
    assert '"topics":{"orders":{"partitions":1}},"members":[{"id":"c1","topics":["orders"]}]}' in out


def test_the_class_has_a_test_for_each_check(tmp_path):
    (tmp_path / "test_mine.py").write_text(THREE_WAYS)
    out = run(tmp_path, "--collect-only", "-q").stdout
    for check in CHECKS:
        assert f"test_mine.py::TestClass::test_conforms[{check.name}]" in out
        assert f"test_mine.py::test_decorated[range-{check.name}]" in out


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
