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


@pytest.mark.slow
def test_a_table_of_all_checks_and_status_0_where_all_pass():
    done = in_a_process("check", "range", "-n", "2")
    assert (done.returncode, done.stderr) == (0, b"")
    out = done.stdout.decode()
    assert out.startswith("range, suite 1.2, 2 groups a check\n")
    assert list(rows(out)) == [check.name for check in CHECKS]
    assert rows(out)["raises"] == ("✓", "An ordinary group is no reason to raise.")
    assert rows(out)["unbalanced"][0] == "-"
    assert rows(out)["unbalanced"][1].startswith("not applicable: it does not declare 'balanced'")


@pytest.mark.slow
def test_a_fault_is_told_once_with_its_checks_and_a_line_for_assign_and_status_1():
    done = in_a_process("check", TWICE, "-n", "15", "--expect", "more-members=it is shared")
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"error: {TWICE} fails ")
    out = done.stdout.decode()
    assert rows(out)["assigned-twice"] == ("✗", "No partition is given twice.")
    assert rows(out)["more-members"][0] == "x"
    assert rows(out)["more-members"][1].startswith("expected failure: it is shared (orders-0 went to")
    assert out.count(": orders-0 went to 'c1' and to 'c2'\n") == 1
    said, title, line = out.split("\n\n")[1].splitlines()[:3]
    assert said.startswith("assigned-twice, unknown-topics")
    assert title == "the group, for rebalance-lab assign:"
    answer = in_a_process("assign", stdin=line.encode())
    assert answer.returncode == 1
    assert "orders-0 went to both 'c1' and 'c2'" in json.loads(answer.stdout)["error"]


@pytest.mark.slow
def test_json_has_every_check_with_its_outcome_and_its_group_and_nothing_that_the_assignor_prints():
    document = json.loads(in_a_process("check", f"{WRONG}:Talks", "-n", "2", "--format", "json").stdout)
    assert (document["passed"], document["suite_version"]) == (True, "1.2")
    assert [each["check"] for each in document["checks"]] == [check.name for check in CHECKS]
    assert {each["outcome"] for each in document["checks"]} == {"passed", "not applicable"}
    done = in_a_process("check", f"{WRONG}:drops_the_last", "-n", "2", "--format", "json")
    (failure,) = [e for e in json.loads(done.stdout)["checks"] if e["check"] == "partition-left-out"]
    assert (done.returncode, failure["outcome"], failure["reason"]) == (1, "failed", "nobody got orders-0")
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
