"""A broker with a folder is killed repeatedly.

Longer runs: ``python -m tests.rebalance_kafka.killed 100``.
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
def test_the_data_of_a_killed_broker_can_be_opened(tmp_path):
    run(tmp_path, 1, 2)
    store = Store(tmp_path)
    with pytest.raises(InputError, match="no other process uses"):
        Store(tmp_path)
    assert store.topics() == {"orders": 4}
    store.close()
