"""`rebalance-lab check`: the table, the failures with their lines, and the exit status."""

import json
import sys

import pytest

from rebalance_conformance.checks import CHECKS
from tests.rebalance_lab.cli.commands import ROOT, in_a_process, the_error

WRONG = ROOT / "tests" / "rebalance_conformance" / "wrong.py"
TWICE = f"{WRONG}:gives_to_two"


def rows(out):
    """The lines of the table: check -> sign and what is said beside it."""
    table = out.split("\n\n")[0].splitlines()[1:]
    return {check: (sign, beside) for sign, check, beside in (line.split(maxsplit=2) for line in table)}


@pytest.fixture(scope="module")
def passing():
    return in_a_process("check", "range", "-n", "2")


@pytest.fixture(scope="module")
def failing():
    return in_a_process("check", TWICE, "-n", "15", "--expect", "more-members=it is shared")


@pytest.mark.slow
def test_a_table_of_all_checks_and_status_0_where_all_pass(passing):
    assert (passing.returncode, passing.stderr) == (0, b"")
    out = passing.stdout.decode()
    assert out.startswith("range, suite 1.2, 2 groups a check\n")
    assert list(rows(out)) == [check.name for check in CHECKS]
    assert rows(out)["raises"] == ("✓", "An ordinary group is no reason to raise.")
    assert rows(out)["unbalanced"][0] == "-"
    assert rows(out)["unbalanced"][1].startswith("not applicable: it does not declare 'balanced'")


@pytest.mark.slow
def test_failures_have_a_cross_and_what_went_wrong_and_status_1(failing):
    assert failing.returncode == 1
    out = failing.stdout.decode()
    assert rows(out)["assigned-twice"] == ("✗", "No partition is given twice.")
    assert rows(out)["more-members"][0] == "x"
    assert rows(out)["more-members"][1].startswith("expected failure: it is shared (orders-0 went to")
    assert "assigned-twice, unknown-topics" in out
    assert failing.stderr.decode().startswith(f"error: {TWICE} fails ")


@pytest.mark.slow
def test_the_line_of_a_failure_goes_into_assign(failing):
    after = failing.stdout.decode().split("\n\n")[1].splitlines()
    assert after[1] == "the group, for rebalance-lab assign:"
    answer = in_a_process("assign", stdin=after[2].encode())
    assert answer.returncode == 1
    assert "orders-0 went to both 'c1' and 'c2'" in json.loads(answer.stdout)["error"]


@pytest.mark.slow
def test_a_fault_that_several_checks_find_is_told_once(failing):
    assert failing.stdout.count(b"\nassigned-twice") == 1
    assert failing.stdout.count(b": orders-0 went to 'c1' and to 'c2'\n") == 1


@pytest.mark.slow
def test_json_has_every_check_with_its_outcome_and_its_group():
    done = in_a_process("check", f"{WRONG}:Talks", "-n", "2", "--format", "json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["passed"] is True
    assert document["suite_version"] == "1.2"
    assert [each["check"] for each in document["checks"]] == [check.name for check in CHECKS]
    assert {each["outcome"] for each in document["checks"]} == {"passed", "not applicable"}


@pytest.mark.slow
def test_json_has_the_groups_of_failures_as_documents():
    done = in_a_process("check", f"{WRONG}:drops_the_last", "-n", "2", "--format", "json")
    assert done.returncode == 1
    (failure,) = [e for e in json.loads(done.stdout)["checks"] if e["check"] == "partition-left-out"]
    assert failure["outcome"] == "failed"
    assert failure["reason"] == "nobody got orders-0"
    assert failure["group"]["topics"] == {"orders": {"partitions": 1}}


@pytest.mark.slow
def test_a_check_that_takes_too_long_is_stopped_and_named():
    done = in_a_process("check", f"{WRONG}:HangsForThree", "-n", "10", "--timeout", "0.5")
    assert done.returncode == 1
    out = done.stdout.decode()
    assert "raises, " in out
    assert ": no answer within 0.5 s\n" in out
    assert rows(out)["slower-than-linear"] == ("?", "not run: 3 checks were stopped before")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "found 'nope', expected one of "),
        (["no/such/file.py:Mine"], "no/such/file.py"),
        (["range", "--expect", "impure"], "--expect: found 'impure', expected CHECK=REASON"),
        (["range", "--expect", "impures=x"], "(did you mean 'impure'?)"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(lab, arguments, said):
    assert said in the_error(lab("check", *arguments))


def test_without_hypothesis_it_says_what_to_install(lab, monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    expected = "check: found no module hypothesis, expected it installed: "
    assert the_error(lab("check", "range")) == expected + 'pip install "rebalance-lab[conformance]"'


@pytest.mark.parametrize("arguments", [["range", "-n", "0"], ["range", "--timeout", "0"], []])
def test_wrong_options_end_with_status_2(lab, arguments):
    answer = lab("check", *arguments)
    assert (answer.status, answer.out) == (2, "")
