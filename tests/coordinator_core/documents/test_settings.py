"""The settings of a scenario."""

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.documents.settings import configured, parse_config
from coordinator_core.registry.registry import default_registry

CONFIG = {"session.timeout.ms": "20s", "group.initial.rebalance.delay.ms": 0}


def test_each_side_gets_the_settings_that_concern_it():
    config = parse_config(CONFIG, "x.yaml: config", default_registry())
    client = configured(ClientConfig, config, group_id="g", client_id="c")
    coordinator = configured(CoordinatorConfig, config)
    assert (client.group_id, client.client_id, client.session_timeout_ms) == ("g", "c", 20_000)
    assert coordinator == CoordinatorConfig(initial_rebalance_delay_ms=0)


def test_a_simulated_consumer_reads_from_the_beginning_unless_told_otherwise():
    assert configured(ClientConfig, {}, group_id="g").auto_offset_reset == "earliest"
    told = parse_config({"auto.offset.reset": "none"}, "x.yaml: config", default_registry())
    assert configured(ClientConfig, told, group_id="g").auto_offset_reset == "none"
