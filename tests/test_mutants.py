"""The table of faults fits the program: each line is where it is said to be, once."""

import pytest

from tests.mutants.__main__ import choose, errors
from tests.mutants.table import Mutant, MutantError, mutants, rooms
from tests.places import ROOT

FAULT = Mutant("room", "fault", "tests/README.md", ("tests/test_mutants.py",), "line", "other")


def test_every_fault_fits_the_program():
    found = [mutant for room in rooms() for mutant in mutants(room)]
    assert len(found) >= 150
    assert [error for mutant in found for error in errors(mutant)] == []


def test_a_fault_replaces_one_line_and_keeps_its_place():
    assert FAULT.applied("a\n    line\nb\n") == "a\n    other\nb\n"


@pytest.mark.parametrize(
    ("source", "times"), [("a\n", "is not there"), ("line\n line\n", "is there 2 times")]
)
def test_a_line_that_is_not_there_once_is_an_error(source, times):
    with pytest.raises(MutantError, match=times):
        FAULT.applied(source)


def test_the_line_before_tells_equal_lines_apart():
    assert FAULT._replace(before="b").applied("a\nline\n b\nline\n") == "a\nline\n b\nother\n"


def test_a_fault_that_changes_nothing_and_tests_that_do_not_exist_are_errors():
    wrong = FAULT._replace(
        line=(ROOT / "tests/README.md").read_text().split("\n")[0], tests=("tests/none.py",)
    )
    found = list(errors(wrong._replace(fault=wrong.line)))
    assert found == ["room fault: the fault is the line itself", "room fault: there is no tests/none.py"]


def test_a_sample_is_the_same_for_the_same_seed_and_has_faults_of_the_chosen_rooms():
    one, other = (choose(["classic", "client"], [], 9, seed) for seed in (1, 2))
    assert one == choose(["classic", "client"], [], 9, 1) != other
    assert {mutant.room for mutant in one} <= {"classic", "client"}


@pytest.mark.parametrize(("names", "only"), [(["nowhere"], []), (["classic"], ["nothing"])])
def test_unknown_rooms_and_faults_are_errors(names, only):
    with pytest.raises(MutantError, match="No such"):
        choose(names, only, None, 0)
