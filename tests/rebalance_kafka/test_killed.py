"""A broker with a folder is killed repeatedly.

Longer runs: ``python -m tests.rebalance_kafka.killed 100``, and the same with ``killed_librdkafka``.
"""

import pytest

from coordinator_core.errors import InputError
from rebalance_kafka.broker.store import Store
from tests.rebalance_kafka.killed import run

pytestmark = pytest.mark.killed

pytest.importorskip("resource", reason="SIGKILL is for systems that have it")

KILLS = 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_a_killed_broker_loses_no_acknowledged_write(tmp_path, seed):
    result = run(tmp_path, KILLS, seed)
    assert result.kills == KILLS
    assert result.records > 0
    assert result.commits > 0
    assert result.stable_after


@pytest.mark.slow
@pytest.mark.peer
def test_a_killed_broker_loses_no_write_that_librdkafka_was_told_of(tmp_path):
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    from tests.rebalance_kafka import killed_librdkafka

    result = killed_librdkafka.run(tmp_path, 3, 1)
    assert result.records > 0
    assert len(result.again_after) == 3


@pytest.mark.slow
def test_the_data_of_a_killed_broker_can_be_opened(tmp_path):
    run(tmp_path, 1, 2)
    store = Store(tmp_path)
    with pytest.raises(InputError, match="no other process uses"):
        Store(tmp_path)
    assert store.topics() == {"orders": 4}
    store.close()
