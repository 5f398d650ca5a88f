"""A scenario on real clients: a process for each member, and events at their times."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import msgspec

from coordinator_core.reading.durations import parse_duration
from tests.calibration.actions import Action, actions_of, duration_of
from tests.calibration.brokers import Place, serve, watch
from tests.calibration.cells import OF_BROKER, RECONCILED
from tests.calibration.lines import ACTIONS, STATES, Observed, beginning, log_of, observed_in, starts_of
from tests.calibration.member import Log, Options, prefer, prefer_itself, prefer_no_longer

ROOT = Path(__file__).parents[2]
SECONDS = 120.0
BATCH = 20
"""Records in a batch of the backlog. A client fetches few of them at once, and changes partitions often."""


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


def run(
    document: Mapping[str, Any],
    kind: str,
    strategy: str,
    folder: Path,
    place: Place = serve,
    *,
    seed: int = 0,
    verbose: bool = False,
) -> Observed:
    """Run a scenario on real clients of one kind. All lines are written to the folder."""
    config = dict(document["config"])
    broker = {name: _setting(config.pop(name)) for name in list(config) if name.startswith("group.")}
    (described,) = document["topics"].values()
    name = uuid4().hex
    """Of the topic and the group, which no other run on the same broker has."""
    work = document["members"][0]
    actions = actions_of(document)
    with ExitStack() as stack:
        address, pid = stack.enter_context(place(broker))
        stack.callback(create(address, name, described["partitions"]))
        _produce(address, name, described["partitions"], described["backlog"])
        _commit(address, name, described["partitions"])

        def made(start: Action, number: int) -> Process:
            options = Options(
                kind=kind,
                bootstrap=address,
                group=name,
                topics=[name],
                strategy=RECONCILED if start.protocol == "consumer" else strategy,
                name=start.member,
                log=str(log_of(folder, start, number)),
                seed=seed * 1_000 + number,
                record_seconds=1 / work["process_rate"],
                record_cv=work.get("record_cv", 1.0),
                settings=_settings_of(start, config),
                initial=start.kind == "start",
                verbose=verbose,
            )
            process = Process(options, folder / f"{start.member}.{number}.stderr")
            stack.callback(process.end)
            return process

        processes = {start: made(start, number) for number, start in enumerate(starts_of(actions))}
        for process in processes.values():
            process.ready()
        ended = Event()
        watching = Thread(target=watch, args=(address, name, Log(str(folder / STATES)), ended))
        prefer(pid)
        prefer_itself()
        watching.start()
        try:
            _carry_out(document, actions, processes, folder)
        finally:
            ended.set()
            watching.join()
            prefer_no_longer()
    return observed_in(folder, document)


def _carry_out(
    document: Mapping[str, Any], actions: list[Action], processes: Mapping[Action, Process], folder: Path
) -> None:
    """Start the initial members, wait until the group rests, and do everything else at its time."""
    current: dict[str, Process] = {}
    later = [action for action in actions if action.kind != "start"]
    for action in actions:
        if action.kind == "start":
            current[action.member] = processes[action]
            current[action.member].do("go")
    until = monotonic() + SECONDS
    while (began := beginning(folder, document)) is None:
        assert monotonic() < until, "the group did not come to rest"
        sleep(0.01)
    log = Log(str(folder / ACTIONS))
    for action in later:
        _until(began + action.at)
        current[action.member] = processes.get(action) or current[action.member]
        current[action.member].do(action.do)
        log.write(action.do, action.member)
    _until(began + duration_of(document))


def _until(at: float) -> None:
    sleep(max(0.0, at - monotonic()))


def _settings_of(start: Action, config: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings of a process: under the consumer protocol some are the brokers'."""
    left = OF_BROKER if start.protocol == "consumer" else ()
    return {key: _setting(value) for key, value in config.items() if key not in left}


def _setting(value: Any) -> int:
    return value if isinstance(value, (int, bool)) else parse_duration(value, "a setting")


def create(address: str, topic: str, partitions: int) -> Callable[[], Any]:
    """Create a topic, and return what deletes it."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    return lambda: admin.delete_topics([topic])[topic].result()


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


def _commit(address: str, name: str, partitions: int) -> None:
    """Commit the first offset of each partition, as if the group had run before.

    librdkafka waits for 100 ms before it requests the first offset of a partition without a commit. Meanwhile
    its queue fills with all the records of others.
    """
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": name})
    offsets = [TopicPartition(name, number, 0) for number in range(partitions)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
