"""The embedded broker: its start and memory, rate and latency of heartbeats, how soon groups are Stable.

    python -m tests.benchmarks.kafka [MEMBERS ...]

*Start*: of ``serve``, from the start of the process until it prints its address; in a process that runs
already, with and without the time of the import. *Memory*: resident, of the whole process of ``serve``; in a
process, what a broker with 12 partitions adds, with and without the import.

The broker runs in a process of its own and is asked over a socket on this machine. *One at a time*: the
next heartbeat goes out when the last is answered. *Pipelined*: 100 are under way. *Server CPU*: of the
broker's process alone, for each heartbeat. *Latency*: of single heartbeats beside so many clients that send
without a pause and do not read; the first is sent while this process still sends their 150 MB. *Stable*:
from the first JoinGroup to the last SyncGroup answered, of members that join at once on a connection each,
without an initial delay. The time of the members, which share one process, is part of it. Medians of three.
"""

import asyncio
import json
import multiprocessing
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from statistics import median
from time import perf_counter, process_time
from typing import Any

from coordinator_core.model import Subscription
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.wire.apis import Api, api_of
from rebalance_kafka.wire.frames import decode_received, encode_request
from rebalance_kafka.wire.messages import request_body
from tests.benchmarks import broker_start

HEARTBEATS = 20_000
UNDER_WAY = 100
MEMBERS = (50, 500, 1_000, 2_000)
CROWDS = (0, 100)
FLOOD = 20_000
SINGLE = 100
BEAT_SECONDS = 0.5
TIMES = 3
_SERVE = "from rebalance_lab.cli.main import run; run()"
METADATA = encode_subscription(Subscription(("t",)))


def main() -> None:
    """Print the tables."""
    sizes = [int(text) for text in sys.argv[1:]] or list(MEMBERS)
    context = multiprocessing.get_context("spawn")
    _print_starts()
    broker, its_end = context.Pipe()
    process = context.Process(target=_serve, args=(its_end,), daemon=True)
    process.start()
    try:
        asyncio.run(_measured(broker, broker.recv(), sizes))
    finally:
        process.terminate()
        process.join()


def _serve(benchmark: Connection) -> None:
    """Send the port, and then the CPU time as often as it is requested."""

    def report() -> None:
        benchmark.recv()
        benchmark.send(process_time())

    async def serve() -> None:
        settings = {"group.initial.rebalance.delay.ms": 0}
        async with EmbeddedBroker({"t": 1_000}, settings=settings) as broker:
            benchmark.send(int(broker.address.rpartition(":")[2]))
            asyncio.get_running_loop().add_reader(benchmark.fileno(), report)
            await asyncio.Event().wait()

    asyncio.run(serve())


def _print_starts() -> None:
    """Print how long a broker takes to start, and its memory."""
    print_line("| broker | start | CPU | memory |")
    print_line("| --- | --- | --- | --- |")
    served = [_served() for _ in range(TIMES)]
    inside = [_started_inside() for _ in range(TIMES)]
    for name, measured in (
        ("`rebalance-lab serve`", served),
        ("the first of a process", [first for first, _ in inside]),
        ("another one", [other for _, other in inside]),
    ):
        seconds, cpu, mb = (median(column) for column in zip(*measured, strict=True))
        print_line(f"| {name} | {seconds * 1e3:,.0f} ms | {cpu * 1e3:,.0f} ms | {mb:.1f} MB |")
    print_line("")


