"""A scenario on real clients: a process for the broker and for each member, and events at their times."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeAlias

import msgspec

from coordinator_core.reading.durations import parse_duration
from coordinator_core.traces.trace import read_trace
from tests.calibration.member import Options
from tests.rebalance_kafka.served import Served

GROUP = "calibrated"
INITIAL_DELAY = "group.initial.rebalance.delay.ms"
ROOT = Path(__file__).parents[2]
NICE = -10
"""Other work on the machine waits for the measured processes, if the user may do that."""

SECONDS = 120.0
BATCH = 20
"""Records in a batch of the backlog. A client fetches few of them at once, and changes partitions often."""

Line: TypeAlias = tuple[float, str, list[Any]]
"""A line of a member: the time, the event, its values."""


@dataclass(frozen=True)
class Action:
    """What happens to a member, in seconds after the start. ``kind`` is the event of the scenario."""

    at: float
    kind: str
    member: str
    do: str
    """``go``, ``close``, ``kill``, ``freeze`` or ``thaw``"""


@dataclass
class Observed:
    """The lines of a run. Times are seconds after the start."""

    duration: float
    topics: dict[str, int]
    lines: dict[str, list[Line]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    broker: list[tuple[float, Any]] = field(default_factory=list)
    """The events of the broker's trace."""


class Process:
    """A member's process. It is made before it is needed, and joins at `go`."""

    def __init__(self, options: Options, errors: Path) -> None:
        with errors.open("ab") as stderr:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.calibration.member",
                    msgspec.json.encode(options).decode(),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins")))},
            )
        _prefer(self.process.pid)

    def ready(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != b"ready\n":
            raise AssertionError("a member ended before it was ready")

    def do(self, what: str) -> None:
        if what == "go":
            assert self.process.stdin is not None
            self.process.stdin.write(b"go\n")
            self.process.stdin.flush()
            return
        signals = {
            "close": signal.SIGTERM,
            "kill": signal.SIGKILL,
            "freeze": signal.SIGSTOP,
            "thaw": signal.SIGCONT,
        }
        self.process.send_signal(signals[what])

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def _prefer(pid: int) -> None:
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, NICE)


def actions_of(document: Mapping[str, Any]) -> list[Action]:
    """Return what happens to processes, in order of time."""
    members = [name for entry in document["members"] for name in _names(entry)]
    running, actions = list(members), [Action(0.0, "start", name, "go") for name in members]
    for event in sorted(document.get("events", ()), key=lambda event: _seconds(event["at"])):
        at = _seconds(event["at"])
        actions += _actions(event, at, running)
    return sorted(actions, key=lambda action: action.at)


def _actions(event: Mapping[str, Any], at: float, running: list[str]) -> list[Action]:
    kind = next(key for key in event if key not in ("at", "for"))
    value = event[kind]
    if kind == "join":
        running += _names(value)
        return [Action(at, kind, name, "go") for name in _names(value)]
    if kind == "rolling_restart":
        every, down = _seconds(value["every"]), _seconds(value["down"])
        ends = "kill" if value.get("kill") else "close"
        return [
            action
            for i, name in enumerate(running)
            for action in (
                Action(at + i * every, "crash" if ends == "kill" else "leave", name, ends),
                Action(at + i * every + down, "restart", name, "go"),
            )
        ]
    if kind == "freeze":
        return [
            Action(at, kind, value, "freeze"),
            Action(at + _seconds(event["for"]), "resume", value, "thaw"),
        ]
    return [Action(at, kind, value, {"leave": "close", "crash": "kill", "restart": "go"}[kind])]


def _names(entry: Mapping[str, Any]) -> list[str]:
    return [f"{entry['id']}-{i}" for i in range(entry["count"])] if "count" in entry else [entry["id"]]


def _seconds(duration: Any) -> float:
    return parse_duration(duration, "a duration") / 1_000


