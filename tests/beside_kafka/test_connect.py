"""Two workers of Kafka Connect share the tasks of a connector on a real Kafka and on `serve`."""

import asyncio
import json
import re
import socket
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.beside_kafka.brokers import started
from tests.real_kafka.broker import HEAP
from tests.real_kafka.jars import classpath, or_skip, tool
from tests.real_kafka.settings import SHORT
from tests.real_kafka.wire import Key, ask
from tests.rebalance_kafka.peers import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.killed]

GROUP, TASKS = "connected", 4
STORED = ("offset", "config", "status")
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
SETTINGS = {
    "group.id": GROUP,
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "plugin.discovery": "service_load",
    "heartbeat.interval.ms": 1_000,
    "session.timeout.ms": 10_000,
    "scheduled.rebalance.max.delay.ms": 1_000,
    **{f"{kind}.storage.topic": f"{GROUP}-{kind}" for kind in STORED},
    **{f"{kind}.storage.replication.factor": 1 for kind in STORED},
}


class Worker:
    """A process of a worker, and its REST interface."""

    def __init__(self, name: str, address: str, plugins: Path, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.place = f"127.0.0.1:{free.getsockname()[1]}"
        self.log, file = folder / f"{name}.log", folder / f"{name}.properties"
        own = {"bootstrap.servers": address, "listeners": f"http://{self.place}"}
        file.write_text("".join(f"{name}={value}\n" for name, value in {**SETTINGS, **own}.items()))
        options = [HEAP, "-XX:+UseSerialGC", "-Dlog4j2.level=INFO", "-cp", classpath(plugins)]
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [tool("java"), *options, main, str(file)], stdout=log, stderr=log
            )

    def rest(self, path: str, body: object = None) -> object:
        """Return the answer to a request, None as long as there is no good one."""
        assert self._process.poll() is None, self.log.read_text()[-2_000:]
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://{self.place}{path}", data, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except (URLError, OSError):
            return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """A folder with the connector."""
    folder = tmp_path_factory.mktemp("plugins")
    javac = or_skip(lambda: Path(tool("javac")))
    source = Path(__file__).with_name("Idle.java")
    subprocess.run([javac, "-cp", or_skip(lambda: Path(classpath())), "-d", folder, source], check=True)
    named = folder / "META-INF" / "services" / "org.apache.kafka.connect.source.SourceConnector"
    named.parent.mkdir(parents=True)
    named.write_text("Idle\n")
    return folder


def tasks_of(worker):
    """Return how many running tasks each worker has."""
    status = worker.rest("/connectors/idle/status") or {"tasks": []}
    return Counter(task["worker_id"] for task in status["tasks"] if task["state"] == "RUNNING")


def described(address):
    """Return the group as the broker describes it: the state, the protocol, and the number of members."""
    asked = {"groups": [GROUP], "include_authorized_operations": False}
    (group,) = asyncio.run(ask(address, Key.DESCRIBE_GROUPS, 5, asked))["groups"]
    kind = group["group_state"], group["protocol_type"], group["protocol_data"]
    return *kind, len(group["members"])


def lives(address, plugins, folder):
    """Let a group of two workers share tasks, kill one, and return what is seen on the way."""
    folder.mkdir()
    seen = []
    with ExitStack() as stack:

        def worker(name):
            made = Worker(name, address, plugins, folder)
            stack.callback(made.kill)
            wait_until(lambda: made.rest("/connectors") is not None, what="that the worker answers")
            return made

        def settled(*tasks):
            wait_until(lambda: sorted(tasks_of(kept).values()) == list(tasks), what=f"that tasks are {tasks}")
            seen.append(wait_until(lambda: "Stable" in (found := described(address)) and found))

        lost, kept = worker("lost"), worker("kept")
        wait_until(lambda: described(address)[-1] == 2, what="that both workers are members")
        config = {"connector.class": "Idle", "tasks.max": str(TASKS), "topic": "unused"}
        wait_until(lambda: kept.rest("/connectors", {"name": "idle", "config": config}), what="a connector")
        settled(2, 2)
        lost.kill()
        settled(TASKS)
        seen.append(re.findall(r"Joined group at generation (\d+)", kept.log.read_text()))
    return seen


def test_workers_of_connect_share_tasks_alike_on_both_brokers(kafka, plugins, tmp_path):
    with started(tmp_path, SHORT, twice=False, kafka=kafka.address) as (address, serve, _):
        of_kafka = lives(address, plugins, tmp_path / "on-kafka")
        assert lives(serve, plugins, tmp_path / "on-serve") == of_kafka