def _served() -> tuple[float, float, float]:
    """Return the seconds until ``serve`` is ready, its CPU time and its memory."""
    begun = perf_counter()
    command = [sys.executable, "-c", _SERVE, "serve", "--listen", "127.0.0.1:0", "--topic", "t=12"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        seconds = perf_counter() - begun
        measured = seconds, broker_start.cpu_seconds(process.pid), broker_start.resident_mb(process.pid)
        process.terminate()
    return measured


def _started_inside() -> list[list[float]]:
    """Return seconds, CPU time and memory of the first broker of a process, and those of the second."""
    command = [sys.executable, "-m", broker_start.__name__]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    measured: list[list[float]] = json.loads(printed)
    return measured


async def _measured(broker: Connection, port: int, sizes: list[int]) -> None:
    def cpu_seconds() -> float:
        broker.send(None)
        return float(broker.recv())

    print_line("| heartbeats | a second | server CPU, each |")
    print_line("| --- | --- | --- |")
    member = await _Member.joined(port, "beats")
    for name, under_way in (("one at a time", 1), (f"pipelined, {UNDER_WAY}", UNDER_WAY)):
        seconds, cpu = [], []
        for _ in range(TIMES):
            before = cpu_seconds()
            seconds.append(await member.beats(HEARTBEATS, under_way))
            cpu.append(cpu_seconds() - before)
        each_us = median(cpu) / HEARTBEATS * 1e6
        print_line(f"| {name} | {HEARTBEATS / median(seconds):,.0f} | {each_us:.1f} us |")
    print_line("")
    print_line("| clients beside it | latency: median | 99 of 100 within | worst |")
    print_line("| --- | --- | --- | --- |")
    for crowd in CROWDS:
        *_, second, worst = latencies = sorted(await _latencies(port, member, crowd))
        row = f"{median(latencies) * 1e3:.1f} ms | {second * 1e3:.0f} ms | {worst * 1e3:.0f} ms"
        print_line(f"| {crowd} | {row} |")
    await member.leave()
    print_line("")
    print_line("| members | Stable after |")
    print_line("| --- | --- |")
    for size in sizes:
        seconds = median([await _stable(port, size, f"g-{size}-{n}") for n in range(TIMES)])
        print_line(f"| {size:,} | {seconds:.2f} s |")


async def _latencies(port: int, member: "_Member", crowd: int) -> list[float]:
    """Return the seconds that single heartbeats take beside clients that flood the broker."""
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(crowd)]
    for writer in writers:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(member.heartbeat() * FLOOD)
    latencies = [await member.beats(1, 1) for _ in range(SINGLE)]
    for writer in writers:
        writer.transport.abort()
    return latencies


async def _stable(port: int, size: int, group: str) -> float:
    members = [await _Member.connected(port, group) for _ in range(size)]
    synced: Counter[int] = Counter()
    is_stable = asyncio.Event()

    async def join(member: _Member) -> None:
        """Join again until all members are in one generation, as heartbeats report."""
        while not is_stable.is_set():
            await member.join()
            synced[member.generation] += 1
            if synced[member.generation] == size:
                is_stable.set()
            while not is_stable.is_set() and await member.is_in():
                with suppress(TimeoutError):
                    await asyncio.wait_for(is_stable.wait(), BEAT_SECONDS)

    begun = perf_counter()
    await asyncio.gather(*map(join, members))
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

    async def is_in(self) -> bool:
        """Whether a heartbeat finds its generation the newest."""
        return (await self._ask(self._beat())).error is ErrorCode.NONE

    def _beat(self) -> m.HeartbeatRequest:
        return m.HeartbeatRequest(
            group_id=self._group, generation_id=self.generation, member_id=self.member_id
        )

    def heartbeat(self) -> bytes:
        """A heartbeat as it is sent."""
        return encode_request(Api.HEARTBEAT, 4, 1, "bench", self._beat())

    async def beats(self, count: int, under_way: int) -> float:
        """Seconds that so many heartbeats take."""
        frame = self.heartbeat()
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
        version = {Api.JOIN_GROUP: 9, Api.SYNC_GROUP: 5, Api.HEARTBEAT: 4, Api.LEAVE_GROUP: 5}[api]
        self._correlation += 1
        self._writer.write(
            encode_request(api, version, self._correlation, "bench", request_body(request, version))
        )
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return decode_received(request, version, await self._reader.readexactly(size)).response


def print_line(text: str) -> None:
    """One line to stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
