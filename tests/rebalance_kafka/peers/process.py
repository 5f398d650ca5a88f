"""Processes of clients, as tests use them."""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

from tests.places import NODE_MODULES, ROOT, node_modules
from tests.real_kafka import versions
from tests.real_kafka.golang import built
from tests.real_kafka.jars import UnavailableError
from tests.rebalance_kafka.peers.jvm import missing_java

HERE = Path(__file__).parent
SECONDS = 120.0
LAST_LINES = 30
READY = 0

Answer: TypeAlias = dict[str, Any]
Partition: TypeAlias = tuple[str, int]

PYTHON_MODULES = {
    "kafka-python": "kafka",
    "aiokafka": "aiokafka",
    "confluent": "confluent_kafka",
    "rebalance-lab": "rebalance_kafka",
    "confluent-tool": "confluent_kafka",
}
NODE_PACKAGES = {"kafkajs": "kafkajs", "kafka-ts": "kafka-ts", "platformatic": "@platformatic/kafka"}
FRANZ_GO = "franz-go"
OLDEST_NODE = {"kafka-ts": (20,), "platformatic": (20, 19)}


class Membership(NamedTuple):
    """The partitions, the member id and the generation of a client, as far as it knows them."""

    owned: frozenset[Partition]
    member_id: str | None
    generation: int | None


class PeerError(AssertionError):
    """A peer answered with an error or did not answer."""


def missing(kind: str) -> str | None:
    """Return why a kind of peer cannot run here, None if it can."""
    client = kind.removesuffix("-tool")
    if client == "java":
        return missing_java()
    if kind == FRANZ_GO:
        try:
            command_of(kind)
        except UnavailableError as reason:
            return str(reason)
        return None
    if client not in NODE_PACKAGES:
        module = PYTHON_MODULES[kind]
        return None if find_spec(module) else f"there is no Python module {module}"
    if shutil.which("node") is None:
        return "there is no node on the PATH"
    package, oldest = NODE_PACKAGES[client], OLDEST_NODE.get(client, (0,))
    if not (node_modules() / package).is_dir():
        return f"there is no {package} in {node_modules()}, which {NODE_MODULES} names"
    if oldest > _node_version():
        return f"{package} needs Node {'.'.join(map(str, oldest))} or later"
    return None


@cache
def _node_version() -> tuple[int, ...]:
    printed = subprocess.run(["node", "--version"], capture_output=True, check=True, encoding="ascii").stdout
    return tuple(int(part) for part in printed.strip().removeprefix("v").split(".") if part.isdigit())


def available(kind: str) -> bool:
    return missing(kind) is None


def command_of(kind: str) -> list[str]:
    name = kind.replace("-", "_")
    module = name if name.endswith("_tool") else f"{name}_peer"
    if kind == FRANZ_GO:
        return [str(built(HERE / f"{module}.go", f"github.com/twmb/franz-go@{versions.FRANZ_GO}"))]
    if kind.removesuffix("-tool") in NODE_PACKAGES:
        return ["node", str(HERE / f"{module}.mjs")]
    return [sys.executable, "-m", f"{__package__}.{module}"]


class Peer:
    """A process that speaks the line protocol. The constructor sends the options and does not wait."""

    def __init__(self, kind: str, name: str, folder: Path, options: Mapping[str, Any]) -> None:
        self.kind = kind
        self.name = name
        self.stderr = folder / f"{name}.stderr"
        self._number = READY
        self._ready = False
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        with self.stderr.open("ab") as errors:
            self._process = subprocess.Popen(
                command_of(kind),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env=os.environ | {NODE_MODULES: str(node_modules())},
                encoding="utf-8",
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._send(dict(options))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def _send(self, message: Answer) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self.error(f"cannot be asked: {error}") from error

    def ready(self, timeout: float = SECONDS) -> None:
        """Wait until the client exists. It may not have joined the group yet."""
        if not self._ready:
            self._answer(READY, "start", timeout)
            self._ready = True

    def ask(self, do: str, *, timeout: float = SECONDS, **arguments: Any) -> Answer:
        """Send a command and return the answer.

        Raises:
            PeerError: if the answer is an error or does not come in time.
        """
        self.ready(timeout)
        self._number += 1
        self._send({"id": self._number, "do": do, **arguments})
        return self._answer(self._number, do, timeout)

    def _answer(self, number: int, do: str, timeout: float) -> Answer:
        try:
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise self.error(f"does not answer {do!r}") from None
        if answer is None:
            raise self.error(f"ended before it answered {do!r}")
        if "error" in answer:
            raise self.error(f"answers {do!r} with {answer['error']}")
        assert answer["id"] == number, f"{self.name} answers {answer} to number {number}"
        return answer

    def membership(self) -> Membership:
        """Return the client's own view of its membership."""
        reported = self.ask("assignment")
        return Membership(partitions(reported["assignment"]), reported["member_id"], reported["generation"])

    def close(self, timeout: float = SECONDS) -> Answer:
        """Leave the group and return the records and events that were not returned yet."""
        answer = self.ask("close", timeout=timeout)
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise self.error("does not end") from None
        if status:
            raise self.error(f"ended with {status}")
        return answer

    def kill(self) -> None:
        """Kill the process, so that it does not leave the group."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # the process died before it read everything
                    pipe.close()

    def error(self, what: str) -> PeerError:
        return PeerError(f"{self.name} ({self.kind}) {what}\n{self.last_words()}")

    def last_words(self) -> str:
        lines = self.stderr.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.kind}>"


def partitions(rows: list[list[Any]]) -> frozenset[Partition]:
    return frozenset((topic, number) for topic, number in rows)
