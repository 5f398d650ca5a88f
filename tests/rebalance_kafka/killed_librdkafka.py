"""A broker with a folder that is killed repeatedly while librdkafka produces, reads and commits.

    python -m tests.rebalance_kafka.killed_librdkafka [KILLS] [SEED]

Kills come at any moment. After each, the group must have all partitions, write, read and commit again.
"""

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.rebalance_kafka.killed import OPTIONS, PARTITIONS, SESSION_MS, TOPIC, print_run
from tests.rebalance_kafka.peers import wait_until
from tests.rebalance_kafka.peers.waiting import pause
from tests.rebalance_kafka.served import Served, serving

MEMBERS = 3
GROUP = "workers"
LIMIT_SECONDS = 120.0
WORK_SECONDS = 1.5
SOCKET_MS = 5_000
BETWEEN_SECONDS = 0.0005
AT_ONCE, READ_SECONDS = 500, 0.1
PLACES = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]


class Result(NamedTuple):
    """The result of a run. ``again_after``: the seconds from each kill until the group went on."""

    kills: int
    records: int
    again_after: list[float]


class Work:
    """A producer and the members of a group, each in a thread, and the writes that were acknowledged."""

    def __init__(self, address: str) -> None:
        self._settings = {
            "bootstrap.servers": address,
            "log_level": 0,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "socket.timeout.ms": SOCKET_MS,
        }
        self.written: dict[tuple[int, int], bytes] = {}
        self.commits: dict[int, int] = {}
        self._owned: dict[int, set[int]] = {}
        self._errors: list[BaseException] = []
        self._is_over = threading.Event()
        works = [self._produce, *(lambda number=n: self._consume(number) for n in range(MEMBERS))]
        self._threads = [threading.Thread(target=self._noting_errors, args=(work,)) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def end(self) -> None:
        """Wait until everything is written and the members have left."""
        self.__exit__()
        self.check()

    def check(self) -> None:
        """Raise the error of a thread."""
        if self._errors:
            raise self._errors[0]

    def wait_until_it_goes_on(self, records: int, commits: Mapping[int, int]) -> None:
        """Wait until the members own everything, and more is written and committed than before."""

        def goes_on() -> bool:
            self.check()
            owned = sorted(number for numbers in list(self._owned.values()) for number in numbers)
            more = len(self.written) > records and sum(self.commits.values()) > sum(commits.values())
            return more and owned == list(range(PARTITIONS))

        wait_until(goes_on, LIMIT_SECONDS, "that the group goes on")

    def committed(self) -> dict[int, int]:
        """Return the stored offsets of the group."""
        reader = self._consumer(GROUP)
        found = reader.committed(PLACES, timeout=LIMIT_SECONDS)
        reader.close()
        return {row.partition: row.offset for row in found}

    def kept(self) -> dict[tuple[int, int], bytes]:
        """Return all records by partition and offset."""
        reader = self._consumer("nobody")
        ends = [reader.get_watermark_offsets(place, timeout=LIMIT_SECONDS)[1] for place in PLACES]
        reader.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        found: dict[tuple[int, int], bytes] = {}
        while len(found) < sum(ends):
            found |= {(m.partition(), m.offset()): m.value() for m in reader.consume(AT_ONCE, READ_SECONDS)}
        reader.close()
        return found

    def _noting_errors(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)

    def _produce(self) -> None:
        producer = Producer({**self._settings, "enable.idempotence": True, "linger.ms": 2})

        def written(error: Any, message: Any) -> None:
            if error is not None:
                raise KafkaException(error)
            self.written[message.partition(), message.offset()] = message.value()

        number = 0
        while not self._is_over.is_set():
            producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS, on_delivery=written)
            producer.poll(0)
            number += 1
            pause(BETWEEN_SECONDS)
        assert producer.flush(LIMIT_SECONDS) == 0

    def _consume(self, number: int) -> None:
        def assigned(_: Consumer, places: list[TopicPartition]) -> None:
            self._owned[number] = {place.partition for place in places}

        def revoked(_: Consumer, __: list[TopicPartition]) -> None:
            self._owned[number] = set()

        member = self._consumer(GROUP)
        member.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        while not self._is_over.is_set():
            read = [message for message in member.consume(AT_ONCE, READ_SECONDS) if not message.error()]
            ends = {message.partition(): message.offset() + 1 for message in read}
            if not ends:
                continue
            offsets = [TopicPartition(TOPIC, partition, end) for partition, end in ends.items()]
            try:
                rows = member.commit(offsets=offsets, asynchronous=False)
            except KafkaException:  # the group rebalances, or the broker is down
                continue
            for row in rows:
                if row.error is None:
                    self.commits[row.partition] = max(row.offset, self.commits.get(row.partition, -1))
        member.close()

    def _consumer(self, group: str) -> Consumer:
        of_group = {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 300,
        }
        return Consumer({**self._settings, **of_group})


def run(folder: Path, kills: int, seed: int) -> Result:
    """Kill the broker again and again.

    Raises:
        AssertionError: if an acknowledged write is lost, or the group does not go on.
    """
    random = Random(seed)
    again_after = []
    with ExitStack() as stack:
        broker = stack.enter_context(Served("--data-dir", folder, *OPTIONS))
        address = broker.address()
        work = stack.enter_context(Work(address))
        work.wait_until_it_goes_on(0, {})
        for _ in range(kills):
            pause(random.uniform(0.0, WORK_SECONDS))
            commits = dict(work.commits)
            broker.kill()
            records, begun = len(work.written), monotonic()
            broker = stack.enter_context(serving(folder, address, OPTIONS))
            assert broker.address() == address
            work.wait_until_it_goes_on(records, commits)
            again_after.append(monotonic() - begun)
            stored = work.committed()
            lost = {number: offset for number, offset in commits.items() if stored[number] < offset}
            assert not lost, f"{lost} were committed, {stored} is there"
        work.end()
        kept = work.kept()
        lost_records = {place for place, value in work.written.items() if kept.get(place) != value}
        assert not lost_records, f"{sorted(lost_records)[:10]} of {len(work.written)}"
        assert len(set(kept.values())) == len(kept), "a record is written twice"
    return Result(kills, len(work.written), again_after)


def _told(result: Result) -> tuple[str, str, list[float]]:
    acknowledged = f"{result.records:,} records acknowledged, none lost and none twice"
    return acknowledged, "The group goes on", result.again_after


if __name__ == "__main__":
    print_run(run, 20, _told)
