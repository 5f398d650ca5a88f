"""Scenarios by name: those that come with the package."""

import tomllib

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.shipped import scenario_path, shipped
from tests.places import ROOT, SCENARIOS


def test_they_are_the_scenarios_of_the_checkout_in_the_order_of_their_names():
    assert list(shipped()) == sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def test_the_wheel_has_them_in_the_folder_of_the_package():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["force-include"] == {str(SCENARIOS.relative_to(ROOT)): "rebalance_lab/scenarios/shipped"}


def test_a_name_is_that_of_a_scenario_of_the_package():
    assert load_scenario("bounce") == load_scenario(SCENARIOS / "bounce.yaml")


def test_a_file_of_that_name_counts_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bounce").write_text("name: mine")
    assert str(scenario_path("bounce")) == "bounce"


def test_paths_and_file_names_stay_as_they_are():
    for name in ("bounce.yaml", "folder/bounce", "/bounce"):
        assert str(scenario_path(name)) == name


def test_an_unknown_name_is_an_error_that_lists_what_there_is():
    with pytest.raises(InputError) as raised:
        load_scenario("bounse")
    assert str(raised.value) == (
        "bounse: found neither a file nor the name of a scenario, expected a file, or a scenario that comes"
        f" with the package: one of {len(shipped())} names (did you mean 'bounce'?)"
    )
