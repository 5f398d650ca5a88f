"""Groups of the consumer protocol (KIP-848) with confluent-kafka, and with our Consumer beside it."""

import asyncio
import time
from contextlib import ExitStack, contextmanager

import pytest

from rebalance_kafka import Consumer
from rebalance_kafka.broker.background import BackgroundBroker
from rebalance_lab.traces.invariants import check_trace
from tests.rebalance_kafka.peers import Peer, missing
from tests.rebalance_kafka.served import Served, serving

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")

pytestmark = [pytest.mark.peer, pytest.mark.slow]

ENOUGH_SECONDS = 120.0
TOPIC, PARTITIONS = "orders", 6
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.session.timeout.ms": 10_000,  # longer than a busy machine delays heartbeats
}


class Theirs:
    """A member of confluent-kafka."""

    def __init__(self, address, name, *, topics=(TOPIC,), **settings):
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "g",
                "client.id": name,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        self.consumer.subscribe(list(topics))
        self.values = []

    def poll(self):
        message = self.consumer.poll(0.02)
        if message is not None and not message.error():
            self.values.append(int(message.value()))

    @property
    def owned(self):
        return {(tp.topic, tp.partition) for tp in self.consumer.assignment()}

    def commit(self, partition, offset):
        wanted = [confluent_kafka.TopicPartition(TOPIC, partition, offset)]
        (committed,) = self.consumer.commit(offsets=wanted, asynchronous=False)
        assert committed.error is None

    def committed(self, partition):
        """The client has no answer while a rebalance waits for polls."""
        until = time.monotonic() + ENOUGH_SECONDS
        while True:
            try:
                places = [confluent_kafka.TopicPartition(TOPIC, partition)]
                (found,) = self.consumer.committed(places, timeout=5)
            except confluent_kafka.KafkaException:
                assert time.monotonic() < until
                self.poll()
            else:
                return found.offset

    def close(self):
        self.consumer.close()


