"""A consumer on asyncio: the client core against any broker, with any assignor."""

import asyncio
import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from random import Random
from time import monotonic
from types import TracebackType
from typing import Any, Self

from coordinator_core.client.classic import ClassicMember
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.facade import Client
from coordinator_core.client.outcome import ClientOutcome, ConsumedRecord, Listener
from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.links import Links
from rebalance_kafka.consumer.security import is_security, security_of
from rebalance_kafka.settings import configured
from rebalance_kafka.wire.apis import VERSIONS, Api

CLOSE_SECONDS = 30.0
MOST_SHOWN = 100
_INSTANCE_ID = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class Consumer:
    """A member of a consumer group that reads records.

        async with Consumer("orders", bootstrap_servers="127.0.0.1:9092", group_id="g") as consumer:
            for record in await consumer.poll(timeout=1.0):
                ...

    ``strategy``: any assignor of the registry, as in the simulator; several in a list, the preferred first.
    ``settings``: by Kafka's names (``session.timeout.ms``, ``enable.auto.commit``), those of TLS and SASL
    included (``security.protocol``, ``sasl.mechanism``; see `rebalance_kafka.consumer.security`).

    Everything about the group happens in `poll`, which must be called within max.poll.interval.ms.
    Heartbeats are sent meanwhile.

    ``api_versions``: the highest version to use of an API (``{"JoinGroup": 5}``), for brokers that offer what
    they do not understand.

    Raises InputError for settings, strategies and addresses that cannot be used.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str],
        group_id: str,
        strategy: str | Strategy | Sequence[str | Strategy] = "cooperative-sticky",
        settings: Mapping[str, Any] | None = None,
        listener: Listener | None = None,
        api_versions: Mapping[str, int] | None = None,
        registry: Registry | None = None,
        seed: int | None = None,
    ) -> None:
        registry = registry or default_registry()
        several = [strategy] if isinstance(strategy, (str, Strategy)) else list(strategy)
        strategies = [registry.strategy(each) if isinstance(each, str) else each for each in several]
        secured = {name: value for name, value in (settings or {}).items() if is_security(name)}
        other = {name: value for name, value in (settings or {}).items() if name not in secured}
        config = _configured(group_id, other, strategies)
        self._topics, self._config = topics, config
        self._security = security_of(secured, "settings")
        self._most = _highest(api_versions or {})
        self._places = places_of(bootstrap_servers, "bootstrap_servers")
        self._random = Random(seed)
        self._listener = listener
        self._assignors = [registry.build(each) for each in strategies]
        self._client = Client(
            config,
            self._assignors,
            self._random,
            member=ClassicMember,
            bootstrap=[-1 - i for i in range(len(self._places))],
            listener=listener,
        )
        self._links: Links | None = None
        self._woken = asyncio.Event()
        self._stirred = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._records: deque[ConsumedRecord] = deque()
        self._error: Exception | None = None
        self._problem = ""
        self.events: deque[ev.Event] = deque(maxlen=10_000)
        """What happened to this member, the newest last."""
        self.refused_topics: Mapping[str, str] = {}
        """Topics that the broker, asked last, did not have or show, with its errors."""

    # --- its life

    async def start(self) -> None:
        """Connect when needed, and subscribe to the topics given."""
        self._links = Links(
            self._places,
            self._config.client_id,
            answered=self._answered,
            lost=self._lost,
            security=self._security,
            most=self._most,
        )
        if self._topics:
            self.subscribe(*self._topics)

    async def close(self) -> None:
        """Commit (with auto-commit), leave the group, disconnect.

        Raises what no `poll` could: the errors of the listener.
        """
        if self._links is None:
            return
        self._carry_out(self._client.close(now_ms=_now_ms()))
        until = monotonic() + CLOSE_SECONDS
        while not self._client.closed and monotonic() < until and self._links.refused is None:
            await self._wake_up(until)
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- what there is

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """What it owns, sorted."""
        return tuple(sorted(self._client.partitions))

    @property
    def state(self) -> Enum:
        """The state of this member, in the words of its protocol family."""
        return self._client.state

    @property
    def generation(self) -> int:
        """Of the group, as this member knows it; -1 outside."""
        return self._client.generation.number

    @property
    def member_id(self) -> str:
        """What the coordinator calls it."""
        return self._client.generation.member_id

    @property
    def is_leader(self) -> bool:
        """Whether it computes the group's assignments."""
        return self._client.is_leader

    @property
    def problem(self) -> str:
        """Which broker's connection was lost last, and why; "" if none was."""
        return self._problem

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record; -1 while it is unknown. Raises InputError."""
        state = self._client.partitions.get(TopicPartition(topic, partition))
        if state is None:
            raise InputError(
                "position", f"{topic}-{partition}", "a partition that is assigned to this consumer"
            )
        return state.position

    # --- what an application does

    def subscribe(self, *topics: str) -> None:
        """Subscribe to topics, in place of those before."""
        self._carry_out(self._client.subscribe(topics, now_ms=_now_ms()))

    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to every topic whose whole name matches a regular expression."""
        self._carry_out(self._client.subscribe_pattern(pattern, now_ms=_now_ms()))

    def unsubscribe(self) -> None:
        """Leave the group."""
        self._carry_out(self._client.unsubscribe(now_ms=_now_ms()))

    async def poll(self, timeout: float = 1.0) -> list[ConsumedRecord]:
        """Records, at most max.poll.records, waiting for them no longer than ``timeout`` seconds.

        Joins, revocations and the listener's calls happen here. Raises what the listener raises, and
        RebalanceLabError for what ends the consumer: fenced, not let in, an assignor that fails.
        """
        until = monotonic() + timeout
        await asyncio.sleep(0)  # answers come in, even where nobody waits for them
        while True:
            self._carry_out(self._client.poll(now_ms=_now_ms()))
            self._raise()
            if self._records or monotonic() >= until:
                records, self._records = list(self._records), deque()
                return records
            await self._wake_up(until)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or those of all records handed out; done when this returns.

        Tries for default.api.timeout.ms while the coordinator cannot be reached. Raises InputError with
        the broker's error where it refuses.
        """
        heard: list[str] = []
        hear, now_ms = heard.append, _now_ms()
        until_ms = now_ms + self._config.default_api_timeout_ms
        self._carry_out(self._client.commit(offsets, callback=hear, retry_until_ms=until_ms, now_ms=now_ms))
        until = until_ms / 1_000
        try:
            while not heard and monotonic() < until and not self._has_ended:
                await _signalled(self._stirred, until)
                self._carry_out(self._client.finish_commits(now_ms=_now_ms()))
        finally:
            if not heard:
                self._client.withdraw_commit(hear)
        self._raise()
        if heard != [""]:
            raise InputError("commit", heard[0] if heard else "no answer", "an answer without an error")

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on from an offset. Raises InputError."""
        self._drop(topic, partition)
        self._carry_out(self._client.seek(topic, partition, offset, now_ms=_now_ms()))

    def seek_to(self, topic: str, partition: int, where: str) -> None:
        """Go on from the "earliest" or the "latest" offset. Raises InputError."""
        self._drop(topic, partition)
        self._carry_out(self._client.seek_to(topic, partition, where, now_ms=_now_ms()))

    def pause(self, topic: str, partition: int) -> None:
        """Hand out nothing of a partition until `resume`. Raises InputError."""
        self._carry_out(self._client.pause(topic, partition, now_ms=_now_ms()))

    def resume(self, topic: str, partition: int) -> None:
        """Go on with a paused partition. Raises InputError."""
        self._carry_out(self._client.resume(topic, partition, now_ms=_now_ms()))

    # --- inside

    def _drop(self, topic: str, partition: int) -> None:
        kept = (r for r in self._records if (r.topic, r.partition) != (topic, partition))
        self._records = deque(kept)

    def _carry_out(self, outcome: ClientOutcome) -> None:
        if self._links is None:
            raise InputError("consumer", "one that is not started, or closed", "async with Consumer(...)")
        self.events.extend(outcome.events)
        self._records.extend(outcome.records)
        if outcome.error is not None and self._error is None:
            self._error = outcome.error
        for node in outcome.disconnects:
            self._links.drop(node)
        for send in outcome.sends:
            self._links.send(send.node, send.request_id, send.request)
        self._set_timer()
        if self._client.wants_poll or outcome.error is not None or self._client.closed:
            self._woken.set()

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

    async def _wake_up(self, until: float) -> None:
        """Sleep until a poll would get further, at most until a time."""
        await _signalled(self._woken, until)
        await asyncio.sleep(0)  # others have their turn even where there is always something

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self._client.next_deadline_ms()
        if due_ms is not None:
            wait = max(0, due_ms - _now_ms()) / 1_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._on_deadline)

    def _stir(self) -> None:
        """Something came from outside, or is due."""
        self._woken.set()
        self._stirred.set()

    def _on_deadline(self) -> None:
        self._timer = None
        self._stir()  # a poll may be due as well
        self._carry_out(self._client.on_deadline(now_ms=_now_ms()))

    def _answered(self, request_id: int, response: m.Response) -> None:
        self._stir()
        if isinstance(response, m.MetadataResponse):
            refused = (topic for topic in response.topics if topic.error is not ErrorCode.NONE)
            self.refused_topics = {topic.name: topic.error.name for topic in refused}
        self._carry_out(self._client.receive(request_id, response, now_ms=_now_ms()))

    def _lost(self, node: int, problem: str) -> None:
        self._stir()
        if self._links is not None:
            self._problem = f"{self._links.name_of(node)}: {problem}"
            self._carry_out(self._client.on_disconnected(node, now_ms=_now_ms()))


