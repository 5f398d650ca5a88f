"""The clients of scenarios have their facts."""

from coordinator_core.documents import application
from coordinator_core.simulation.clients import CLIENTS


def test_every_client_of_a_scenario_has_its_facts():
    assert tuple(CLIENTS) == application.CLIENTS