class Ours:
    """A member of our own, on an event loop of its own that runs while it is polled."""

    def __init__(self, address, name, **options):
        settings = {"client.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        settings |= options.pop("settings", {})
        options = {"group_id": "g", "protocol": "consumer", **options}
        self.loop = asyncio.new_event_loop()
        self.consumer = Consumer(TOPIC, bootstrap_servers=address, settings=settings, **options)
        self.loop.run_until_complete(self.consumer.start())
        self.values = []

    def poll(self):
        records = self.loop.run_until_complete(self.consumer.poll(0.02))
        self.values += [int(record.value) for record in records]

    @property
    def owned(self):
        return set(self.consumer.assignment)

    def close(self):
        self.loop.run_until_complete(self.consumer.close())
        self.loop.close()


class Java:
    """A member of Kafka's Java client, which polls in a process of its own."""

    def __init__(self, address, name, folder, *, assignor="range"):
        options = {"bootstrap": address, "group": "g", "topics": [TOPIC], "client_id": name}
        self.peer = Peer("java", name, folder, {**options, "strategy": f"{assignor}-848+reconcile"})
        self.values = []

    def poll(self):
        self.values += [int(value) for *_, value in self.peer.ask("records")["records"]]

    @property
    def owned(self):
        return set(self.peer.membership().owned)

    def close(self):
        self.peer.close(ENOUGH_SECONDS)
        self.peer.kill()


def share(*members, partitions=PARTITIONS):
    """Poll members until each has its part of all partitions, as even as can be."""
    fewest, more = divmod(partitions, len(members))
    wanted = sorted(fewest + (n < more) for n in range(len(members)))
    until = time.monotonic() + ENOUGH_SECONDS
    while True:
        owned = [member.owned for member in members]
        if sorted(map(len, owned)) == wanted and len(set().union(*owned)) == partitions:
            return owned
        assert time.monotonic() < until, owned
        for member in members:
            member.poll()


def produce(address, count):
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(ENOUGH_SECONDS) == 0


def read_all(*members, closed, count=60):
    """Poll members until they, and those that are closed, have read all records."""
    until = time.monotonic() + ENOUGH_SECONDS
    while {value for member in (*members, *closed) for value in member.values} != set(range(count)):
        assert time.monotonic() < until
        for member in members:
            member.poll()


def described(address, group="g"):
    client = admin.AdminClient({"bootstrap.servers": address})  # its requests end with it
    return client.describe_consumer_groups([group])[group].result(ENOUGH_SECONDS)


@contextmanager
def closed(*members):
    """Close members at the end that are not closed yet."""
    with ExitStack() as stack:
        for member in members:
            stack.callback(member.close)
        yield members


@pytest.fixture
def broker():
    with BackgroundBroker({TOPIC: PARTITIONS, "payments": 2}, settings=SETTINGS) as broker:
        yield broker


def test_three_members_share_a_topic_and_two_go_on_when_one_leaves(broker):
    produce(broker.address, 60)
    names = ("a", "b", "c")
    members = [Theirs(broker.address, name) for name in names]
    share(*members)
    group = described(broker.address)
    assert (group.state, group.type, group.partition_assignor) == (
        confluent_kafka.ConsumerGroupState.STABLE,
        confluent_kafka.ConsumerGroupType.CONSUMER,
        "uniform",
    )
    shown = {
        m.client_id: {(tp.topic, tp.partition) for tp in m.assignment.topic_partitions} for m in group.members
    }
    assert shown == {name: member.owned for name, member in zip(names, members, strict=True)}
    before = [member.owned for member in members[:2]]
    members.pop().close()
    after = share(*members)
    assert all(kept <= owned for kept, owned in zip(before, after, strict=True))
    until = time.monotonic() + ENOUGH_SECONDS
    while len({value for member in members for value in member.values}) < 40 and time.monotonic() < until:
        for member in members:
            member.poll()
    with closed(*members):
        partition = min(members[0].owned)[1]
        members[0].commit(partition, 4)
        assert members[0].committed(partition) == 4
    assert described(broker.address).state is confluent_kafka.ConsumerGroupState.EMPTY
    trace = broker.trace("g")
    assert (trace.started.protocol, trace.started.own_epochs) == ("reconcile", True)


def test_our_consumer_shares_a_group_with_confluent_kafka(broker):
    """Each of them leads to the same shares, reads its records, and gives up what the other is to have."""
    produce(broker.address, 60)
    ours = Ours(broker.address, "ours", strategy="range")
    share(ours)
    theirs = Theirs(broker.address, "theirs", **{"group.remote.assignor": "range"})
    third = Ours(broker.address, "third", strategy="range")
    share(ours, theirs, third)
    assert described(broker.address).partition_assignor == "range"
    ours.close()
    share(theirs, third)
    with closed(theirs, third):
        read_all(theirs, third, closed=[ours])


@pytest.mark.skipif(missing("java") is not None, reason=missing("java") or "it is there")
def test_the_java_client_shares_a_group_with_confluent_kafka_and_our_consumer(broker, tmp_path):
    produce(broker.address, 60)
    java = Java(broker.address, "java", tmp_path)
    share(java)
    theirs = Theirs(broker.address, "theirs", **{"group.remote.assignor": "range"})
    ours = Ours(broker.address, "ours", strategy="range")
    share(java, theirs, ours)
    assert described(broker.address).partition_assignor == "range"
    theirs.close()
    share(java, ours)
    with closed(java, ours):
        read_all(java, ours, closed=[theirs])


CLASSIC = {"group.protocol": "classic", "session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}


def kinds(address, *groups):
    return [described(address, group).type for group in groups]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_of_clients_goes_to_the_consumer_protocol_and_back(broker, strategy):
    """PROTOCOL 11.9, with members of both libraries and of both protocols in one group."""
    kind = confluent_kafka.ConsumerGroupType
    produce(broker.address, 60)
    settings = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
    ours = Ours(broker.address, "ours", protocol="classic", strategy=strategy, settings=settings)
    share(ours)  # it leads
    old = Theirs(broker.address, "old", **{"partition.assignment.strategy": strategy}, **CLASSIC)
    share(old, ours)
    assert kinds(broker.address, "g") == [kind.CLASSIC]
    new = Theirs(broker.address, "new")
    share(old, ours, new)
    assert kinds(broker.address, "g") == [kind.CONSUMER]
    old.close()
    share(ours, new)
    new.close()
    share(ours)
    assert kinds(broker.address, "g") == [kind.CLASSIC]
    with closed(ours):
        read_all(ours, closed=[old, new])
    recorded = broker.trace("g")
    assert recorded.protocol == "migration"
    assert check_trace(recorded) == []


@pytest.fixture(params=["serve", pytest.param("kafka", marks=pytest.mark.kafka)])
def address(request):
    """The address of a broker of either kind."""
    return request.getfixturevalue("broker" if request.param == "serve" else "kafka").address


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_led_by_librdkafka_under_cooperative_sticky_is_not_upgraded(address, strategy):
    """The leader puts the user data of subscriptions into the assignments, which the upgrade would lose."""
    name = f"led-by-librdkafka-{strategy}"
    options = {"topics": (name,), "group.id": name}
    client = admin.AdminClient({"bootstrap.servers": address})  # its requests end with it
    client.create_topics([admin.NewTopic(name, PARTITIONS, 1)])[name].result(ENOUGH_SECONDS)
    classic = {**options, **CLASSIC, "partition.assignment.strategy": strategy}
    first = Theirs(address, "first", **classic)
    share(first)  # in the next round it has user data
    second = Theirs(address, "second", **classic)
    share(first, second)
    new = Theirs(address, "new", **options)
    with closed(first, second, new):
        if strategy == "range":
            share(first, second, new)
            return
        message = new.consumer.poll(ENOUGH_SECONDS)
        assert message.error().code() == confluent_kafka.KafkaError._FATAL
        assert "The group id does not exist" in message.error().str()


def test_a_broker_that_is_killed_and_started_again_goes_on_with_the_epochs(tmp_path):
    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    with Served("--data-dir", tmp_path, "--topic", f"{TOPIC}={PARTITIONS}", *options) as served:
        address = served.address()
        theirs, ours = Theirs(address, "theirs"), Ours(address, "ours")
        before = share(theirs, ours)
        epoch = ours.consumer.generation
        theirs.commit(min(before[0])[1], 3)
        served.kill()
    with serving(tmp_path, address, options) as served:
        assert served.address() == address
        until = time.monotonic() + ENOUGH_SECONDS
        while described(address).state is not confluent_kafka.ConsumerGroupState.STABLE:
            assert time.monotonic() < until
            for member in (theirs, ours):
                member.poll()
        third = Theirs(address, "third")
        share(theirs, ours, third)
        with closed(theirs, ours, third):
            while ours.consumer.generation <= epoch:  # its part may be the same in the new epoch
                assert time.monotonic() < until
                ours.poll()
            assert theirs.committed(min(before[0])[1]) == 3
