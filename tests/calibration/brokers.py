"""The brokers of runs: a real Kafka that runs with the same settings share, or a `serve` for each run."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import NamedTuple, TypeAlias

from tests.calibration.member import Log, prefer_itself
from tests.real_kafka.broker import Kafka
from tests.real_kafka.wire import LENGTH, Key, decode, encode
from tests.rebalance_kafka.served import Served

LEAST = {"group.consumer.min.session.timeout.ms": 1_000, "group.consumer.min.heartbeat.interval.ms": 500}
"""Brokers refuse sessions as short as those of the scenarios without these settings."""

LOOK_SECONDS = 0.005
STATES = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable")


class Broker(NamedTuple):
    """A running broker."""

    address: str
    pid: int


Place: TypeAlias = Callable[[Mapping[str, int]], AbstractContextManager[Broker]]
"""Returns the broker of a run, by its settings."""


@contextmanager
def serve(settings: Mapping[str, int]) -> Iterator[Broker]:
    """Start a `serve`, and end it with the block."""
    with Served(*(f"--set={name}={value}" for name, value in settings.items())) as served:
        yield Broker(served.address(), served.pid)


def kafka(stack: ExitStack) -> Place:
    """Return a place with one Kafka for each set of settings. They end with the stack."""
    running: dict[frozenset[tuple[str, int]], Kafka] = {}
    lock = Lock()

    @contextmanager
    def place(settings: Mapping[str, int]) -> Iterator[Broker]:
        which = frozenset(settings.items())
        with lock:
            if which not in running:
                folder = Path(stack.enter_context(TemporaryDirectory()))
                running[which] = stack.enter_context(Kafka(folder, {**LEAST, **settings}))
        yield Broker(running[which].address, running[which].pid)

    return place


def watch(address: str, group: str, log: Log, ended: Event) -> None:
    """Write each state of a group, as ListGroups has it, until the end of a run. Without members it is ""."""
    request = encode(Key.LIST_GROUPS, 5, 1, "watch", {"states_filter": STATES, "types_filter": ()})
    host, port = address.rsplit(":", 1)
    prefer_itself()
    last, state = b"", ""
    with socket.create_connection((host, int(port))) as line, line.makefile("rb") as responses:
        while not ended.wait(LOOK_SECONDS):
            line.sendall(request)
            (size,) = LENGTH.unpack(responses.read(LENGTH.size))
            frame = responses.read(size)
            if frame == last:
                continue
            last, before = frame, state
            groups = decode(Key.LIST_GROUPS, 5, frame)["groups"]
            state = next((listed["group_state"] for listed in groups if listed["group_id"] == group), "")
            if state != before:
                log.write("state", state)
