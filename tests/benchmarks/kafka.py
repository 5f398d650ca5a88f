"""Heartbeats a second of the embedded broker, and how soon large groups are Stable.

    python -m tests.benchmarks.kafka [MEMBERS ...]

The broker runs in a process of its own and is asked over a socket on this machine. *One at a time*: the next
heartbeat goes out when the last is answered. *Pipelined*: 100 are under way. *Stable*: from the first
JoinGroup to the last SyncGroup answered, of members that join at once on a connection each, without an
initial delay; the time of the members, which share one process, is in it. Medians of three.
"""

import asyncio
import multiprocessing
import sys
from statistics import median
from time import perf_counter
from typing import Any

from coordinator_core.model import Subscription
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.wire.apis import Api, api_of
from rebalance_kafka.wire.frames import decode_response, encode_request
from rebalance_kafka.wire.requests import request_entity
from rebalance_kafka.wire.responses import response_message

HEARTBEATS = 20_000
UNDER_WAY = 100
MEMBERS = (50, 500, 1_000)
TIMES = 3
METADATA = encode_subscription(Subscription(("t",)))


def main() -> None:
    """Print two tables."""
    sizes = [int(text) for text in sys.argv[1:]] or list(MEMBERS)
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    process = context.Process(target=_serve, args=(port,), daemon=True)
    process.start()
    try:
        asyncio.run(_measured(port.get(timeout=60), sizes))
    finally:
        process.terminate()
        process.join()


def _serve(port: Any) -> None:
    async def serve() -> None:
        settings = {"group.initial.rebalance.delay.ms": 0}
        async with EmbeddedBroker({"t": 1_000}, settings=settings) as broker:
            port.put(int(broker.address.rpartition(":")[2]))
            await asyncio.Event().wait()

    asyncio.run(serve())


async def _measured(port: int, sizes: list[int]) -> None:
    print_line("| heartbeats | a second |")
    print_line("| --- | --- |")
    member = await _Member.joined(port, "beats")
    for name, under_way in (("one at a time", 1), (f"pipelined, {UNDER_WAY}", UNDER_WAY)):
        seconds = median([await member.beats(HEARTBEATS, under_way) for _ in range(TIMES)])
        print_line(f"| {name} | {HEARTBEATS / seconds:,.0f} |")
    await member.leave()
    print_line("")
    print_line("| members | Stable after |")
    print_line("| --- | --- |")
    for size in sizes:
        seconds = median([await _stable(port, size, f"g-{size}-{n}") for n in range(TIMES)])
        print_line(f"| {size:,} | {seconds:.2f} s |")


async def _stable(port: int, size: int, group: str) -> float:
    members = [await _Member.connected(port, group) for _ in range(size)]
    begun = perf_counter()
    await asyncio.gather(*(member.join() for member in members))
    seconds = perf_counter() - begun
    for member in members:
        await member.leave()
    return seconds


class _Member:
    """The least a member is: joins, syncs, beats, leaves."""

    def __init__(self, group: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._group, self._reader, self._writer = group, reader, writer
        self._correlation = 0
        self.member_id, self.generation = "", -1

    @classmethod
    async def connected(cls, port: int, group: str) -> "_Member":
        return cls(group, *await asyncio.open_connection("127.0.0.1", port))

    @classmethod
    async def joined(cls, port: int, group: str) -> "_Member":
        member = await cls.connected(port, group)
        await member.join()
        return member

    async def join(self) -> None:
        """Until it is in a generation that everybody has synced in."""
        while True:
            joined = await self._ask(
                m.JoinGroupRequest(
                    group_id=self._group,
                    session_timeout_ms=60_000,
                    rebalance_timeout_ms=60_000,
                    member_id=self.member_id,
                    protocols=(m.JoinGroupProtocol("range", METADATA),),
                )
            )
            self.member_id = joined.member_id
            if joined.error is not ErrorCode.NONE:
                continue
            self.generation = joined.generation_id
            synced = await self._ask(
                m.SyncGroupRequest(
                    group_id=self._group,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    assignments=tuple(m.SyncGroupAssignment(e.member_id, b"") for e in joined.members),
                )
            )
            if synced.error is ErrorCode.NONE:
                return

    async def beats(self, count: int, under_way: int) -> float:
        """Seconds that so many heartbeats take."""
        request = m.HeartbeatRequest(
            group_id=self._group, generation_id=self.generation, member_id=self.member_id
        )
        frame = encode_request(Api.HEARTBEAT, 4, 1, "bench", request_entity(request, 4))
        begun = perf_counter()
        self._writer.write(frame * under_way)
        for number in range(count):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            await self._reader.readexactly(size)
            if number + under_way < count:
                self._writer.write(frame)
        return perf_counter() - begun

    async def leave(self) -> None:
        await self._ask(
            m.LeaveGroupRequest(group_id=self._group, members=(m.MemberIdentity(self.member_id),))
        )
        self._writer.close()

    async def _ask(self, request: m.Request) -> Any:
        api = api_of(request)
        version = {Api.JOIN_GROUP: 9, Api.SYNC_GROUP: 5, Api.LEAVE_GROUP: 5}[api]
        self._correlation += 1
        self._writer.write(
            encode_request(api, version, self._correlation, "bench", request_entity(request, version))
        )
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        _, body = decode_response(api, version, await self._reader.readexactly(size))
        return response_message(request, body, version).response


def print_line(text: str) -> None:
    """One line to stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
