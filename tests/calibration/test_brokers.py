"""The brokers of runs, and the states of a group on them."""

import asyncio
import json
from contextlib import ExitStack
from threading import Event, Thread

from rebalance_kafka import Consumer
from tests.calibration import brokers
from tests.calibration.member import Log
from tests.calibration.real import create
from tests.rebalance_kafka.peers import wait_until


class FakeKafka:
    def __init__(self, folder, settings):
        self.address, self.pid, self.settings = str(folder), id(self), settings

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.address = "ended"


def test_runs_with_the_same_settings_share_a_kafka(monkeypatch):
    started = []
    monkeypatch.setattr(brokers, "Kafka", lambda *given: started.append(FakeKafka(*given)) or started[-1])
    with ExitStack() as stack:
        place = brokers.kafka(stack)
        with place({"a": 1, "b": 2}) as one, place({"b": 2, "a": 1}) as other, place({"a": 2}) as different:
            assert one == other != different
        assert [kafka.settings for kafka in started] == [
            {**brokers.LEAST, "a": 1, "b": 2},
            {**brokers.LEAST, "a": 2},
        ]
    assert {kafka.address for kafka in started} == {"ended"}


def test_each_state_of_a_group_is_written_once_and_those_of_others_are_not(tmp_path):
    path, ended = tmp_path / "states", Event()

    async def live(address, group):
        async with Consumer(bootstrap_servers=address, group_id=group) as consumer:
            consumer.subscribe("t")
            while not consumer.assignment:
                await consumer.poll(0.1)
            await consumer.poll(0.1)

    with brokers.serve({"group.initial.rebalance.delay.ms": 100}) as broker:
        create(broker.address, "t", 1)
        watching = Thread(target=brokers.watch, args=(broker.address, "g", Log(str(path)), ended))
        watching.start()
        for group in ("other", "g"):
            asyncio.run(live(broker.address, group))
        wait_until(lambda: path.read_text().endswith('""]\n'))
        ended.set()
        watching.join()
    states = [json.loads(line)[2] for line in path.read_text().splitlines()]
    assert [state for state in states if state != "CompletingRebalance"] == [
        "PreparingRebalance",
        "Stable",
        "",
    ]
