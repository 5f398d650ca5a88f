"""The errors say what was found and expected, and survive the way from a worker process."""

import pickle

import pytest

from coordinator_core.errors import AssignmentError, InputError, PluginError, ProtocolError, RebalanceLabError
from rebalance_lab.cli.advise import RunError
from rebalance_lab.verdicts.runs import Run

EXAMPLES = [
    InputError("deploy.yaml: events[3].leave", "'c-9'", "a member that has joined"),
    AssignmentError("mine", ["t0-1 is assigned twice", "unknown member 'x'"], "group 'g'"),
    PluginError("mine", "assignors", "ZeroDivisionError: division by zero"),
    ProtocolError("assignment", "1 byte"),
    RunError("mine", Run("mine", error="it failed", traceback="line 3")),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_an_error_survives_pickling(error):
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_every_error_kind_of_the_core_and_the_lab_has_an_example_here():
    kinds = RebalanceLabError.__subclasses__()
    assert {type(e) for e in EXAMPLES} == {
        kind for kind in kinds if kind.__module__.startswith(("coordinator_core", "rebalance_lab"))
    }


def test_an_input_error_says_where_what_was_found_and_what_was_expected():
    assert str(EXAMPLES[0]) == (
        "deploy.yaml: events[3].leave: found 'c-9', expected a member that has joined"
    )


def test_an_assignment_error_names_the_assignor_and_the_group_where_it_is_known():
    assert str(EXAMPLES[1]) == "assignor 'mine' on group 'g': t0-1 is assigned twice; unknown member 'x'"
    assert str(AssignmentError("mine", ["raised KeyError: 'x'"])) == "assignor 'mine': raised KeyError: 'x'"


def test_an_assignment_error_said_of_a_group_is_otherwise_the_same():
    """Who runs the assignor does not know the group's name; who runs the group does."""
    plain = AssignmentError("mine", ["one", "two"])
    said = plain.of("line 3 (big)")
    assert (said.assignor, said.violations, said.group) == ("mine", ("one", "two"), "line 3 (big)")
    assert plain.group == ""
    assert str(said.of("line 4")) == "assignor 'mine' on line 4: one; two"
