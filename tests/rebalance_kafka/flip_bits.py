"""A broker is started on files in which one bit is wrong. What it says, and what it has lost, is counted.

    python -m tests.rebalance_kafka.flip_bits [FLIPS] [SEED]

The files have 20 committed offsets and 100 records, with all that a broker keeps beside them. They are those
of a broker that was stopped, and of one that was killed, whose last writes are in the write-ahead log. The
bits are drawn from all bytes of a file, used or not.
"""

import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.errors import InputError
from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.broker.store import FILE, Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.broker.transactions import Transactions
from tests.rebalance_kafka.records import BEGINS, batch, numbered

GROUPS, OFFSETS = ("g", "another"), 10
BATCHES = 23
"""Batches of four records, beside eight records of producers."""

FAR_MS = 10**13
"""A time at which a transaction begins that does not end in a test."""

LIMIT_SECONDS = 20


class Fate(StrEnum):
    """What became of a start."""

    UNCHANGED = "unchanged"
    REFUSED = "refused by name"
    WARNED = "a warning"
    LOST = "silent loss"
    TRACEBACK = "traceback"
    HANG = "hang"


WRONG = (Fate.LOST, Fate.TRACEBACK, Fate.HANG)


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


class _Said(logging.Handler):
    """Notes what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _heard() -> Iterator[list[logging.LogRecord]]:
    said = _Said()
    logging.getLogger().addHandler(said)
    try:
        yield said.records
    finally:
        logging.getLogger().removeHandler(said)


def fate(folder: Path, expected: Mapping[str, Any]) -> tuple[Fate, str]:
    """Start a broker on a folder. Return what became of it, and what was said or lost."""

    def over(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT_SECONDS)
    with _heard() as said:
        try:
            found = state(folder)
        except InputError as error:
            return (Fate.REFUSED if FILE in error.where else Fate.TRACEBACK), str(error)
        except TimeoutError:
            return Fate.HANG, ""
        except Exception as error:  # whatever a user would see as a traceback
            return Fate.TRACEBACK, f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
    if any(record.levelno > logging.WARNING for record in said):
        return Fate.TRACEBACK, said[0].getMessage()
    if said:
        return Fate.WARNED, said[0].getMessage()
    lost = [name for name, value in expected.items() if found[name] != value]
    return (Fate.LOST, ", ".join(lost)) if lost else (Fate.UNCHANGED, "")


def folders(under: Path) -> dict[str, Path]:
    """Return the folder of a broker that was stopped, and that of one that was killed."""
    write(under / "stopped").close()
    with closing(write(under / "running")):
        shutil.copytree(under / "running", under / "killed")
    return {name: under / name for name in ("stopped", "killed")}


def flipped(under: Path, flips: int, seed: int) -> Iterator[tuple[str, Path, int, Fate, str]]:
    """Yield for each flip: the folder, the file, the bit, and what became of the start."""
    random = Random(seed)
    for name, folder in folders(under).items():
        expected = state(shutil.copytree(folder, under / f"{name}-expected"))
        files = [
            folder / name for name in (FILE, f"{FILE}-commits", f"{FILE}-wal") if (folder / name).exists()
        ]
        for _ in range(flips):
            for path in files:
                data = bytearray(path.read_bytes())
                bit = random.randrange(8 * len(data))
                data[bit // 8] ^= 1 << bit % 8
                copy = under / "flipped"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(folder, copy)
                (copy / path.name).write_bytes(data)
                yield name, path, bit, *fate(copy, expected)


def main(flips: int = 1_000, seed: int = 1) -> int:
    """Print a table of the fates, and each flip with a wrong one. Return 1 if there are such."""
    counts: dict[tuple[str, str], Counter[Fate]] = {}
    with tempfile.TemporaryDirectory() as under:
        for name, path, bit, end, words in flipped(Path(under), flips, seed):
            counts.setdefault((name, path.name), Counter())[end] += 1
            if end in WRONG:
                sys.stdout.write(f"{name} {path.name} bit {bit}: {end}: {words}\n")
    heads = "".join(f"{end:>17}" for end in Fate)
    sys.stdout.write(f"{'folder':8} {'file':24}{heads}\n")
    for (name, file), fates in counts.items():
        counted = "".join(f"{fates[end]:17,}" for end in Fate)
        sys.stdout.write(f"{name:8} {file:24}{counted}\n")
    return int(any(fates[end] for fates in counts.values() for end in WRONG))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
