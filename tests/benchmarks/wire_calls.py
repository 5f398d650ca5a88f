"""Python calls of one heartbeat on the wire: a consumer and an embedded broker on one event loop.

    python -m tests.benchmarks.wire_calls

Counts the ``call`` events of `sys.setprofile` of both sides, with asyncio. The group rests: a
Fetch waits, and nothing else is due. The figure is the difference of a long and a short run, divided by the
difference of their heartbeats, so that all that happens once counts for nothing.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from coordinator_core.client.classic.states import MemberState
from rebalance_kafka import Consumer, EmbeddedBroker
from tests.places import ROOT

SHORT, LONG = 100, 300
MOST_ROWS = 40
BROKER = {"group.initial.rebalance.delay.ms": 0}
QUIET_MS = 600_000
MEMBER = {
    "heartbeat.interval.ms": 10,
    "session.timeout.ms": 10_000,
    "fetch.max.wait.ms": 200_000,
    "request.timeout.ms": 300_000,
    "enable.auto.commit": False,
    "metadata.max.age.ms": QUIET_MS,
    "max.poll.interval.ms": QUIET_MS,
}


def main() -> None:
    """Print the calls of a heartbeat by rooms, and those of the functions that are called most."""
    calls = asyncio.run(_measured())
    rooms: Counter[str] = Counter()
    for code, count in calls.items():
        rooms[_room(code.co_filename)] += count
    _print(f"{sum(calls.values()) / (LONG - SHORT):.0f} Python calls of a heartbeat")
    for room, count in rooms.most_common():
        _print(f"{count / (LONG - SHORT):7.1f} {room}")
    if "--functions" in sys.argv:
        for code, count in calls.most_common(MOST_ROWS):
            _print(f"{count / (LONG - SHORT):7.1f} {_room(code.co_filename)} {code.co_qualname}")


async def _measured() -> Counter[CodeType]:
    async with EmbeddedBroker({"t": 4}, settings=BROKER) as broker:
        address = broker.address
        async with Consumer("t", bootstrap_servers=address, group_id="g", settings=MEMBER, seed=1) as member:
            while member.state is not MemberState.STABLE or len(member.assignment) < 4:
                await member.poll(0.1)
            await member.poll(0.5)
            short, long = await _calls(broker, member, SHORT), await _calls(broker, member, LONG)
            long.subtract(short)
            return long


async def _calls(broker: EmbeddedBroker, member: Consumer, heartbeats: int) -> Counter[CodeType]:
    """Return the calls of each function during a number of heartbeats."""
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    def sent() -> int:
        return _heartbeats(broker)

    last = sent() + heartbeats
    sys.setprofile(note)
    while sent() < last:
        await asyncio.sleep(0.05)
    sys.setprofile(None)
    return calls


def _heartbeats(broker: EmbeddedBroker) -> int:
    return broker.trace("g").events[-1].event.messages["Heartbeat"]


def _room(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT).parent)
    return next((name for name in ("asyncio", "kio") if name in path.parts), "other")


def _print(text: str) -> None:
    print(text)  # noqa: T201


if __name__ == "__main__":
    main()
