"""What is wrong with a scenario: one error that names its place, what was found and what was expected."""

import pickle

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios import scenario as scenario_module
from rebalance_lab.scenarios.scenario import parse_scenario
from tests.approved import approved
from tests.rebalance_lab.scenarios.wrong import RIGHT, changed, wrong_scenarios


def error_of(document):
    with pytest.raises(InputError) as caught:
        parse_scenario(document, where="deploy.yaml")
    return caught.value


def test_the_document_that_the_others_are_made_of_is_right():
    assert parse_scenario(RIGHT, where="deploy.yaml").name == "deploy"


def test_each_wrong_scenario_has_an_error_that_names_the_place_what_was_found_and_what_was_expected():
    wrong = wrong_scenarios()
    assert len(wrong) > 100
    approved("scenario_errors", {what: str(error_of(document)) for what, document in wrong.items()})


@pytest.mark.parametrize("field", ["name", "duration", "topics", "members"])
def test_a_field_that_must_be_there_is_asked_for(field):
    error = error_of({name: value for name, value in RIGHT.items() if name != field})
    assert (error.where, error.found) == (f"deploy.yaml: {field}", "nothing")


def test_a_group_has_only_so_many_members(monkeypatch):
    monkeypatch.setattr(scenario_module, "MOST_MEMBERS", 3)
    error = error_of(RIGHT)
    assert (error.where, error.found, error.expected) == (
        "deploy.yaml: members",
        "more than 3 members",
        "fewer",
    )


def test_an_error_survives_pickling_and_its_line_names_place_found_and_expected():
    error = error_of(changed({"events": [{"at": "1s", "leave": "nobody"}]}))
    copied = pickle.loads(pickle.dumps(error))
    assert f"{error.where}: found {error.found}, expected {error.expected}" == str(copied) == str(error)
