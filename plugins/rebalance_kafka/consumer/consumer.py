"""A consumer on asyncio: the client core against any broker, with any assignor."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from random import Random
from time import monotonic
from typing import Any, Self

from coordinator_core.client.config import ClientConfig
from coordinator_core.client.facade import Client
from coordinator_core.client.member import MakeMember
from coordinator_core.client.outcome import ClientOutcome, ConsumedRecord, Listener
from coordinator_core.client.reconcile import ReconcileMember
from coordinator_core.errors import InputError
from coordinator_core.families.classic import CLASSIC
from coordinator_core.families.family import Family
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.providers.informed import NOTHING_KNOWN
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.links import Links
from rebalance_kafka.consumer.security import is_security, security_of
from rebalance_kafka.loads import MeasuredLoads
from rebalance_kafka.loads import now_ms as _now_ms
from rebalance_kafka.settings import configured
from rebalance_kafka.wire.apis import VERSIONS, Api

LOG = logging.getLogger(__name__)

CONSUMER = "consumer"
PROTOCOLS = (CLASSIC.name, CONSUMER)
DEFAULT_STRATEGY = "cooperative-sticky"
OF_COORDINATOR = ("session.timeout.ms", "heartbeat.interval.ms")
"""Settings that the coordinator has for the members of groups of the consumer protocol."""

CLOSE_SECONDS = 30.0
MOST_SHOWN = 100
MEASURED_EVERY_MS = 200
"""How often the loads of the partitions are recorded, at most."""
_INSTANCE_ID = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class Consumer:
    """A member of a consumer group that reads records.

        async with Consumer("orders", bootstrap_servers="127.0.0.1:9092", group_id="g") as consumer:
            for record in await consumer.poll(timeout=1.0):
                ...

    `poll` must be called within max.poll.interval.ms: joins, revocations and callbacks happen in it.
    Heartbeats are sent in the background.

    ``strategy``: a strategy in any form that `Registry.strategy` accepts, as in the simulator, such as a name
    or a class, or a list with the preferred one first. None is "cooperative-sticky".
    ``protocol``: "classic", or "consumer" (KIP-848): then the coordinator runs the assignor, and ``strategy``
    is its name there ("uniform", "range"), None for the coordinator's default. The times of the session and
    of heartbeats are the coordinator's.
    ``settings``: consumer settings by Kafka's names (``session.timeout.ms``), with those of TLS and SASL
    (``security.protocol``; see `rebalance_kafka.consumer.security`).
    ``api_versions``: the highest version of an API to use (``{"JoinGroup": 5}``), for brokers that offer
    versions that they do not support.
    ``capacity``: the records/s that this consumer can handle, for assignors that use weights. It counts if
    all members have one. The weights are measured: the provider of the strategy gets the end offsets and the
    lags of the partitions that this consumer reads (`MeasuredLoads`).

    Raises:
        InputError: if a setting, a strategy or an address is invalid.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str],
        group_id: str,
        strategy: Any = None,
        protocol: str = CLASSIC.name,
        settings: Mapping[str, Any] | None = None,
        listener: Listener | None = None,
        api_versions: Mapping[str, int] | None = None,
        registry: Registry | None = None,
        seed: int | None = None,
        capacity: float | None = None,
    ) -> None:
        registry = registry or default_registry()
        is_classic = _is_classic(protocol)
        strategies = _strategies(strategy, registry) if is_classic else []
        secured = {name: value for name, value in (settings or {}).items() if is_security(name)}
        other = {name: value for name, value in (settings or {}).items() if name not in secured}
        config = _configured(group_id, other, strategies, is_classic=is_classic)
        self._topics, self._config = topics, config
        self._security = security_of(secured, "settings")
        self._max_versions = _highest(api_versions or {})
        self._places = places_of(bootstrap_servers, "bootstrap_servers")
        self._random = Random(seed)
        self._listener = listener
        self._loads = MeasuredLoads(capacity=capacity)
        self._measures = any(entry.provider for entry in strategies)
        self._measured_ms = self._led_without_weights = 0
        self._assignors = [registry.build(entry, self._loads) for entry in strategies]
        self._client = Client(
            config,
            self._assignors,
            self._random,
            member=Family(CLASSIC, {}).member() if is_classic else _reconciled(strategy),
            bootstrap=[-1 - i for i in range(len(self._places))],
            listener=listener,
        )
        self._links: Links | None = None
        self._poll_signal = asyncio.Event()
        self._commit_signal = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._records: deque[ConsumedRecord] = deque()
        self._error: Exception | None = None
        self._last_disconnect = ""
        self.events: deque[ev.Event] = deque(maxlen=10_000)
        """The last events of this consumer, the newest last."""
        self.refused_topics: Mapping[str, str] = {}
        """The topics without metadata in the last response, with their errors."""

    # --- start and close

    async def start(self) -> None:
        """Subscribe to the topics. Connections are made when they are needed."""
        self._links = Links(
            self._places,
            self._config.client_id,
            received=self._on_response,
            lost=self._on_lost,
            security=self._security,
            max_versions=self._max_versions,
        )
        if self._topics:
            self.subscribe(*self._topics)

    async def close(self) -> None:
        """Commit (with auto-commit), leave the group and disconnect.

        Raises:
            Exception: if the listener raises meanwhile.
        """
        if self._links is None:
            return
        self._carry_out(self._client.close(now_ms=_now_ms()))
        until = monotonic() + CLOSE_SECONDS
        while not self._client.closed and monotonic() < until and self._links.refused is None:
            await self._wait_for_poll(until)
        if self._timer is not None:
            self._timer.cancel()
        links, self._links = self._links, None
        await links.close()
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # --- views

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions, sorted."""
        return tuple(sorted(self._client.partitions))

    @property
    def state(self) -> Enum:
        """The state of this member, as its protocol family names it."""
        return self._client.state

    @property
    def generation(self) -> int:
        """The generation that this consumer is a member of, or -1."""
        return self._client.generation.number

    @property
    def member_id(self) -> str:
        """The id of this member in the group, or an empty string."""
        return self._client.generation.member_id

    @property
    def is_leader(self) -> bool:
        """Whether this consumer computes the assignments of the group."""
        return self._client.is_leader

    @property
    def last_disconnect(self) -> str:
        """The broker whose connection was lost last, with the reason, or an empty string."""
        return self._last_disconnect

    def position(self, topic: str, partition: int) -> int:
        """Return the offset of the next record, or -1 while it is unknown.

        Raises:
            InputError: if the partition is not assigned.
        """
        state = self._client.partitions.get(TopicPartition(topic, partition))
        if state is None:
            raise InputError(
                "position", f"{topic}-{partition}", "a partition that is assigned to this consumer"
            )
        return state.position

    # --- calls of the application

    def subscribe(self, *topics: str) -> None:
        """Replace the subscribed topics.

        Raises:
            InputError: if a name is not a topic's, or if the consumer subscribes to a pattern.
        """
        self._carry_out(self._client.subscribe(topics, now_ms=_now_ms()))

    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to every topic whose whole name matches a regular expression.

        Raises:
            InputError: if the pattern is invalid, or if the consumer subscribes to topics.
        """
        self._carry_out(self._client.subscribe_pattern(pattern, now_ms=_now_ms()))

    def unsubscribe(self) -> None:
        """Leave the group and remove the subscription."""
        self._carry_out(self._client.unsubscribe(now_ms=_now_ms()))

    async def poll(self, timeout: float = 1.0) -> list[ConsumedRecord]:
        """Return at most max.poll.records records. Wait for the first at most ``timeout`` seconds.

        Joins, revocations and calls to the listener happen here.

        Raises:
            RebalanceLabError: if the consumer has ended: fenced, refused by a broker, a failed assignor.
            Exception: if the listener raises.
        """
        until = monotonic() + timeout
        await asyncio.sleep(0)  # let responses arrive, even with a timeout of 0
        while True:
            self._measure()
            self._carry_out(self._client.poll(now_ms=_now_ms()))
            self._raise()
            if self._records or monotonic() >= until:
                records, self._records = list(self._records), deque()
                return records
            await self._wait_for_poll(until)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit offsets, by default those of all returned records, and wait for the result.

        Retries for default.api.timeout.ms while the coordinator is unavailable.

        Raises:
            InputError: if the commit fails, with the error of the broker.
        """
        results: list[str] = []
        callback, now_ms = results.append, _now_ms()
        until_ms = now_ms + self._config.default_api_timeout_ms
        outcome = self._client.commit(offsets, callback=callback, retry_until_ms=until_ms, now_ms=now_ms)
        self._carry_out(outcome)
        until = until_ms / 1_000
        try:
            while not results and monotonic() < until and not self._has_ended:
                await _signalled(self._commit_signal, until)
                self._carry_out(self._client.finish_commits(now_ms=_now_ms()))
        finally:
            if not results:
                self._client.withdraw_commit(callback)
        self._raise()
        if results != [""]:
            found = results[0] if results else "no response"
            raise InputError("commit", found, "a response without an error")

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at an offset.

        Raises:
            InputError: if the partition is not assigned, or if the offset is negative.
        """
        self._drop(topic, partition)
        self._carry_out(self._client.seek(topic, partition, offset, now_ms=_now_ms()))

    def seek_to(self, topic: str, partition: int, where: str) -> None:
        """Continue at the "earliest" or the "latest" offset.

        Raises:
            InputError: if the partition is not assigned, or if ``where`` is another word.
        """
        self._drop(topic, partition)
        self._carry_out(self._client.seek_to(topic, partition, where, now_ms=_now_ms()))

    def pause(self, topic: str, partition: int) -> None:
        """Return no records of a partition until `resume`.

        Raises:
            InputError: if the partition is not assigned.
        """
        self._carry_out(self._client.pause(topic, partition, now_ms=_now_ms()))

    def resume(self, topic: str, partition: int) -> None:
        """Continue with a paused partition.

        Raises:
            InputError: if the partition is not assigned.
        """
        self._carry_out(self._client.resume(topic, partition, now_ms=_now_ms()))

    # --- inside

    def _drop(self, topic: str, partition: int) -> None:
        kept = (r for r in self._records if (r.topic, r.partition) != (topic, partition))
        self._records = deque(kept)

    def _measure(self) -> None:
        """Record the loads of the partitions, now and then, before a poll gives them up."""
        time_ms = _now_ms()
        if self._measures and time_ms >= self._measured_ms + MEASURED_EVERY_MS:
            self._measured_ms = time_ms
            for tp, state in self._client.partitions.items():
                if state.high_watermark >= 0 and state.has_position:
                    self._loads.record(tp, state.high_watermark, state.position)

    def _check_weights(self, event: ev.AssignmentComputed) -> None:
        """Warn once if the assignor still gets no weights when this leader assigns for the second time."""
        if event.report.get("weights") == NOTHING_KNOWN:
            self._led_without_weights += 1
            if self._led_without_weights == 2:
                LOG.warning(
                    "the assignor %s gets no weights: no member has reported what its partitions receive",
                    event.assignor,
                )

    def _carry_out(self, outcome: ClientOutcome) -> None:
        if self._links is None:
            raise InputError("consumer", "one that is not started, or closed", "async with Consumer(...)")
        self.events.extend(outcome.events)
        for event in outcome.events:
            if isinstance(event, ev.AssignmentComputed):
                self._check_weights(event)
                for member_id, error in event.report.get("unreadable", {}).items():
                    LOG.warning("member %s gets no partitions: %s", member_id, error)
        self._records.extend(outcome.records)
        if outcome.error is not None and self._error is None:
            self._error = outcome.error
        for node in outcome.disconnects:
            self._links.drop(node)
        for send in outcome.sends:
            self._links.send(send.node, send.request_id, send.request)
        self._set_timer()
        if self._client.wants_poll or outcome.error is not None or self._client.closed:
            self._poll_signal.set()

    @property
    def _has_ended(self) -> bool:
        refused = self._links is not None and self._links.refused is not None
        return refused or self._client.failure is not None

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._links is not None and self._links.refused is not None:
            raise self._links.refused
        if self._client.failure is not None:
            raise InputError("consumer", self._client.failure, "a member of its group")

    async def _wait_for_poll(self, until: float) -> None:
        """Sleep until a poll would make progress, at most until a time."""
        await _signalled(self._poll_signal, until)
        await asyncio.sleep(0)  # let other tasks run, even if there is always work

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self._client.next_deadline_ms()
        if due_ms is not None:
            loop = asyncio.get_running_loop()  # with the same clock
            self._timer = loop.call_at(due_ms / 1_000, self._on_deadline)

    def _signal(self) -> None:
        """Wake a poll and a commit that wait."""
        self._poll_signal.set()
        self._commit_signal.set()

    def _on_deadline(self) -> None:
        self._timer = None
        self._signal()  # the deadline may be that of a poll
        self._carry_out(self._client.on_deadline(now_ms=_now_ms()))

    def _on_response(self, request_id: int, response: m.Response) -> None:
        self._signal()
        if isinstance(response, m.MetadataResponse):
            refused = (topic for topic in response.topics if topic.error is not ErrorCode.NONE)
            self.refused_topics = {topic.name: topic.error.name for topic in refused}
        self._carry_out(self._client.receive(request_id, response, now_ms=_now_ms()))

    def _on_lost(self, node: int, reason: str) -> None:
        self._signal()
        if self._links is not None:
            self._last_disconnect = f"{self._links.name_of(node)}: {reason}"
            self._carry_out(self._client.on_disconnected(node, now_ms=_now_ms()))


