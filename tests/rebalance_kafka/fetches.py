"""Fetch requests to a broker's data and to its node, written and read by kafka-python."""

import asyncio

from coordinator_core.coordinator.config import CoordinatorConfig
from rebalance_kafka.broker.node import Node
from rebalance_kafka.broker.recorder import Recorder
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.frames import PLENTY, Desk, their_class, their_request

SECONDS = 60.0


def rows(api, outer, inner, wanted):
    """Topics with partitions as the request has them: {topic: [fields of a partition]}."""
    topic = getattr(their_class(api, "Request"), outer)
    name = "topic" if api in (Api.FETCH, Api.OFFSET_FOR_LEADER_EPOCH) else "name"
    listed = "partition_data" if api is Api.PRODUCE else "partitions"
    return [
        topic(**{name: each, listed: [getattr(topic, inner)(**fields) for fields in parts]})
        for each, parts in wanted.items()
    ]


def fetch_fields(wanted, ids, *, most=PLENTY):
    """Topics as a Fetch has them, with their names, or from version 13 on with their ids."""
    parts = {
        topic: [{"partition": n, "fetch_offset": at, "partition_max_bytes": most} for n, at in each.items()]
        for topic, each in wanted.items()
    }
    topics = rows(Api.FETCH, "FetchTopic", "FetchPartition", parts)
    for topic in topics:
        topic.topic_id = ids.get(topic.topic)
    return topics


def fetch(desk, wanted, *, version=12, max_bytes=PLENTY, most=PLENTY, min_bytes=1, **options):
    return desk.ask(
        Api.FETCH,
        version,
        max_wait_ms=0,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=fetch_fields(wanted, desk.topics.ids, most=most),
        **options,
    )


def waiting_fetch(wanted, *, min_bytes=1, max_wait_ms=3_600_000, **options):
    return their_request(
        Api.FETCH,
        12,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=PLENTY,
        topics=fetch_fields(wanted, {}),
        **options,
    )


class Waiting:
    """Fetches at a node, and what has been answered."""

    def __init__(self, desk):
        self.answers = asyncio.Queue()
        recorder = Recorder(desk.topics)
        config = CoordinatorConfig(offsets_topic_partitions=1)
        loop = asyncio.get_running_loop()
        self.node = Node(loop, desk.store, desk.data, config, recorder, None)

    def fetch(self, request):
        return self.node.receive(request, "/here", self.answers.put_nowait)

    def offsets(self):
        values = self.answers.get_nowait()
        parts = [part for topic in values["responses"] for part in topic["partitions"]]
        return [[each.offset for each in records_of(part["records"])[0]] for part in parts]


def at_a_node(steps):
    """Carry out steps that take a desk and fetches at its node."""

    async def work():
        desk = Desk({"t": 2, "u": 1})
        waiting = Waiting(desk)
        try:
            async with asyncio.timeout(SECONDS):
                await steps(desk, waiting)
        finally:
            waiting.node.stop()

    asyncio.run(work())
