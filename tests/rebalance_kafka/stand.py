"""A broker on the test's event loop, which receives arbitrary bytes while a well-behaved client works."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from traceback import format_exception
from types import TracebackType
from typing import Any, Self, TypeVar
from unittest.mock import patch

from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.broker import embedded
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import decode_response, encode_request
from tests.rebalance_kafka.damage import REQUESTS, SUBSCRIPTION, TOPIC, may_wait, request

SECONDS = 60.0
"""Much more than any step takes."""

A_MOMENT = 0.02
AT_ONCE = 25
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 600_000,
}
LIMITS: Mapping[str, Any] = {
    "most_partitions": 2_000,
    "most_record_bytes": 2_000_000,
    "most_trace_events": 5_000,
    "auto_create": 1,
}

T = TypeVar("T")


class Line:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._asked = 0

    @classmethod
    async def to(cls, address: str) -> Self:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, api: Api, version: int, **other: Any) -> Any:
        """Send a valid request and return the response."""
        self._asked += 1
        values = {**REQUESTS[api], **other}
        self.writer.write(encode_request(api, version, self._asked, "good", values))
        correlation, body = decode_response(api, version, await within(self.frame()))
        assert correlation == self._asked
        return body

    async def frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """Read until the broker closes the connection."""
        try:
            return await within(self.reader.read())
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return

    def abort(self) -> None:
        """End the connection, unless asyncio ended it already: aborting it then is an error in its loop."""
        if self.writer.transport.get_protocol() is not None:
            self.writer.transport.abort()


class Neighbour:
    """A member of a group of each protocol that gets its responses, whatever other clients do."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._member_id, self._generation = "", -1
        self._epoch = 0

    @classmethod
    async def joined(cls, address: str) -> Self:
        self = cls(await Line.to(address))
        identity = {"group_id": "neighbours", "session_timeout": 600_000}
        protocols = ({"name": "range", "metadata": SUBSCRIPTION},)
        while self._generation < 0:
            requested = {**identity, "protocols": protocols, "member_id": self._member_id}
            joined = await self._line.ask(Api.JOIN_GROUP, 9, **requested)
            self._member_id, self._generation = joined.member_id, joined.generation_id
        mine = {**identity, "member_id": self._member_id, "generation_id": self._generation}
        assignments = ({"member_id": self._member_id, "assignment": b"mine"},)
        synced = await self._line.ask(Api.SYNC_GROUP, 5, **mine, assignments=assignments)
        assert synced.assignment == b"mine"
        await self._beats(server_assignor=None)
        return self

    async def _beats(self, **other: Any) -> None:
        """Send a heartbeat of the consumer protocol."""
        if self._epoch:
            changed = (
                "subscribed_topic_names",
                "subscribed_topic_regex",
                "server_assignor",
                "topic_partitions",
            )
            other = {"rebalance_timeout": -1, **dict.fromkeys(changed)}
        fields = {"group_id": "consumer neighbours", "member_epoch": self._epoch, **other}
        beat = await self._line.ask(Api.CONSUMER_GROUP_HEARTBEAT, 1, **fields)
        assert beat.error_code == 0
        self._epoch = beat.member_epoch

    async def works(self) -> None:
        """Check that both sessions are alive and the topic exists."""
        await self._beats()
        beat = {"group_id": "neighbours", "member_id": self._member_id, "generation_id": self._generation}
        assert (await self._line.ask(Api.HEARTBEAT, 4, **beat)).error_code == 0
        metadata = await self._line.ask(Api.METADATA, 9, topics=({"name": TOPIC},))
        assert [topic.error_code for topic in metadata.topics] == [0]

    async def close(self) -> None:
        await self._line.close()