async def _signalled(event: asyncio.Event, until: float) -> None:
    """Wait for an event, at most until a time, and take it back."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, until - monotonic())):
            await event.wait()
    event.clear()


def _highest(versions: Mapping[str, int]) -> dict[Api, int]:
    """By Kafka's names of APIs."""
    known = {api.name.replace("_", "").lower(): api for api in Api}
    highest: dict[Api, int] = {}
    for name, version in versions.items():
        api = known.get(name.lower())
        if api is None or version < VERSIONS[api][0]:
            found = f"{name}: {version}"
            raise InputError("api_versions", found, "an API of consumers and a version that is spoken here")
        highest[api] = version
    return highest


def _now_ms() -> int:
    return int(monotonic() * 1_000)


def _configured(group_id: str, settings: Mapping[str, Any], strategies: Sequence[Strategy]) -> ClientConfig:
    """Settings by Kafka's names. A strategy with static members needs group.instance.id."""
    given = {"client.id": "rebalance-lab", **settings, "group.id": group_id}
    if any(each.static for each in strategies) and not given.get("group.instance.id"):
        found = "none, with a strategy of static members"
        raise InputError("group.instance.id", found, "a name that stays the same over restarts")
    config = configured(ClientConfig, given)
    name = config.group_instance_id
    if name is not None and not _INSTANCE_ID.fullmatch(name):
        found = repr(name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}...")
        raise InputError("group.instance.id", found, "1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
    return config
