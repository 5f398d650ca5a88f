"""A broker with a folder that is killed repeatedly while clients work. No acknowledged write is lost.

    python -m tests.rebalance_kafka.killed [KILLS] [SEED]

At work are producers, idempotent ones that send a batch again until it is acknowledged and one that does not;
groups of both protocols whose members read and commit; and somebody who commits without a group. Two kills of
three come while the groups are Stable, the others at any moment from the start of the process on.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from coordinator_core.errors import RebalanceLabError
from coordinator_core.model import TopicPartition
from rebalance_kafka import Consumer
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.served import Served, serving
from tests.rebalance_kafka.stand import Line

T = TypeVar("T")
TOPIC = "orders"
IDEMPOTENT = (0, 1)
PLAIN = 2
PARTITIONS = 4
GROUPS = {"workers": ("classic", 3), "others": ("consumer", 2)}
"""Groups with their protocols and numbers of members."""

ALONE = "alone"
SESSION_MS, REBALANCE_MS = 6_000, 10_000
LIMIT_SECONDS = (SESSION_MS + REBALANCE_MS) / 1_000 + 30
"""A group's timeouts, and what a busy machine may add to them."""

OPTIONS = (
    *("--topic", f"{TOPIC}={PARTITIONS}"),
    *("--set", "group.initial.rebalance.delay.ms=0"),
    *("--set", "group.min.session.timeout.ms=500"),
    *("--set", f"group.consumer.session.timeout.ms={SESSION_MS}"),
    *("--set", "group.consumer.heartbeat.interval.ms=300"),
)
CLASSIC = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300}
SETTINGS = {
    "max.poll.interval.ms": REBALANCE_MS,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
}


