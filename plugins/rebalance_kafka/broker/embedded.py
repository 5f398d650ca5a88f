"""The embedded broker: one process and one event loop for real clients."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from errno import EADDRINUSE
from pathlib import Path
from random import Random
from typing import Any, Self

import msgspec

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.kafka_versions import VersionedSettings
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.errors import InputError
from coordinator_core.families.classic import CLASSIC
from coordinator_core.families.family import DELAY
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_kafka.addresses import Place, place_of
from rebalance_kafka.broker.assignors import GroupAssignors
from rebalance_kafka.broker.connections import INCOMING_BYTES, Connection
from rebalance_kafka.broker.data import CLUSTER_ID, NODE, Data
from rebalance_kafka.broker.guard import Guard, Tls
from rebalance_kafka.broker.login import Login
from rebalance_kafka.broker.node import Node, Served
from rebalance_kafka.broker.recorder import MOST_EVENTS, Recorder
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import MOST_PARTITIONS_IN_ALL, Topics
from rebalance_kafka.broker.transactions import TransactionSettings
from rebalance_kafka.broker.turns import Turns
from rebalance_kafka.scram import MECHANISMS
from rebalance_kafka.settings import all_configured
from rebalance_kafka.wire.frames import Request
from rebalance_lab.traces.trace import Trace

LOG = logging.getLogger(__name__)

MOST_FRAME_BYTES = 100 * 1024 * 1024
MOST_CONNECTIONS = 2_000
MOST_RECORD_BYTES = 1024 * 1024 * 1024
MOST_WAITING_BYTES = 256 * 1024 * 1024
PROTOCOLS = (CLASSIC, RECONCILE)
OF_ASSIGNORS = {DELAY}
"""Settings of families that only the assignors of members use."""

IDLE_SECONDS = 600.0
DRAIN_SECONDS = 5.0
HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 1.0
"""How long a client has for the handshake of TLS, and for its end."""
AT_ONCE_BYTES = 64 * 1024
"""Requests and responses up to this size are accepted whatever the memory."""


class EmbeddedBroker:
    """A broker for tests and workshops. It has groups, offsets, records and transactions, no replication.

        async with EmbeddedBroker(topics={"orders": 12}) as broker:
            consumer = AIOKafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")

    - ``topics``: name to number of partitions. Topics that exist already may grow.
    - ``settings``: settings of the coordinator by Kafka's names (``group.initial.rebalance.delay.ms``,
      ``group.consumer.heartbeat.interval.ms``). ``group.consumer.assignors`` can name any assignor.
      ``configs`` has all of them with their values.
    - ``data_dir``: a folder in which groups, offsets and records survive the process, even a killed one.
    - ``auto_create``: the number of partitions of a topic that a client's request creates. 0: an error.
    - ``seed``: the seed of member ids.
    - ``advertise``: the host:port that clients are given to connect to, if it is not the one that the broker
      listens on: in a container or behind a proxy.
    - ``tls``, ``tls_client_ca``, ``users``, ``mechanisms``: who is let in; see `Guard`. `client_settings` and
      `client_arguments` return what clients need.
    - ``protocols``: the records of the protocol families of groups, which have a coordinator.

    Limits, beyond which a connection is closed:

    - ``most_frame_bytes``: of a request.
    - ``most_connections``: at the same time.
    - ``most_waiting_bytes``: of large requests that are incomplete, and of responses that are not read yet.
    - ``idle_seconds``: without a request.

    Limits, beyond which the response is an error:

    - ``most_record_bytes`` and ``most_partitions``: of all topics (POLICY_VIOLATION).

    ``most_trace_events`` limits the traces of groups: the oldest group without members is forgotten first.

    Raises:
        InputError: if a setting, the folder or an address cannot be used.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: str | None = None,
        settings: Mapping[str, int | bool | str] | None = None,
        data_dir: Path | str | None = None,
        auto_create: int = 0,
        most_frame_bytes: int = MOST_FRAME_BYTES,
        most_connections: int = MOST_CONNECTIONS,
        most_record_bytes: int = MOST_RECORD_BYTES,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
        most_partitions: int = MOST_PARTITIONS_IN_ALL,
        most_trace_events: int = MOST_EVENTS,
        idle_seconds: float = IDLE_SECONDS,
        seed: int | None = None,
        tls: Tls = False,
        tls_client_ca: Path | str | None = None,
        users: Mapping[str, str] | None = None,
        mechanisms: Sequence[str] = MECHANISMS,
        protocols: Sequence[ProtocolSpec] = PROTOCOLS,
    ) -> None:
        self._guard = Guard(tls=tls, tls_client_ca=tls_client_ca, users=users, mechanisms=mechanisms)
        self.most_frame_bytes, self.idle_seconds = most_frame_bytes, idle_seconds
        self._most_connections, self._most_waiting_bytes = most_connections, most_waiting_bytes
        self._most_record_bytes, self._most_partitions = most_record_bytes, most_partitions
        self._most_trace_events = most_trace_events
        self._auto_create = auto_create
        self._host, self._port = host, port
        self._advertised = None if advertise is None else place_of(advertise, "advertise")
        self._at = Place(host, port)
        self._wanted = _checked(topics or {})
        families = [spec.settings for spec in protocols if spec.settings is not None]
        kinds = [kind for kind in families if _names_of(kind) != OF_ASSIGNORS]
        self._config, assignors, self._transactions, *own = all_configured(
            [CoordinatorConfig, GroupAssignors, TransactionSettings, *kinds], settings or {}
        )
        by_kind = dict(zip(kinds, own, strict=True))
        self._groups = by_kind.get(ReconcileSettings, ReconcileSettings())
        served = [(spec, spec.settings and by_kind.get(spec.settings)) for spec in protocols]
        self._served = Served(served, assignors.factories())
        self.configs: Mapping[str, str] = _described(self._config, assignors, self._transactions, *own)
        self._folder = None if data_dir is None else Path(data_dir)
        self._random = Random(seed)
        self.incoming = memoryview(bytearray(INCOMING_BYTES))
        self._connections: dict[Connection, None] = {}
        self._server: asyncio.Server | None = None
        self._node: Node | None = None
        self._emptied = asyncio.Event()

    # --- start and stop

    async def start(self) -> None:
        """Read back everything durable, then listen."""
        loop = asyncio.get_running_loop()
        self.turns = Turns(loop)
        store = Store(self._folder)
        try:
            with store.errors_named():
                topics = Topics(
                    store, most_bytes=self._most_record_bytes, most_partitions=self._most_partitions
                )
                data = Data(
                    topics,
                    store,
                    node=NODE,
                    cluster_id=CLUSTER_ID,
                    partitions=self._auto_create,
                    broker_configs=self.configs,
                    transactions=self._transactions,
                    groups=self._groups,
                    offsets_partitions=self._config.offsets_topic_partitions,
                )
                self.ids = topics
                self._create_wanted(topics)
                self._node = Node(
                    loop,
                    store,
                    data,
                    self._config,
                    Recorder(topics, most_events=self._most_trace_events),
                    self._random,
                    self._served,
                )
                store.try_to_compact()
            self._server = await self._listening(loop)
        except BaseException:
            self._guard.close()
            store.close()
            raise
        host, port = self._server.sockets[0].getsockname()[:2]
        self._at = Place("127.0.0.1" if host in ("0.0.0.0", "::") else host, port)
        data.address = self._advertised or self._at

    async def stop(self) -> None:
        """Accept no more connections, answer the requests in progress, close."""
        if self._server is None:
            return
        node = self._running()
        self._server.close()
        for connection in list(self._connections):
            connection.drain()
        if self._connections:
            self._emptied.clear()
            try:
                await asyncio.wait_for(self._emptied.wait(), DRAIN_SECONDS)
            except TimeoutError:
                for connection in list(self._connections):
                    connection.abort()
                await self._emptied.wait()  # connections end in the next turns of the event loop
        node.stop()
        node.data.store.close()
        self._guard.close()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # --- state

    @property
    def address(self) -> str:
        """The host:port that the broker listens on, for ``bootstrap.servers``."""
        self._running()
        return str(self._at)

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the settings that a client needs beside ``bootstrap.servers``, by Kafka's names.

        They are for confluent-kafka, librdkafka and `Consumer`. ``user`` None: the first user.

        Raises:
            InputError: if there is no such user.
        """
        self._running()
        return self._guard.settings(user)

    def client_arguments(self, user: str | None = None) -> dict[str, Any]:
        """Return the same as `client_settings`, as arguments of kafka-python and aiokafka."""
        self._running()
        return self._guard.arguments(user)

    @property
    def topics(self) -> dict[str, int]:
        """The topics, each with the number of its partitions."""
        return dict(self._running().data.topics.partitions)

    @property
    def groups(self) -> list[str]:
        """The ids of the groups."""
        return self._running().coordinator.group_ids()

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._connections)

    def trace(self, group_id: str) -> Trace:
        """Return the history of a consumer group since the broker started, like the trace of a simulated run.

        Raises:
            InputError: if no member has joined the group.
        """
        node = self._running()
        trace = node.recorder.trace(group_id, node.now_ms())
        if trace is None:
            known = ", ".join(node.recorder.groups) or "none yet"
            raise InputError("group", repr(group_id), f"a group that a member has joined ({known})")
        return trace

    def traces(self) -> dict[str, Trace]:
        """Return the traces of all groups that a member has joined."""
        return {group: self.trace(group) for group in self._running().recorder.groups}

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create topics, or give them more partitions.

        Raises:
            InputError: if a name or a number of partitions is not allowed, or the disk is full.
        """
        data = self._running().data
        with data.store.errors_named():
            self._create(data.topics, _checked(topics))

    # --- called by connections

    def login(self) -> Login | None:
        """Return the authentication of a new connection, None on a broker without SASL."""
        return self._guard.login()

    def admit(self, connection: Connection) -> bool:
        """Take in a new connection. Return False if there are too many."""
        if len(self._connections) >= self._most_connections:
            LOG.warning("a connection is refused: there are %d already", self._most_connections)
            return False
        self._connections[connection] = None
        return True

    def closed(self, connection: Connection, fault: str | None) -> None:
        """Forget a connection. ``fault``: the client's error that ended it."""
        self._connections.pop(connection, None)
        if fault is not None:
            LOG.warning("a connection is closed: %s", fault)
        if not self._connections:
            self._emptied.set()

    def has_room(self, size: int) -> bool:
        """Return whether there is memory for this many bytes beside those that are waiting."""
        return size <= AT_ONCE_BYTES or self._waiting() + size <= self._most_waiting_bytes

    def receive(self, request: Request, host: str, reply: Callable[[Any], None]) -> Callable[[], None] | None:
        """Pass a request to the node."""
        return self._running().receive(request, host, reply)

    # --- internals

    def _waiting(self) -> int:
        return sum(connection.size for connection in self._connections)

    def _running(self) -> Node:
        if self._node is None:
            raise InputError("broker", "one that was not started", "async with EmbeddedBroker(...)")
        return self._node

    async def _listening(self, loop: asyncio.AbstractEventLoop) -> asyncio.Server:
        hosts = [place.host for place in (self._at, self._advertised) if place is not None]
        try:
            tls = self._guard.open(hosts)
            return await loop.create_server(
                lambda: Connection(self),
                self._host,
                self._port,
                backlog=1_024,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=None if tls is None else SHUTDOWN_SECONDS,
            )
        except (OSError, OverflowError, UnicodeError) as error:
            where, found = f"{self._host}:{self._port}", getattr(error, "strerror", None) or str(error)
            if isinstance(error, OSError) and error.errno == EADDRINUSE:  # asyncio adds the address
                raise InputError(where, "a port in use", "a free one (port 0 picks it)") from None
            raise InputError(where, found, "an address to listen on") from None

    def _create_wanted(self, topics: Topics) -> None:
        new = {topic: n for topic, n in self._wanted.items() if topics.partitions.get(topic) != n}
        self._create(topics, new)

    def _create(self, topics: Topics, wanted: Mapping[str, int]) -> None:
        more = 0
        for topic, count in wanted.items():
            check = topics.cannot_grow if topic in topics.partitions else topics.cannot_create
            refusal = check(topic, count, more)
            if refusal is not None:
                found, _, expected = str(refusal.message).partition(", expected ")
                raise InputError(f"topic {topic}", found, expected)
            more += count - topics.partitions.get(topic, 0)
        if wanted:
            topics.create(wanted)


def _names_of(settings: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(settings)}


def _checked(topics: object) -> dict[str, int]:
    """Return topics with their numbers of partitions, or raise an error if they have another form."""
    if not isinstance(topics, Mapping) or not all(type(count) is int for count in topics.values()):
        raise InputError("topics", repr(topics), "numbers of partitions by topic, such as {'orders': 12}")
    return dict(topics)


def _described(*configs: msgspec.Struct) -> dict[str, str]:
    """Return the settings as DescribeConfigs lists them: those that the version of Kafka has."""
    settings = {
        name: value
        for config in configs
        for name, value in msgspec.to_builtins(config).items()
        if not isinstance(config, VersionedSettings) or config.has_setting(name)
    }
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in sorted(settings.items())
    }
