"""Kafka's command line tools and Java's Admin print the same of a real Kafka and of `serve`."""

import re
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.beside_kafka.brokers import started
from tests.beside_kafka.steps import SHARED
from tests.real_kafka.jars import jars_or_skip
from tests.real_kafka.settings import LONG
from tests.real_kafka.versions import NEWEST, chosen
from tests.rebalance_kafka.peers import Peer, missing, wait_until

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(bool(missing("java-tool")), reason=missing("java-tool") or "it is there"),
]

SECONDS = 120.0
GROUPS = "consumer.group.ConsumerGroupCommand"
OF_GROUPS = """
--list
--list --state
--list --state stable
--list --type --state
--list --type classic
--describe --all-groups
--describe --all-groups --offsets --verbose
--describe --all-groups --members
--describe --all-groups --members --verbose
--describe --all-groups --state
--describe --all-groups --state --verbose
--describe --group nobody
--describe --group nobody --members
--describe --group nobody --state
--reset-offsets --group classic --topic t1 --to-earliest --dry-run
--reset-offsets --group consumer --topic t1 --to-earliest --execute
--reset-offsets --group nobody --topic t1 --to-earliest --dry-run
--reset-offsets --group nobody --topic none --to-earliest --execute
--reset-offsets --group empty --topic t1:0,1 --to-earliest --dry-run
--reset-offsets --group empty --all-topics --shift-by 1 --execute
--reset-offsets --group empty --all-topics --to-latest --execute
--reset-offsets --group empty --all-topics --to-current --export
--reset-offsets --group empty --topic t1 --to-offset 99 --execute
--reset-offsets --group empty --topic t1 --by-duration PT0S --execute
--reset-offsets --group empty --topic t1 --by-duration P1D --execute
--describe --group empty
--delete-offsets --group empty --topic t2
--delete-offsets --group empty --topic t1:0,7
--delete-offsets --group classic --topic t1
--delete-offsets --group consumer --topic t1
--delete-offsets --group consumer --topic t3
--delete-offsets --group nobody --topic t1
--describe --group empty --offsets
--delete --group classic --group consumer --group nobody
--delete --group empty
--delete --all-groups
--list --type
"""
OTHERS = """
GroupsCommand --list
GroupsCommand --list --consumer
GroupsCommand --list --group-type consumer
GroupsCommand --list --protocol consumer
GroupsCommand --list --share
TopicCommand --list --exclude-internal
TopicCommand --create --topic t4 --partitions 2 --config retention.ms=1000
TopicCommand --create --topic t5 --partitions 2 --config retention.ms=often
TopicCommand --create --topic t.5
TopicCommand --alter --topic t4 --partitions 3
TopicCommand --delete --topic t4
TopicCommand --delete --topic t4
TopicCommand --describe --topic none
ConfigCommand --describe --entity-type groups --entity-name empty
ConfigCommand --alter --entity-type groups --entity-name empty --add-config consumer.session.timeout.ms=5000
GetOffsetShell --topic t1
GetOffsetShell --topic-partitions t1:0-2 --time earliest
GetOffsetShell --topic-partitions t1:0-2 --time max-timestamp
"""
OF_ADMIN = [
    ("listGroups",),
    ("listConsumerGroups",),
    ("describeConsumerGroups", ["consumer", "classic", "empty"]),
    ("describeConsumerGroups", ["nobody"]),
    ("describeClassicGroups", ["classic", "empty"]),
    ("describeClassicGroups", ["consumer"]),
    ("listConsumerGroupOffsets", "consumer"),
    ("listConsumerGroupOffsets", "nobody"),
]
MASKED = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"(?<![\w+/-])[\w+/-]{22}(?![\w+/-])", "ID"),
    (r"127\.0\.0\.1:\d{5}", "BROKER"),
    (r"(?m)^\tat .*\n", ""),
]


@contextmanager
def with_groups(address):
    """Run a classic and a consumer group, and commit offsets of a third one."""
    base = {"bootstrap.servers": address, "enable.auto.commit": False, "log_level": 0}
    base["max.poll.interval.ms"] = 3_600_000  # nothing polls while tools run
    classic = {"partition.assignment.strategy": "range", "session.timeout.ms": 60_000}
    consumer = {"group.protocol": "consumer", "group.remote.assignor": "range"}
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    began_ms = round(time.time() * 1_000) - 1_000
    for number in range(24):
        producer.produce("t1", b"record", partition=number % SHARED["t1"], timestamp=began_ms + number)
    assert producer.flush(SECONDS) == 0
    members = []
    with ExitStack() as stack:
        for group, settings in (("classic", classic), ("consumer", consumer)):
            for name in ("a", "b"):
                own = {"group.id": group, "client.id": name, "group.instance.id": name}
                member = confluent_kafka.Consumer({**base, **settings, **own})
                stack.callback(member.close)
                member.subscribe(["t1"])
                members.append(member)
        wait_until(lambda: polled(members) == [3, 3, 3, 3], what="that both groups have their partitions")
        for member in members:
            at = [
                confluent_kafka.TopicPartition(tp.topic, tp.partition, tp.partition // 2, "text")
                for tp in member.assignment()
            ]
            member.commit(offsets=at, asynchronous=False)
        with_offsets = confluent_kafka.Consumer({**base, "group.id": "empty"})
        at = [confluent_kafka.TopicPartition(t, p, 1) for t, p in (("t1", 0), ("t1", 1), ("t2", 0))]
        with_offsets.commit(offsets=at, asynchronous=False)
        with_offsets.close()
        yield


def polled(members):
    for member in members:
        member.poll(0.05)
    return [len(member.assignment()) for member in members]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """A JVM for each broker, where the groups are."""
    jars_or_skip()
    if chosen() != NEWEST:
        pytest.skip(f"the classes of the tools are those of {NEWEST}")
    folder = tmp_path_factory.mktemp("tools")
    with ExitStack() as stack:
        *addresses, _ = stack.enter_context(started(folder, LONG, twice=False))
        for address in addresses:
            stack.enter_context(with_groups(address))
        yield [
            stack.enter_context(Peer("java-tool", name, folder, {"bootstrap": address}))
            for name, address in zip(("of-kafka", "of-serve"), addresses, strict=True)
        ]


def masked(printed):
    """Leave out what differs from run to run."""
    for pattern, mask in MASKED:
        printed = re.sub(pattern, mask, printed)
    return printed


@pytest.mark.parametrize("call", OF_ADMIN, ids=str)
def test_admin_returns_the_same_of_both_brokers(tools, call):
    method, *arguments = call
    printed = [tool.ask("admin", method=method, arguments=arguments)["printed"] for tool in tools]
    # Maps and sets have no order.
    of_kafka, of_serve = (sorted(re.findall(r"[^\s,=(){}]+", masked(text))) for text in printed)
    assert of_serve == of_kafka


@pytest.mark.parametrize(
    "command",
    [*OTHERS.strip().splitlines(), *(f"{GROUPS} {line}" for line in OF_GROUPS.strip().splitlines())],
)
def test_tools_print_the_same_of_both_brokers(tools, command):
    name, *arguments = command.split()
    printed = [tool.ask("run", tool=name, arguments=arguments)["printed"] for tool in tools]
    of_kafka, of_serve = (sorted(masked(text).splitlines()) for text in printed)
    assert of_serve == of_kafka
    assert "\n" in printed[0], "it prints something"
