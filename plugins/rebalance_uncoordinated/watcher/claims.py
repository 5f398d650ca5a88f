"""The settings with which members outlast the claims of others, from a run in which they had to wait."""

from collections.abc import Iterator, Sequence
from math import ceil

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.verdicts.needs import ROOM
from rebalance_uncoordinated.events import ClaimFailed
from rebalance_uncoordinated.settings import WatcherSettings

RETRIES, BACKOFF = "rebalance.max.retries", "rebalance.backoff.ms"


def needs(own: WatcherSettings, events: Sequence[ev.TraceEvent]) -> Iterator[tuple[str, str, int]]:
    """Yield the retries, or the time between them, with which the longest claims of others are outlasted."""
    needed_ms = ROOM * max(_held_ms(events), default=0)
    if needed_ms > own.max_retries * own.backoff_ms:
        yield "RETRIES", RETRIES, ceil(needed_ms / own.backoff_ms)
        if own.max_retries:
            yield "LONG_BACKOFF", BACKOFF, 1_000 * ceil(needed_ms / own.max_retries / 1_000)


def _held_ms(events: Sequence[ev.TraceEvent]) -> Iterator[int]:
    """Yield how long others held what a member wanted to claim, from its first attempt on."""
    waiting: dict[str, tuple[int, set[TopicPartition]]] = {}
    for at_ms, event in ((line.at_ms, line.event) for line in events):
        if isinstance(event, ClaimFailed):
            since_ms, _ = waiting.get(event.client, (at_ms, ()))
            waiting[event.client] = since_ms, _partitions(event.held)
        elif isinstance(event, ev.Assigned) and event.owned and event.client in waiting:
            yield at_ms - waiting.pop(event.client)[0]
        elif isinstance(event, ev.MemberStopped | ev.ConsumerFailed):
            waiting.pop(event.client, None)
        elif isinstance(event, ev.Revoked | ev.Lost):
            for client, (since_ms, held) in list(waiting.items()):
                held -= _partitions(event.partitions)
                if not held:
                    del waiting[client]
                    yield at_ms - since_ms
    for since_ms, _ in waiting.values():
        yield events[-1].at_ms - since_ms


def _partitions(listed: ev.PartitionMap) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for topic, numbers in listed.items() for number in numbers}