def run(
    document: Mapping[str, Any],
    kind: str,
    strategy: str,
    folder: Path,
    *,
    seed: int = 0,
    verbose: bool = False,
) -> Observed:
    """Run a scenario on real clients of one kind, and return what they and the broker wrote."""
    config = dict(document.get("config", {}))
    broker = {name: config.pop(name) for name in list(config) if name.startswith("group.")}
    (topic, described), *_ = document["topics"].items()
    duration = _seconds(document["duration"])
    actions = actions_of(document)
    trace = folder / "broker.jsonl"
    options = [f"--topic={topic}={described['partitions']}", f"--assignor-trace={trace}"]
    options += [f"--set={name}={_setting(value)}" for name, value in broker.items()]
    observed = Observed(duration, {topic: described["partitions"]})
    with ExitStack() as stack:
        served = stack.enter_context(Served(*options))
        address = served.address()
        _prefer(served.pid)
        _produce(address, topic, described["partitions"], described["backlog"])
        entry = document["members"][0]

        def made(name: str, number: int) -> Process:
            options = Options(
                kind=kind,
                bootstrap=address,
                group=GROUP,
                topics=[topic],
                strategy=strategy,
                name=name,
                log=str(folder / f"{name}.{number}.log"),
                seed=seed * 1_000 + number,
                record_seconds=1 / entry["process_rate"],
                record_cv=entry.get("record_cv", 1.0),
                settings={key: _setting(value) for key, value in config.items()},
                verbose=verbose,
            )
            process = Process(options, folder / f"{name}.{number}.stderr")
            stack.callback(process.end)
            return process

        starts = [action for action in actions if action.do == "go"]
        processes = {action: made(action.member, number) for number, action in enumerate(starts)}
        for process in processes.values():
            process.ready()
        current = {action.member: processes[action] for action in actions if action.kind == "start"}
        for process in current.values():
            process.do("go")
        began = _rests(folder, [action for action in starts if action.kind == "start"])
        began -= rest_seconds(broker)
        for action in actions[len(current) :]:
            _until(began + action.at)
            if action.do == "go":
                current[action.member] = processes[action]
            current[action.member].do(action.do)
        _until(began + duration)
        ended = monotonic()
        served.terminate()
        stopping = served.next_error()
        assert stopping.startswith("stopping"), stopping
        served.ended()
    recorded = read_trace(trace)
    offset = ended - began - recorded.started.duration_ms / 1_000
    observed.broker = [(line.at_ms / 1_000 + offset, line.event) for line in recorded.events]
    observed.actions = actions
    for number, action in enumerate(starts):
        lines = (folder / f"{action.member}.{number}.log").read_text().splitlines()
        read = [json.loads(line) for line in lines]
        mine = observed.lines.setdefault(action.member, [])
        mine += [(at - began, event, values) for at, event, *values in read if at - began <= duration]
    return observed


def rest_seconds(broker: Mapping[str, Any]) -> float:
    """Return when the group rests: members that join during the initial delay extend it once."""
    return 2 * _setting(broker[INITIAL_DELAY]) / 1_000


def _rests(folder: Path, starts: Sequence[Action]) -> float:
    """Wait until every initial member has partitions, and return when the last one got them.

    The clock of the scenario is set by it, so that events find heartbeats and batches where they are in a
    simulated run.
    """
    waiting = {folder / f"{action.member}.{number}.log": 0.0 for number, action in enumerate(starts)}
    until = monotonic() + SECONDS
    while not all(waiting.values()):
        assert monotonic() < until, "the group did not come to rest"
        sleep(0.01)
        for path, at in waiting.items():
            if not at and path.exists():
                first = (json.loads(line) for line in path.read_text().splitlines())
                waiting[path] = next((line[0] for line in first if line[1] == "assigned"), 0.0)
    return max(waiting.values())


def _until(at: float) -> None:
    sleep(max(0.0, at - monotonic()))


def _setting(value: Any) -> int:
    return value if isinstance(value, (int, bool)) else parse_duration(value, "a setting")


def _produce(address: str, topic: str, partitions: int, records: int) -> None:
    """Write the backlog, the same number of records to each partition."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "batch.num.messages": BATCH})
    for number in range(records):
        producer.produce(topic, b"a record", partition=number % partitions)
        if number % 1_000 == 0:
            producer.poll(0)
    left = producer.flush(SECONDS)
    assert left == 0, f"{left} records of the backlog were not written"
