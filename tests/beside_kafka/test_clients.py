"""Clients of other projects live the same life in a group on a real Kafka, on `serve` and on kfake."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.beside_kafka.brokers import started
from tests.beside_kafka.steps import SHARED
from tests.real_kafka.golang import built
from tests.real_kafka.jars import or_skip
from tests.real_kafka.settings import SHORT
from tests.real_kafka.versions import FRANZ_GO, KFAKE
from tests.rebalance_kafka.peers import Peer, described, missing, stable
from tests.rebalance_kafka.peers.stage import DESCRIBING

pytestmark = [pytest.mark.kafka, pytest.mark.peer, pytest.mark.killed]

TOPIC = "t1"
EVERYTHING = [(TOPIC, number) for number in range(SHARED[TOPIC])]
TOOL = f"{DESCRIBING}-tool"
MODULES = (f"github.com/twmb/franz-go@{FRANZ_GO}", f"github.com/twmb/franz-go/pkg/kfake@{KFAKE}")
TRIES = 3
"""A difference is what each of them shows. A busy machine delays members."""

EAGER = ("kafka-python", "aiokafka", "confluent", "java", "kafkajs", "platformatic", "franz-go")
COOPERATIVE = ("kafka-python", "confluent", "java", "franz-go")
LIVES = [
    *((kind, "range") for kind in EAGER),
    *((kind, "cooperative-sticky") for kind in COOPERATIVE),
    *((kind, "uniform-848+reconcile") for kind in ("java", "franz-go")),
]


@contextmanager
def faked():
    """Run kfake, and give its address."""
    program = or_skip(lambda: built(Path(__file__).with_name("kfake.go"), *MODULES))
    pipe = subprocess.PIPE
    with subprocess.Popen([program, TOPIC], stdin=pipe, stdout=pipe, encoding="ascii") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


@pytest.fixture(scope="module")
def addresses(kafka, tmp_path_factory):
    """The addresses of the brokers."""
    folder = tmp_path_factory.mktemp("serve")
    with started(folder, SHORT, twice=False, kafka=kafka.address) as (address, serve, _), faked() as fake:
        yield {"kafka": address, "serve": serve, "kfake": fake}


def lives(address, kind, strategy, folder):
    """Let a member join, leave, join and crash beside another one, and return what is seen on the way."""
    folder.mkdir()
    seen = []
    group = f"{kind}-{strategy}-{folder.name}"
    with ExitStack() as stack:
        tool = stack.enter_context(Peer(TOOL, "tool", folder, {"bootstrap": address}))

        def joins(name):
            given = {"bootstrap": address, "group": group, "topics": [TOPIC], "strategy": strategy}
            times = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 300}
            return stack.enter_context(Peer(kind, name, folder, {**given, **times, "client_id": name}))

        def settled(*members):
            owners = stable(members, EVERYTHING, lambda: described(tool, group))
            sizes = sorted(len(mine) for mine in owners.values())
            seen.append((described(tool, group).protocol, sizes, members[0].membership().generation))

        stays = joins("stays")
        settled(stays)
        leaves = joins("leaves")
        settled(stays, leaves)
        leaves.close()
        settled(stays)
        crashes = joins("crashes")
        settled(stays, crashes)
        crashes.kill()
        settled(stays)
    return seen


@pytest.mark.parametrize(("kind", "strategy"), LIVES)
def test_a_client_lives_alike_on_all_brokers(addresses, kind, strategy, tmp_path):
    if reason := missing(kind) or missing(TOOL):
        pytest.skip(reason)
    brokers = dict(addresses)
    if strategy.endswith("+reconcile"):
        del brokers["kfake"]  # which describes the members of such a group without names of topics
    for attempt in range(TRIES):
        with ThreadPoolExecutor() as pool:
            runs = {
                name: pool.submit(lives, address, kind, strategy, tmp_path / f"{name}-{attempt}")
                for name, address in brokers.items()
            }
            seen = {name: run.result() for name, run in runs.items()}
        if seen == dict.fromkeys(brokers, seen["kafka"]):
            return
    assert seen == dict.fromkeys(brokers, seen["kafka"]), f"it differs in {TRIES} runs"
