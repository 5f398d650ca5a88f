"""The protocol families that a broker serves are records, those of plugins too."""

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.families.classic import CLASSIC
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker.embedded import PROTOCOLS
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import Request
from rebalance_uncoordinated.watcher.family import WATCHER
from tests.coordinator_core.families.toy import TOY, ToyRequest
from tests.rebalance_kafka.live import broker, run

ASKS_OFTEN = {"toy.ask.every.ms": 500}


def test_a_family_of_a_plugin_is_served_with_its_settings():
    async def work():
        async with broker(protocols=(*PROTOCOLS, TOY), settings=ASKS_OFTEN) as kafka:
            assert kafka.configs["toy.ask.every.ms"] == "500"
            answers = []
            for member in ("a", "b"):
                message = ToyRequest("g", member, ("t",))
                kafka.receive(Request(Api.JOIN_GROUP, 9, 1, "us", message), "/127.0.0.1", answers.append)
            assert [answer.error for answer in answers] == [ErrorCode.NONE] * 2
            assert answers[1].share == (TopicPartition("t", 2), TopicPartition("t", 3))  # of uniform
            assert kafka.groups == ["g"]

    run(work())


def test_the_settings_are_those_of_the_families_that_are_served():
    assert "group.consumer.session.timeout.ms" in broker(protocols=[CLASSIC, RECONCILE]).configs
    with pytest.raises(InputError, match="expected a setting by Kafka's name"):
        broker(protocols=[CLASSIC], settings={"group.consumer.session.timeout.ms": 10_000})


def test_a_family_without_a_coordinator_is_refused():
    async def work():
        with pytest.raises(PluginError, match="the protocol has no part for the coordinator"):
            await broker(protocols=[WATCHER]).start()

    run(work())
