"""One node of a real Kafka (KRaft, broker and controller in one process) on loopback."""

import asyncio
import base64
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.real_kafka.jars import HERE, classpath, tool
from tests.real_kafka.wire import answers

SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "offsets.retention.check.interval.ms": 86_400_000,
}
"""What one node needs; and empty groups are not removed while tests run."""

START_SECONDS = 180.0
STOP_SECONDS = 60.0
LOOK_SECONDS = 0.1
LAST_LINES = 30
HEAP = "-Xmx512m"


class Kafka:
    """A broker in a process of its own. It ends with the ``with`` statement.

        with Kafka(tmp_path, {"group.min.session.timeout.ms": 1000}) as kafka:
            AdminClient({"bootstrap.servers": kafka.address})

    ``folder`` gets its data, its settings and its ``log``; the data are removed at the end. ``settings`` are
    added to `SETTINGS`. ``copy_of``: a broker that is stopped, whose data this one begins with.

    Raises:
        UnavailableError: on entry, if Java or the jars are missing.
        RuntimeError: on entry, if it does not answer; with the last lines of its log.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, object] | None = None, *, copy_of: Self | None = None
    ) -> None:
        self._folder, self._settings, self._copy_of = folder, settings or {}, copy_of
        self.log = folder / "log"
        self._data, self._file = folder / "data", folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> Self:
        port, controller = _free_ports()
        self.address = f"127.0.0.1:{port}"
        own = {
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self._data,
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = (f"{name}={value}\n" for name, value in {**SETTINGS, **own, **self._settings}.items())
        self._file.write_text("".join(lines))
        if self._copy_of is None:
            self._format()
        else:
            shutil.copytree(self._copy_of._data, self._data)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._data, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None, "it is stopped"
        return self._process.pid

    def _format(self) -> None:
        # An id that began with - would be an option.
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._file))
        with self.log.open("ab") as log:
            done = subprocess.run(command, stdout=log, stderr=log, timeout=START_SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(self._failed("cannot format its storage"))

    def start(self) -> None:
        """Start the process, and wait until group and transaction coordinators answer."""
        with self.log.open("ab") as log:
            command = self._java("kafka.Kafka", str(self._file))
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + START_SECONDS
        while not asyncio.run(answers(self.address)):
            if self._process.poll() is not None:
                raise RuntimeError(self._failed(f"ended with status {self._process.returncode}"))
            if time.monotonic() > end:
                self.stop()
                raise RuntimeError(self._failed(f"does not answer after {START_SECONDS:.0f} s"))
            time.sleep(LOOK_SECONDS)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process and wait for its end. `start` starts it again with its data, on the same port."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _java(self, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        return [tool("java"), HEAP, "-XX:+UseSerialGC", logging, "-cp", classpath(), *arguments]

    def _failed(self, what: str) -> str:
        last = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return os.linesep.join([f"Kafka {what}. The log is {self.log}; its last lines:", *last])


def _free_ports() -> tuple[int, int]:
    """Return two ports that nothing listens on."""
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
