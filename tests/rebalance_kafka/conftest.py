"""Separate event loops for these tests, whatever else runs in the same process."""

import gc
from asyncio import events
from pathlib import Path

import pytest

from tests.rebalance_kafka.stand import LIMITS, Stand

HERE = Path(__file__).parent


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Hide the event loop of Playwright, which counts as running in this thread even while it sleeps."""
    if not item.path.is_relative_to(HERE):
        return (yield)
    kept = events._get_running_loop()
    events._set_running_loop(None)
    try:
        return (yield)
    finally:
        events._set_running_loop(kept)
