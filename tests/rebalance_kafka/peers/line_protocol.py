"""The protocol of peers: one JSON object per line. The first one has the options, the others are commands.

A peer is a process with one real client in it. It polls all the time, and carries out commands between two
polls: ``{"id": 7, "do": "assignment"}`` is answered by ``{"id": 7, "assignment": [...], ...}``.

==============  ========================================================================================
``assignment``  ``assignment``, a list of ``[topic, partition]``; ``member_id`` and ``generation``
``records``     ``count`` of all, ``records`` since last asked: topic, partition, offset, value
``events``      ``events`` since last asked: ``assigned``, ``revoked`` or ``lost``; with ``partitions``
``commit``      commits what was consumed; ``committed`` as the client then tells
``committed``   the same of ``partitions``, of its own if none are named; offset null for none
``errors``      ``errors`` since last asked: what the client raised while nobody asked
``close``       leaves the group and ends; ``records``, ``events`` and ``errors`` since last asked
==============  ========================================================================================

To every command but ``errors`` and ``close`` the errors there are become the answer: ``{"id": 7, "error":
...}``. Nothing but answers goes to stdout.
"""

import asyncio
import json
import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO, TypeAlias

POLL_SECONDS = 0.05
READY = 0
"""The id of the answer to the options."""

Partition: TypeAlias = tuple[str, int]
Answer: TypeAlias = dict[str, Any]


def assignor_of_brokers(strategy: str) -> str:
    """Return the assignor that brokers run for a strategy of KIP-848 by its name there, "" for others."""
    assignor, _, protocol = strategy.partition("+")
    return assignor.removesuffix("-848") if protocol == "reconcile" else ""


@dataclass(frozen=True)
class Options:
    """Options of a member, the same for all clients."""

    bootstrap: str
    group: str
    topics: list[str]
    strategy: str = "range"
    instance_id: str | None = None
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 300
    client_id: str = "peer"
    revoke_seconds: float = 0.0
    """How long a call of on_partitions_revoked takes, if there are partitions."""


