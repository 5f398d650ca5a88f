"""Brokers that are not started or are stopped."""

import pytest

from coordinator_core.errors import InputError
from rebalance_kafka import BackgroundBroker, EmbeddedBroker


def test_a_background_broker_that_was_not_started_is_an_error():
    broker = BackgroundBroker({"t": 1})
    with pytest.raises(InputError, match="one that was not started"):
        broker.address  # noqa: B018
    broker.stop()
    with broker:
        assert broker.topics == {"t": 1}
    with pytest.raises(InputError, match="one that was stopped"):
        broker.topics  # noqa: B018
    broker.stop()


def test_traces_of_a_broker_that_was_not_started_are_an_error():
    with pytest.raises(InputError, match="one that was not started"):
        EmbeddedBroker().traces()


@pytest.mark.parametrize("topics", [["orders"], {"orders": "12"}, {"orders": None}])
def test_topics_without_numbers_of_partitions_are_an_error(topics):
    with pytest.raises(InputError, match=r"topics: found .*, expected numbers of partitions by topic"):
        EmbeddedBroker(topics)


@pytest.mark.parametrize("where", [{"port": -1}, {"port": 70_000}, {"host": "a..b"}])
def test_an_address_that_cannot_be_listened_on_is_an_error(where):
    broker = BackgroundBroker(**where)
    with pytest.raises(InputError, match="expected an address to listen on"):
        broker.start()
