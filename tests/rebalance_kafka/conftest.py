"""A broker for these tests, and garbage collections of their own."""

import gc

import pytest

from tests.rebalance_kafka.stand import LIMITS, Stand


@pytest.fixture(scope="module", autouse=True)
def own_garbage():
    """Exempt what other modules left from the garbage collections of these tests, which then stay short."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def stand():
    """A broker with limits, and a client that is served whatever the others do."""
    with Stand(**LIMITS) as stand:
        yield stand