async def _signalled(event: asyncio.Event, until: float) -> None:
    """Wait for an event, at most until a time, and clear it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, until - monotonic())):
            await event.wait()
    event.clear()


def _highest(versions: Mapping[str, int]) -> dict[Api, int]:
    """Return the highest versions of APIs, which are given by Kafka's names."""
    known = {api.name.replace("_", "").lower(): api for api in Api}
    highest: dict[Api, int] = {}
    for name, version in versions.items():
        api = known.get(name.lower())
        if api is None or version < VERSIONS[api][0]:
            found = f"{name}: {version}"
            raise InputError("api_versions", found, "an API of consumers and a version that is spoken here")
        highest[api] = version
    return highest


def _is_classic(protocol: str) -> bool:
    if protocol not in PROTOCOLS:
        raise InputError("protocol", repr(protocol), f"one of {', '.join(PROTOCOLS)}")
    return protocol == CLASSIC.name


def _strategies(strategy: Any, registry: Registry) -> list[Strategy]:
    several = strategy if isinstance(strategy, list | tuple) else [strategy or DEFAULT_STRATEGY]
    return [registry.strategy(entry) for entry in several]


def _reconciled(strategy: Any) -> MakeMember:
    """Return the factory of the member of a group of the consumer protocol.

    Raises:
        InputError: if the strategy is not the name of an assignor.
    """
    if isinstance(strategy, list | tuple) and len(strategy) == 1:
        (strategy,) = strategy
    if strategy is not None and not (isinstance(strategy, str) and strategy):
        expected = "the name of an assignor of the coordinator, such as 'range', or None"
        raise InputError(f"strategy, with the protocol {CONSUMER!r}", repr(strategy), expected)
    return partial(ReconcileMember, server_assignor=strategy)


