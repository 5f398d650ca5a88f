"""The clients of scenarios have their facts."""

from rebalance_lab.scenarios import application
from rebalance_lab.simulation.process.clients import CLIENTS


def test_every_client_of_a_scenario_has_its_facts():
    assert tuple(CLIENTS) == application.CLIENTS