class Patient:
    """Asks until there is an answer, whoever dies meanwhile."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._line: Line | None = None

    async def ask(self, api: Api, version: int, *, again: bool = True, **values: Any) -> Any:
        """The answer; None where there is none to the only attempt. Nobody waits for ever."""
        until = monotonic() + LIMIT_SECONDS
        while monotonic() < until:
            try:
                if self._line is None:
                    self._line = await Line.to(self._address)
                async with asyncio.timeout(10):
                    return await self._line.ask(api, version, **values)
            except (OSError, EOFError, TimeoutError):
                self.close()
            if not again:
                return None
            await asyncio.sleep(0.02)
        raise AssertionError(f"no answer to {api.name} for {LIMIT_SECONDS:.0f} s")

    def close(self) -> None:
        if self._line is not None:
            self._line.abort()
            self._line = None


class Producer:
    """Numbered records to a partition of its own, one batch after the other."""

    def __init__(self, address: str, partition: int, random: Random, *, idempotent: bool) -> None:
        self.partition, self.acknowledged = partition, dict[int, bytes]()
        self._line, self._random, self._idempotent = Patient(address), random, idempotent
        self.sent = 0

    async def work(self) -> None:
        producer = -1
        if self._idempotent:
            producer = (await self._line.ask(Api.INIT_PRODUCER_ID, 4)).producer_id
        while True:
            values = [b"%d" % (self.sent + n) for n in range(self._random.randint(1, 5))]
            identity = (producer, 0, self.sent) if self._idempotent else (-1, -1, -1)
            self.sent += len(values)
            written = {"index": self.partition, "records": batch(*values, producer=identity)}
            topic = {"name": TOPIC, "partition_data": (written,)}
            answer = await self._line.ask(Api.PRODUCE, 9, topic_data=(topic,), again=self._idempotent)
            if answer is not None:
                (reported,) = answer.responses[0].partition_responses
                assert reported.error_code == 0, reported
                self.acknowledged |= {reported.base_offset + n: value for n, value in enumerate(values)}
            await asyncio.sleep(0)


class Committer:
    """Commits ever greater offsets, without a group."""

    def __init__(self, address: str) -> None:
        self.acknowledged = self.sent = -1
        self._line = Patient(address)

    async def work(self) -> None:
        while True:
            self.sent += 1
            offset = {"partition_index": 0, "committed_offset": self.sent}
            offset |= {"committed_leader_epoch": -1, "committed_metadata": ""}
            topic = {"name": TOPIC, "partitions": (offset,)}
            answer = await self._line.ask(Api.OFFSET_COMMIT, 8, group_id=ALONE, topics=(topic,))
            assert answer.topics[0].partitions[0].error_code == 0
            self.acknowledged = self.sent
            await asyncio.sleep(0)


class Member:
    """Reads, and commits what it has read."""

    def __init__(self, address: str, group: str, acknowledged: dict[TopicPartition, int]) -> None:
        self.group, self.acknowledged = group, acknowledged
        protocol, _ = GROUPS[group]
        self.consumer = Consumer(
            TOPIC,
            bootstrap_servers=address,
            group_id=group,
            strategy="range",
            protocol=protocol,
            settings=SETTINGS | (CLASSIC if protocol == "classic" else {}),
        )
        self.refused = 0

    async def work(self) -> None:
        await self.consumer.start()
        while True:
            read = await self.consumer.poll(0.1)
            offsets = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in read}
            mine = {tp: offset for tp, offset in offsets.items() if tp in self.consumer.assignment}
            if not mine:
                continue
            try:
                await self.consumer.commit(mine)
            except RebalanceLabError:
                self.refused += 1
                continue
            for tp, offset in mine.items():
                self.acknowledged[tp] = max(offset, self.acknowledged.get(tp, -1))


class Result(NamedTuple):
    """The result of a run."""

    kills: int
    records: int
    commits: int
    stable_after: list[float]


class World:
    """The broker's process, its clients, and the writes that were acknowledged."""

    def __init__(self, folder: Path, random: Random) -> None:
        self._folder, self._random = folder, random
        self._broker = Served("--data-dir", folder, *OPTIONS)
        self.address = self._broker.address()
        self._line = Patient(self.address)
        self.producers = [Producer(self.address, n, random, idempotent=True) for n in IDEMPOTENT]
        self.producers.append(Producer(self.address, PLAIN, random, idempotent=False))
        self.committer = Committer(self.address)
        self.commits: dict[str, dict[TopicPartition, int]] = {group: {} for group in GROUPS}
        self.members = [
            Member(self.address, group, self.commits[group])
            for group, (_, count) in GROUPS.items()
            for _ in range(count)
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self.stable_after: list[float] = []

    async def killed(self, kills: int) -> Result:
        """Let the clients work, kill the broker, check the data; and check all data at the end."""
        try:
            for each in (*self.producers, self.committer, *self.members):
                self._tasks.append(asyncio.create_task(each.work()))
            await self._until_stable()
            for _ in range(kills):
                await self._live_a_little()
                await asyncio.to_thread(self._kill_and_start)
                if self._random.randrange(3):
                    await self._until_stable()
                    await self._check_commits()
            await self._until_stable()
            await self._check_commits()
            await self._check_records()
            records = sum(len(each.acknowledged) for each in self.producers)
            return Result(kills, records, self.committer.acknowledged, self.stable_after)
        finally:
            await _all_cancelled(self._tasks)
            for member in self.members:
                if member.consumer._links is not None:
                    await member.consumer._links.close()
            for who in (self, self.committer, *self.producers):
                who._line.close()
            with self._broker:
                await asyncio.to_thread(self._broker.kill)

    async def _live_a_little(self) -> None:
        await asyncio.sleep(self._random.uniform(0.0, 1.0))
        for task in self._tasks:
            if task.done():
                task.result()

    def _kill_and_start(self) -> None:
        with self._broker as broker:
            broker.kill()
        self._broker = serving(self._folder, self.address, OPTIONS)
        if self._random.randrange(3) == 0:  # it may die before it listens
            return
        assert self._broker.address() == self.address

    # --- what must hold

    async def _until_stable(self) -> None:
        """Wait until the groups are Stable and members own all partitions. Fail after the timeouts."""
        begun = monotonic()
        for name, (protocol, _) in GROUPS.items():
            members = [member.consumer for member in self.members if member.group == name]
            while True:
                group = await self._described(name, protocol)
                ids = {member.member_id for member in group.members}
                owned = [tp for member in members for tp in member.assignment]
                whole = sorted(owned) == [(TOPIC, n) for n in range(PARTITIONS)]
                if whole and group.group_state == "Stable" and ids == {each.member_id for each in members}:
                    break
                assert monotonic() < begun + LIMIT_SECONDS, f"not Stable again: {group}, {sorted(owned)}"
                await asyncio.sleep(0.02)
        self.stable_after.append(monotonic() - begun)

    async def _described(self, group: str, protocol: str) -> Any:
        if protocol == "classic":
            (described,) = (await self._line.ask(Api.DESCRIBE_GROUPS, 5, groups=(group,))).groups
        else:
            asked = {"group_ids": (group,)}
            (described,) = (await self._line.ask(Api.CONSUMER_GROUP_DESCRIBE, 1, **asked)).groups
        return described

    async def _check_commits(self) -> None:
        """Check that each acknowledged commit, or a later one, is stored."""
        alone = self.committer.acknowledged
        for group in GROUPS:
            acknowledged = dict(self.commits[group])
            kept = await self._committed(group)
            for tp, offset in acknowledged.items():
                assert kept.get(tp, -1) >= offset, f"{tp}: {offset} was committed, {kept.get(tp)} is there"
        offset = (await self._committed(ALONE)).get(TopicPartition(TOPIC, 0), -1)
        assert alone <= offset <= self.committer.sent, f"{offset}, not {alone} to {self.committer.sent}"

    async def _committed(self, group_id: str) -> dict[TopicPartition, int]:
        answer = await self._line.ask(Api.OFFSET_FETCH, 7, group_id=group_id, topics=None)
        return {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
        }

    async def _check_records(self) -> None:
        """Check that each acknowledged record is at its offset, and once and in order if it is idempotent."""
        for producer in self.producers:
            acknowledged = dict(producer.acknowledged)
            kept = await self._records(producer.partition)
            lost = {offset for offset, value in acknowledged.items() if kept.get(offset) != value}
            assert not lost, f"partition {producer.partition}: {sorted(lost)[:10]} of {len(acknowledged)}"
            if producer.partition in IDEMPOTENT:
                assert list(kept.values()) == [b"%d" % n for n in range(len(kept))]

    async def _records(self, partition: int) -> dict[int, bytes | None]:
        kept: dict[int, bytes | None] = {}
        offset, end = 0, 1
        while offset < end:
            requested = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 2**20}
            topics = ({"topic": TOPIC, "partitions": (requested,)},)
            answer = await self._line.ask(
                Api.FETCH, 12, topics=topics, max_bytes=2**20, min_bytes=0, max_wait=0
            )
            (reported,) = answer.responses[0].partitions
            records, after = records_of(reported.records)
            kept |= {each.offset: each.value for each in records}
            offset, end = max(after, offset), reported.high_watermark
            if not reported.records:
                break
        return kept