class Stand:
    """A broker and a well-behaved client. On exit, every error of the event loop is an error of the test."""

    def __init__(self, *, neighbour: bool = True, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.errors: list[str] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(_reported(context)))
        self.broker = EmbeddedBroker({TOPIC: 3}, settings=SETTINGS, **{"seed": 1, **options})
        self._has_neighbour = neighbour
        self._neighbour: Neighbour | None = None
        self._complaints = _Errors(self.errors)

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self._complaints)
        self.run(self.broker.start())
        if self._has_neighbour:
            self._neighbour = self.run(Neighbour.joined(self.broker.address))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._neighbour is not None:
                self.run(self._neighbour.close())
            with patch.object(embedded, "DRAIN_SECONDS", A_MOMENT):  # requests that wait are not answered
                self.run(self.broker.stop())
            self.run(asyncio.sleep(0))
            gc.collect()
        finally:
            logging.getLogger().removeHandler(self._complaints)
            self.loop.close()
        if kind is None:
            assert self.errors == [], "\n".join(self.errors)
            assert self.broker.connections == 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def throw(self, frames: Iterable[bytes]) -> None:
        """Send each frame on a separate connection. It is answered or closed, and the neighbour is served."""
        self.run(self._throw(list(frames)))

    async def _throw(self, frames: list[bytes]) -> None:
        for first in range(0, len(frames), AT_ONCE):
            await asyncio.gather(*(self._sent(frame) for frame in frames[first : first + AT_ONCE]))
            await self.neighbour_works()
            assert self.errors == [], "\n".join(self.errors)

    async def _sent(self, frame: bytes) -> None:
        line = await Line.to(self.broker.address)
        line.writer.write(frame)
        line.writer.write_eof()
        if may_wait(frame):
            try:
                async with asyncio.timeout(A_MOMENT):
                    await line.rest()
            except TimeoutError:
                line.abort()
        else:
            await line.rest()
        await line.close()

    async def neighbour_works(self) -> None:
        if self._neighbour is not None:
            await within(self._neighbour.works())

    async def line(self) -> Line:
        return await Line.to(self.broker.address)

    def asked(self, api: Api, version: int, **other: Any) -> Any:
        """Send a valid request on a connection of its own and return the response."""

        async def ask() -> Any:
            line = await self.line()
            answer = await line.ask(api, version, **other)
            await line.close()
            return answer

        return self.run(ask())

    def commit(self, group: str, *, topic: str = TOPIC, partition: int = 0, metadata: str = "") -> Any:
        """Commit offset 5 of a partition and return the error code."""
        offset = {
            "partition_index": partition,
            "committed_offset": 5,
            "committed_leader_epoch": -1,
            "committed_metadata": metadata,
        }
        topics = ({"name": topic, "partitions": (offset,)},)
        answer = self.asked(Api.OFFSET_COMMIT, 8, group_id=group, topics=topics)
        return answer.topics[0].partitions[0].error_code

    # --- state of the broker

    def figures(self) -> dict[str, int]:
        """Return the sizes of everything that requests leave behind."""
        broker = self.broker
        node = broker._node
        assert node is not None
        recorder = node.recorder
        topics = recorder._topics
        gc.collect()
        return {
            "parked": len(node._parked),
            "homes": node.coordinator._home.cache_info().currsize,
            "traces": len(recorder.groups),
            "trace events": recorder._size,
            "partitions": sum(topics.partitions.values()),
            "producers": len(topics._producers._producers),
        }


class _Errors(logging.Handler):
    """Collects errors. Faults of clients are only warnings."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        self._errors.append(record.getMessage())


def _reported(context: Mapping[str, Any]) -> str:
    """Return an error of the event loop with its traceback."""
    error = context.get("exception")
    return context["message"] + ("" if error is None else "\n" + "".join(format_exception(error)))


async def within(work: Awaitable[T]) -> T:
    async with asyncio.timeout(SECONDS):
        return await work


async def until(condition: Any) -> None:
    """Wait until it is true."""

    async def waiting() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await within(waiting())


__all__ = ["LIMITS", "SECONDS", "Line", "Neighbour", "Stand", "request", "until", "within"]
