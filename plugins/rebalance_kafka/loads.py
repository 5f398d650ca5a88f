"""The loads that one consumer measures for its provider: the high watermarks and positions of its fetches."""

from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from coordinator_core.assigning.problem import is_capacity
from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.registry.host import Load, Seen

REMEMBERED_MS = 600_000
"""How long a partition is remembered after it was given up. A round takes less."""


def now_ms() -> int:
    """Return the monotonic time of the process."""
    return int(monotonic() * 1_000)


class _Mark(NamedTuple):
    """The first and the last end offset of a partition that were seen, with their times, and the last lag."""

    first: tuple[int, int]
    last: tuple[int, int]
    lag: int


class MeasuredLoads:
    """The host of one consumer's provider (`coordinator_core.registry.host.Host`).

    `Consumer` has one of its own. For a consumer of kafka-python or aiokafka, give one to the adapter, and
    call `observe` after each poll:

        loads = MeasuredLoads(capacity=3_000)
        assignor = as_kafka_python("optimal", host=lambda: loads)
        consumer = KafkaConsumer(..., partition_assignment_strategy=[assignor])
        while True:
            records = consumer.poll(500)
            loads.observe(consumer)

    ``capacity``: the records/s that the consumer can handle, None if unknown. It counts only if all members
    of the group have one.

    Raises:
        InputError: if the capacity is none.
    """

    def __init__(self, *, capacity: float | None = None, clock: Callable[[], int] = now_ms) -> None:
        if capacity is not None and not is_capacity(capacity):
            raise InputError("capacity", repr(capacity), "records/s above 0, or None")
        self._capacity, self._clock = capacity, clock
        self._marks: dict[TopicPartition, _Mark] = {}

    def observe(self, consumer: Any) -> None:
        """Take note of the end offsets and positions of a consumer of kafka-python or aiokafka."""
        for tp in consumer.assignment():
            end = consumer.highwater(tp)
            if end is not None:
                self.record(TopicPartition(tp.topic, tp.partition), end, _position(consumer, tp, end))

    def record(self, partition: TopicPartition, end: int, position: int) -> None:
        """Take note of the last known end offset, and of the position of the consumer.

        An end offset that was known before is as of now only if the consumer has reached it: a broker sends
        new records at once.
        """
        time_ms, mark, lag = self._clock(), self._marks.get(partition), max(0, end - position)
        if mark is None:
            self._marks[partition] = _Mark((time_ms, end), (time_ms, end), lag)
        elif not lag or end != mark.last[1]:
            self._marks[partition] = _Mark(mark.first, (time_ms, end), lag)
        else:
            self._marks[partition] = mark._replace(lag=lag)

    def now_ms(self) -> int:
        """Return the current time."""
        return self._clock()

    def seen(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Seen]:
        """Return the partitions that were recorded in the last minutes."""
        oldest_ms = self._clock() - REMEMBERED_MS
        for tp, mark in list(self._marks.items()):  # a client may join in another thread than it polls
            if mark.last[0] < oldest_ms:
                self._marks.pop(tp, None)
        known = {tp: self._marks[tp] for tp in partitions if tp in self._marks}
        return {tp: Seen(m.last[1], m.lag, at_ms=m.last[0], first=m.first) for tp, m in known.items()}

    def loads(self) -> Mapping[TopicPartition, Load]:
        """Return nothing: a consumer does not know the partitions of others."""
        return {}

    def capacity(self) -> float | None:
        """Return the records/s that the consumer can handle."""
        return self._capacity


def _position(consumer: Any, partition: Any, unknown: int) -> int:
    """Return the position without a request, which the public methods may send."""
    subscription: Any = consumer._subscription
    if isinstance(assigned := getattr(subscription, "assignment", None), Mapping):  # kafka-python
        position = assigned[partition].position
        return unknown if position is None else int(position.offset)
    state = subscription.subscription.assignment.state_value(partition)  # aiokafka
    return int(state.position) if state.has_valid_position else unknown