async def _all_cancelled(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel repeatedly: wait_for of Python 3.11 drops a cancellation that coincides with a result."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.5)


def run(folder: Path, kills: int, seed: int) -> Result:
    """Run one world.

    Raises:
        AssertionError: if an acknowledged write is lost.
    """

    async def worlds() -> Result:
        return await World(folder, Random(seed)).killed(kills)

    return asyncio.run(worlds())


def print_run(
    run: Callable[[Path, int, int], T], kills: int, told: Callable[[T], tuple[str, str, list[float]]]
) -> None:
    """Run with the arguments of the command, KILLS (``kills`` by default) and SEED, and print the result.

    ``told`` returns what was acknowledged, what comes after a kill, and after how many seconds.
    """
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else kills
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    begun = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        acknowledged, again, seconds = told(run(Path(folder), kills, seed))
    times = sorted(seconds)
    lines = (
        f"{kills} kills in {monotonic() - begun:.0f} s, seed {seed}",
        acknowledged,
        f"{again} after {times[len(times) // 2]:.1f} s in the median, {times[-1]:.1f} s at most",
    )
    sys.stdout.write("\n".join(lines) + "\n")


def _told(result: Result) -> tuple[str, str, list[float]]:
    acknowledged = f"{result.records:,} records and {result.commits:,} commits acknowledged, none lost"
    return acknowledged, "Stable again", result.stable_after


if __name__ == "__main__":
    print_run(run, 100, _told)