@dataclass
class Notes:
    """Events and records of a peer's client since the last command that returned them."""

    revoke_seconds: float = 0.0
    consumed: int = 0
    positions: dict[Partition, int] = field(default_factory=dict)
    records: list[tuple[str, int, int, str]] = field(default_factory=list)
    events: list[Answer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def record(self, topic: str, partition: int, offset: int, value: bytes) -> None:
        self.consumed += 1
        self.positions[topic, partition] = offset + 1
        self.records.append((topic, partition, offset, value.decode()))

    def event(self, name: str, partitions: Iterable[Partition]) -> None:
        listed = sorted(partitions)
        self.events.append({"event": name, "partitions": listed})
        if name == "revoked" and listed:
            time.sleep(self.revoke_seconds)

    def begins_anew(self, partitions: Iterable[Partition]) -> None:
        """Forget positions: the client continues at the committed offsets."""
        for partition in partitions:
            self.positions.pop(partition, None)

    def error(self, wrong: BaseException) -> None:
        traceback.print_exception(wrong, file=sys.stderr)
        reported = tell(wrong)
        if reported not in self.errors:
            self.errors.append(reported)

    def take_records(self) -> Answer:
        taken, self.records = self.records, []
        return {"count": self.consumed, "records": taken}

    def take_events(self) -> Answer:
        taken, self.events = self.events, []
        return {"events": taken}

    def take_errors(self) -> list[str]:
        taken, self.errors = self.errors, []
        return taken


class Member(Protocol):
    """A client that is a member of a group."""

    async def poll(self, seconds: float) -> None: ...
    async def assignment(self) -> list[Partition]: ...
    async def identity(self) -> tuple[str | None, int | None]: ...
    async def commit(self, offsets: dict[Partition, int]) -> None: ...
    async def committed(self, partitions: list[Partition]) -> dict[Partition, int | None]: ...
    async def close(self) -> None: ...


def tell(wrong: BaseException) -> str:
    return f"{type(wrong).__name__}: {wrong}"


class Lines:
    """Commands from stdin, and answers to stdout, which nothing else writes to."""

    def __init__(self) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        self._out = _only_for_answers()
        self._commands: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._commands.put(json.loads(line))
        self._commands.put(None)

    def next(self, seconds: float) -> Answer | None:
        """Return the next command, None if there is none yet, and ``close`` at the end of the input."""
        try:
            command = self._commands.get(timeout=seconds) if seconds else self._commands.get_nowait()
        except queue.Empty:
            return None
        return {"do": "close", "id": None} if command is None else command

    def wait(self) -> Answer:
        return self._commands.get() or {"do": "close", "id": None}

    def answer(self, number: int | None, answer: Answer) -> None:
        print(json.dumps({"id": number, **answer}), file=self._out, flush=True)


def _only_for_answers() -> TextIO:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def run_member(make: Callable[[Options, Notes], Awaitable[Member]]) -> None:
    """Run a peer: join, consume, and answer commands until ``close``."""
    asyncio.run(_run_member(make))


async def _run_member(make: Callable[[Options, Notes], Awaitable[Member]]) -> None:
    lines = Lines()
    options = Options(**lines.wait())
    notes = Notes(options.revoke_seconds)
    try:
        member = await make(options, notes)
    except Exception as wrong:
        traceback.print_exc()
        lines.answer(READY, {"error": tell(wrong)})
        return
    lines.answer(READY, {"ready": True})
    while True:
        try:
            await member.poll(POLL_SECONDS)
            pause = 0.0
        except Exception as wrong:
            notes.error(wrong)
            pause = POLL_SECONDS
        while command := lines.next(pause):
            pause = 0.0
            lines.answer(command["id"], await _answered(member, notes, command))
            if command["do"] == "close":
                return


async def _answered(member: Member, notes: Notes, command: Answer) -> Answer:
    try:
        if command["do"] == "close":
            await member.close()
            rest = {**notes.take_records(), **notes.take_events()}
            return {"closed": True, **rest, "errors": notes.take_errors()}
        if command["do"] == "errors":
            return {"errors": notes.take_errors()}
        if errors := notes.take_errors():
            return {"error": "; ".join(errors)}
        return await _done(member, notes, command)
    except Exception as wrong:
        traceback.print_exc()
        return {"error": tell(wrong)}


async def _done(member: Member, notes: Notes, command: Answer) -> Answer:
    match command["do"]:
        case "assignment":
            member_id, generation = await member.identity()
            assignment = sorted(await member.assignment())
            return {"assignment": assignment, "member_id": member_id, "generation": generation}
        case "records":
            return notes.take_records()
        case "events":
            return notes.take_events()
        case "commit":
            mine = await member.assignment()
            offsets = {p: notes.positions[p] for p in mine if p in notes.positions}
            if offsets:
                await member.commit(offsets)
            return await _committed(member, list(offsets))
        case "committed":
            requested = command.get("partitions")
            mine = await member.assignment() if requested is None else [(t, p) for t, p in requested]
            return await _committed(member, mine)
        case unknown:
            return {"error": f"there is no command {unknown!r}"}


async def _committed(member: Member, partitions: list[Partition]) -> Answer:
    found = await member.committed(partitions) if partitions else {}
    return {"committed": sorted((topic, number, offset) for (topic, number), offset in found.items())}


def run_tool(make: Callable[[str], Any]) -> None:
    """Run a client outside of groups: every command is a method of the object that ``make`` returns."""
    lines = Lines()
    try:
        tool = make(lines.wait()["bootstrap"])
    except Exception as wrong:
        traceback.print_exc()
        lines.answer(READY, {"error": tell(wrong)})
        return
    lines.answer(READY, {"ready": True})
    while True:
        command = lines.wait()
        number, name = command.pop("id"), command.pop("do")
        try:
            answer = getattr(tool, name)(**command) or {}
        except Exception as wrong:
            traceback.print_exc()
            answer = {"error": tell(wrong)}
        lines.answer(number, answer)
        if name == "close":
            return