def _configured(
    group_id: str, settings: Mapping[str, Any], strategies: Sequence[Strategy], *, is_classic: bool
) -> ClientConfig:
    """Return the configuration from settings by Kafka's names.

    Raises:
        InputError: if a setting is invalid, if brokers do not serve the protocol of a strategy, or if static
            members lack a group.instance.id.
    """
    for entry in () if is_classic else OF_COORDINATOR:
        if entry in settings:
            found = f"{settings[entry]}, with the protocol {CONSUMER!r}"
            raise InputError(entry, found, f"none: group.consumer.{entry} of the brokers counts")
    for strategy in strategies:
        if strategy.protocol != DEFAULT_PROTOCOL:
            found = f"the protocol {strategy.protocol!r}"
            raise InputError(
                f"strategy {strategy.name!r}", found, f"{DEFAULT_PROTOCOL!r}, which brokers serve"
            )
    given = {"client.id": "rebalance-lab", **settings, "group.id": group_id}
    if any(entry.static for entry in strategies) and not given.get("group.instance.id"):
        found = "none, with a strategy of static members"
        raise InputError("group.instance.id", found, "a name that stays the same over restarts")
    config = configured(ClientConfig, given)
    name = config.group_instance_id
    if name is not None and not _INSTANCE_ID.fullmatch(name):
        found = repr(name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}...")
        raise InputError("group.instance.id", found, "1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
    return config
