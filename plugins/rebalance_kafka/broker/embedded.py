"""The embedded broker: one process, one event loop, real clients."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.errors import InputError
from coordinator_core.traces.trace import Trace
from rebalance_kafka.addresses import Place, place_of
from rebalance_kafka.broker.connections import Connection
from rebalance_kafka.broker.data import Data
from rebalance_kafka.broker.node import MOST_GROUP_BYTES, NODE, Node
from rebalance_kafka.broker.recorder import MOST_TRACE_BYTES, Recorder
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import MOST_PARTITIONS_IN_ALL, Topics
from rebalance_kafka.settings import configured
from rebalance_kafka.wire.frames import Request, Values

LOG = logging.getLogger(__name__)

MOST_FRAME_BYTES = 100 * 1024 * 1024
MOST_CONNECTIONS = 2_000
MOST_RECORD_BYTES = 1024 * 1024 * 1024
MOST_WAITING_BYTES = 256 * 1024 * 1024
IDLE_SECONDS = 600.0
DRAIN_SECONDS = 5.0
AT_ONCE_BYTES = 64 * 1024
"""Requests and answers up to this size are always taken in."""


class EmbeddedBroker:
    """A broker for tests and workshops: groups, offsets and records, no replication, no transactions.

        async with EmbeddedBroker(topics={"orders": 12}) as broker:
            consumer = AIOKafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")

    ``topics``: name to partitions; those that are there already may grow. ``settings``: the coordinator's, by
    Kafka's names (``group.initial.rebalance.delay.ms``). ``data_dir``: a folder in which groups, offsets and
    records outlive the process, even one that is killed. ``auto_create``: partitions of a topic that is made
    when a client first asks for it, 0 for an error. ``seed``: of member ids. ``advertise``: host:port that
    clients are told to connect to, where that is another than it listens on: in a container, behind a proxy.

    Limits, beyond which a connection is closed: ``most_frame_bytes`` of a request; ``most_connections`` at
    once; ``most_waiting_bytes`` of large requests that are not all there yet and of answers that are not read
    yet; ``idle_seconds`` without a word. Limits, beyond which a request is answered with an error:
    ``most_record_bytes`` kept and ``most_partitions`` of all topics (POLICY_VIOLATION), ``most_group_bytes``
    that groups, members and committed offsets take (GROUP_MAX_SIZE_REACHED). Of what has happened to groups
    ``most_trace_bytes`` are kept: the oldest group that nobody is in is forgotten first.

    Raises InputError for settings, a folder or an address that cannot be used.
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
        most_group_bytes: int = MOST_GROUP_BYTES,
        most_trace_bytes: int = MOST_TRACE_BYTES,
        idle_seconds: float = IDLE_SECONDS,
        seed: int | None = None,
    ) -> None:
        self.most_frame_bytes, self.idle_seconds = most_frame_bytes, idle_seconds
        self._most_connections, self._most_waiting_bytes = most_connections, most_waiting_bytes
        self._most_record_bytes, self._most_partitions = most_record_bytes, most_partitions
        self._most_group_bytes, self._most_trace_bytes = most_group_bytes, most_trace_bytes
        self._auto_create = auto_create
        self._host, self._port = host, port
        self._advertised = None if advertise is None else place_of(advertise, "advertise")
        self._at = Place(host, port)
        self._wanted = dict(topics or {})
        self._config = configured(CoordinatorConfig, settings or {})
        self._folder = None if data_dir is None else Path(data_dir)
        self._random = Random(seed)
        self._connections: dict[Connection, None] = {}
        self._server: asyncio.Server | None = None
        self._store: Store | None = None
        self._node: Node | None = None
        self._recorder: Recorder | None = None
        self._emptied = asyncio.Event()

    # --- its life

    async def start(self) -> None:
        """Listen. Everything durable has been read back when this is done."""
        loop = asyncio.get_running_loop()
        store = self._store = Store(self._folder)
        try:
            store.compact()
            topics = Topics(store, most_bytes=self._most_record_bytes, most_partitions=self._most_partitions)
            recorder = self._recorder = Recorder(topics, most_bytes=self._most_trace_bytes)
            data = Data(topics, store, node=NODE, cluster_id="rebalance-lab", partitions=self._auto_create)
            self._make_wanted(topics)
            self._node = Node(loop, store, data, self._config, recorder, self._random, self._most_group_bytes)
            self._server = await self._listening(loop)
        except BaseException:
            store.close()
            raise
        host, port = self._server.sockets[0].getsockname()[:2]
        self._at = Place("127.0.0.1" if host in ("0.0.0.0", "::") else host, port)
        data.address = self._advertised or self._at

    async def stop(self) -> None:
        """Take no more connections, answer what is under way, close."""
        if self._server is None or self._node is None or self._store is None:
            return
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
                await asyncio.sleep(0)  # they end in the loop's next turn
        self._node.stop()
        self._store.close()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # --- what there is

    @property
    def address(self) -> str:
        """Where it listens: host:port, for ``bootstrap.servers``."""
        self._running()
        return str(self._at)

    @property
    def topics(self) -> dict[str, int]:
        """Every topic with the number of its partitions."""
        return dict(self._running().data.topics.partitions)

    @property
    def groups(self) -> list[str]:
        """The groups that there are."""
        return self._running().coordinator.group_ids()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def trace(self, group_id: str) -> Trace:
        """What has happened to a consumer group since the broker started, as of a simulated run.

        Raises InputError for a group that nobody joined.
        """
        node = self._running()
        assert self._recorder is not None
        trace = self._recorder.trace(group_id, node.now_ms())
        if trace is None:
            known = ", ".join(self._recorder.groups) or "none yet"
            raise InputError("group", repr(group_id), f"a group that somebody joined ({known})")
        return trace

    def traces(self) -> dict[str, Trace]:
        """The traces of all groups that somebody joined."""
        self._running()
        assert self._recorder is not None
        return {group: self.trace(group) for group in self._recorder.groups}

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Make topics, or give them more partitions. Raises InputError for what cannot be."""
        node = self._running()
        assert self._recorder is not None
        self._make(node.data.topics, topics)

    # --- what connections ask

    def admitted(self, connection: Connection) -> bool:
        """Whether there is room for one more."""
        if len(self._connections) >= self._most_connections:
            LOG.warning("a connection is refused: there are %d already", self._most_connections)
            return False
        self._connections[connection] = None
        return True

    def gone(self, connection: Connection, problem: str | None) -> None:
        """A connection is closed."""
        self._connections.pop(connection, None)
        if problem is not None:
            LOG.warning("a connection is closed: %s", problem)
        if not self._connections:
            self._emptied.set()

    def has_room(self, size: int) -> bool:
        """Whether there is memory for so many bytes beside those that are waiting."""
        return size <= AT_ONCE_BYTES or self._waiting() + size <= self._most_waiting_bytes

    def receive(
        self, request: Request, host: str, reply: Callable[[Values | None], None]
    ) -> Callable[[], None] | None:
        """Hand a request to the node."""
        return self._running().receive(request, host, reply)

    # --- inside

    def _waiting(self) -> int:
        return sum(connection.size for connection in self._connections)

    def _running(self) -> Node:
        if self._node is None:
            raise InputError("broker", "one that was not started", "async with EmbeddedBroker(...)")
        return self._node

    async def _listening(self, loop: asyncio.AbstractEventLoop) -> asyncio.Server:
        try:
            return await loop.create_server(lambda: Connection(self), self._host, self._port, backlog=1_024)
        except (OSError, OverflowError, UnicodeError) as problem:
            where, said = f"{self._host}:{self._port}", getattr(problem, "strerror", None) or str(problem)
            raise InputError(where, said, "an address to listen on") from None

    def _make_wanted(self, topics: Topics) -> None:
        new = {topic: n for topic, n in self._wanted.items() if topics.partitions.get(topic) != n}
        self._make(topics, new)

    def _make(self, topics: Topics, wanted: Mapping[str, int]) -> None:
        more = 0
        for topic, count in wanted.items():
            there = topic in topics.partitions
            cannot = topics.cannot_grow if there else topics.cannot_create
            refused = cannot(topic, count, more)
            if refused is not None:
                raise InputError(f"topic {topic}", str(refused.message), "a topic that can be made")
            more += count - topics.partitions.get(topic, 0)
        if wanted:
            topics.create(wanted)
