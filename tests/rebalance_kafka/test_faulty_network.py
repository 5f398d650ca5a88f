"""Real clients behind a faulty network. Longer: ``python -m tests.rebalance_kafka.faulty_network 20``."""

import pytest

from tests.rebalance_kafka.peers import missing

pytestmark = [pytest.mark.peer, pytest.mark.slow]

for kind in ("kafka-python", "aiokafka", "confluent"):
    if reason := missing(kind):
        pytest.skip(reason, allow_module_level=True)

from tests.rebalance_kafka import faulty_network  # noqa: E402 (it imports the clients)

FORGETFUL = """import rebalance_kafka.broker.producers as producers
producers.Producers.repeated = lambda *_: None
producers.Producers.check = lambda *_: producers.Wire.none
"""
"""A broker that does not know which batches it has."""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_history_of_clients_behind_a_faulty_network_breaks_no_rule(seed):
    result = faulty_network.run(seed)
    assert result.broken == []
    assert result.operations["produce", "ok"] == 3 * faulty_network.RECORDS * faulty_network.PARTITIONS
    assert result.faults.total() >= 10


def test_a_broker_that_forgets_what_it_has_written_is_found():
    results = (faulty_network.run(seed, FORGETFUL) for seed in range(1, 4))
    broken = next((each.broken for each in results if each.broken), [])
    assert any("a record is there twice" in each for each in broken)
