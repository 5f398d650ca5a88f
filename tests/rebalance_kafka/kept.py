"""What a broker keeps in its folder, with all kinds of rows: written to a store, and read by a broker."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.broker.transactions import Transactions
from tests.rebalance_kafka.records import BEGINS, batch, numbered

GROUPS, OFFSETS = ("g", "another"), 10
BATCHES = 23
"""Batches of four records, beside eight records of producers."""

FAR_MS = 10**13
"""A time at which a transaction begins that does not end in a test."""


def write(folder: Path) -> Store:
    """Write what a small broker keeps, and return its store."""
    store = Store(folder)
    topics = Topics(store, most_bytes=10**9)
    transactions = Transactions(store, topics)
    topics.create({"t": 2, "u": 1}, {"u": {"retention.ms": "5000"}})
    for number in range(BATCHES):
        topics.append([("t", number % 2, numbered(4))])
    producers = {name: transactions.initialize(name, 60_000, None, now_ms=1) for name in ("x", "y")}
    for name, producer in producers.items():
        transactions.add(name, producer, FAR_MS, partitions=[("u", 0)])
        records = batch(b"1", b"2", producer=(*producer, 0), transactional=True)
        topics.append([("u", 0, records)], begin=BEGINS)
    transactions.end("x", producers["x"], 2, committed=False)
    topics.append([("t", 0, batch(b"1", b"2", b"3", b"4", producer=(7, 0, 0)))])
    topics.delete_records({("t", 1): 5})
    for group in GROUPS:
        for n in range(OFFSETS):
            offset = StoredOffset(100 + n, -1, "", committed_at_ms=1)
            store.append(home_partition(group, 50), [OffsetRecord(group, "t", n % 2, offset)])
            store.append(home_partition(group, 50), [OffsetRecord(group, "u", n, offset)])
    return store


def state(folder: Path) -> Mapping[str, Any]:
    """Start a broker on a folder, and return all that it has of earlier."""

    async def started() -> Mapping[str, Any]:
        async with EmbeddedBroker(data_dir=folder) as broker:
            node = broker._running()
            topics, transactions = node.data.topics, node.data.transactions
            places = [(topic, n) for topic, count in topics.partitions.items() for n in range(count)]
            return {
                "offsets": {group: dict(node.coordinator.offsets(group)) for group in GROUPS},
                "topics": (topics.partitions, topics.ids, topics.configs),
                "records": [
                    topics.read(*place, topics.start(*place), 10**9, at_least_one=True) for place in places
                ],
                "bounds": [(topics.start(*at), topics.end(*at), topics.last_stable(*at)) for at in places],
                "times": [(topics.newest(*at), topics.offset_since(*at, 1)) for at in places],
                "aborted": topics._producers._aborted,
                "producers": topics._producers._producers,
                "transactions": list(transactions),
                "next producer": node.data.store.next_producer_id(),
            }

    return asyncio.run(started())
