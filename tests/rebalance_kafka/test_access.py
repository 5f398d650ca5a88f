"""What users may do with topics and groups, request by request, and what clients report of a refusal."""

import asyncio
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import RebalanceLabError
from rebalance_kafka.access import Acl, Kind, Operation, access_of
from rebalance_kafka.wire.apis import VERSIONS, Api
from tests.rebalance_kafka.damage import REQUESTS, TOPIC
from tests.rebalance_kafka.live import BY_NAME, broker, member, polled, run
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import Line
from tests.rebalance_kafka.test_consumer_groups import Member, closed, serving

SECONDS = 60.0
USERS = {"root": "all of it", "ada": "a secret", "eve": "another"}
ACLS = (
    "root:all:topic:*",
    "root:all:group:*",
    "ada:read:topic:open",
    "ada:write:topic:open",
    "ada:read:group:ours",
    "eve:describe:topic:open",
)
GROUP, TOPIC_ERROR = Wire.group_authorization_failed, Wire.topic_authorization_failed
ID_ERROR = Wire.transactional_id_authorization_failed


# --- the lists


def acl(text):
    return Acl.of(text, "acls")


@pytest.mark.parametrize(
    ("text", "operation", "name", "allowed"),
    [
        ("ada:read:topic:t", Operation.READ, "t", True),
        ("ada:read:topic:t", Operation.READ, "tt", False),
        ("ada:read:topic:t*", Operation.READ, "tt", True),
        ("ada:read:topic:*", Operation.READ, "any", True),
        ("ada:read:topic:t", Operation.WRITE, "t", False),
        ("ada:read:topic:t", Operation.DESCRIBE, "t", True),
        ("ada:create:topic:t", Operation.DESCRIBE, "t", False),
        ("ada:describe:topic:t", Operation.READ, "t", False),
        ("ada:alter_configs:topic:t", Operation.DESCRIBE_CONFIGS, "t", True),
        ("ada:all:topic:t", Operation.DELETE, "t", True),
        ("ada:all:group:t", Operation.READ, "t", False),
        ("*:read:topic:t", Operation.READ, "t", True),
        ("eve:read:topic:t", Operation.READ, "t", False),
    ],
)
def test_an_entry_allows_a_user_an_operation_on_a_name(text, operation, name, allowed):
    assert access_of("ada", [acl(text)]).topic(operation, name) is allowed


def test_a_name_may_contain_colons():
    assert acl("ada:read:group:a:b") == ("ada", Operation.READ, Kind.GROUP, "a:b")


def test_a_producer_id_needs_a_topic_to_write_to():
    assert access_of("ada", [acl("ada:write:topic:t*")]).some_topic(Operation.WRITE)
    assert not access_of("ada", [acl("ada:read:topic:t")]).some_topic(Operation.WRITE)


# --- request by request


def error_codes(values):
    """Yield the error codes of a response, those of its parts too."""
    for name, value in vars(values).items():
        if name in ("error_code", "partition_error_code"):
            yield value
        for element in value if isinstance(value, tuple) else ():
            if isinstance(element, SimpleNamespace):
                yield from error_codes(element)


REFUSALS = {
    Api.PRODUCE: {TOPIC_ERROR},
    Api.FETCH: {Wire.none, TOPIC_ERROR},
    Api.LIST_OFFSETS: {TOPIC_ERROR},
    Api.METADATA: {Wire.none, TOPIC_ERROR},
    Api.OFFSET_COMMIT: {GROUP},
    Api.OFFSET_FETCH: {GROUP},
    Api.FIND_COORDINATOR: {GROUP},
    Api.JOIN_GROUP: {GROUP},
    Api.HEARTBEAT: {GROUP},
    Api.LEAVE_GROUP: {GROUP},
    Api.SYNC_GROUP: {GROUP},
    Api.DESCRIBE_GROUPS: {GROUP},
    Api.LIST_GROUPS: {Wire.none},
    Api.SASL_HANDSHAKE: {Wire.illegal_sasl_state},
    Api.API_VERSIONS: {Wire.none},
    Api.CREATE_TOPICS: {TOPIC_ERROR},
    Api.DELETE_TOPICS: {TOPIC_ERROR},
    Api.DELETE_RECORDS: {TOPIC_ERROR},
    Api.INIT_PRODUCER_ID: {Wire.cluster_authorization_failed},
    Api.OFFSET_FOR_LEADER_EPOCH: {TOPIC_ERROR},
    Api.ADD_PARTITIONS_TO_TXN: {Wire.cluster_authorization_failed},
    Api.ADD_OFFSETS_TO_TXN: {ID_ERROR},
    Api.END_TXN: {ID_ERROR},
    Api.TXN_OFFSET_COMMIT: {GROUP},
    Api.DESCRIBE_CONFIGS: {TOPIC_ERROR},
    Api.ALTER_CONFIGS: {TOPIC_ERROR},
    Api.SASL_AUTHENTICATE: {Wire.illegal_sasl_state},
    Api.CREATE_PARTITIONS: {TOPIC_ERROR},
    Api.DELETE_GROUPS: {GROUP},
    Api.INCREMENTAL_ALTER_CONFIGS: {TOPIC_ERROR},
    Api.OFFSET_DELETE: {GROUP},
    Api.DESCRIBE_CLUSTER: {Wire.none},
    Api.DESCRIBE_TRANSACTIONS: {ID_ERROR},
    Api.LIST_TRANSACTIONS: {Wire.none},
    Api.CONSUMER_GROUP_HEARTBEAT: {GROUP},
    Api.CONSUMER_GROUP_DESCRIBE: {GROUP},
}


NAMED = {Api.FETCH: BY_NAME, Api.PRODUCE: BY_NAME, Api.OFFSET_COMMIT: 9, Api.OFFSET_FETCH: 9}
NAMED |= {Api.TXN_OFFSET_COMMIT: 5}
"""The highest versions in which topics have names."""


def test_a_user_without_an_entry_is_refused_in_every_api():
    async def work():
        async with broker({TOPIC: 1}, acls=["root:all:topic:*"]) as kafka:
            line = await Line.to(kafka.address)
            found = {}
            for api, (_, version) in VERSIONS.items():
                version = min(version, NAMED.get(api, version))
                found[api] = set(error_codes(await line.ask(api, version, **REQUESTS[api])))
            assert found == REFUSALS
            assert kafka.topics == {TOPIC: 1}
            await line.close()

    run(work())


TWO = ("open", "closed")
ALLOWED = ("*:all:topic:open", "*:all:group:ours", "*:write:transactional_id:tx")


def committed(topic):
    return {
        "name": topic,
        "partitions": (
            {
                "partition_index": 0,
                "committed_offset": 3,
                "committed_leader_epoch": 0,
                "committed_metadata": "",
            },
        ),
    }


def test_a_refused_topic_does_not_affect_the_others():
    async def work():
        async with broker(dict.fromkeys(TWO, 1), acls=ALLOWED) as kafka:
            line = await Line.to(kafka.address)

            async def errors(api, version, **values):
                answer = await line.ask(api, version, **values)
                return {
                    topic.name: part.error_code
                    for topic in (answer.responses if api is Api.PRODUCE else answer.topics)
                    for part in (topic.partition_responses if api is Api.PRODUCE else topic.partitions)
                }

            expected = {"open": Wire.none, "closed": TOPIC_ERROR}
            rows = ({"index": 0, "records": batch(b"one")},)
            data = tuple({"name": topic, "partition_data": rows} for topic in TWO)
            assert await errors(Api.PRODUCE, 9, topic_data=data) == expected
            offsets = tuple(map(committed, TWO))
            ours = {"group_id": "ours"}
            assert await errors(Api.OFFSET_COMMIT, 8, topics=offsets, **ours) == expected
            in_transaction = await errors(Api.TXN_OFFSET_COMMIT, 3, topics=offsets, **ours)
            assert in_transaction == {"open": Wire.invalid_producer_id_mapping, "closed": TOPIC_ERROR}
            other = ours | {"transactional_id": "other"}
            in_transaction = await errors(Api.TXN_OFFSET_COMMIT, 3, topics=offsets, **other)
            assert in_transaction == dict.fromkeys(TWO, ID_ERROR)
            wanted = tuple({"name": topic, "partition_indexes": (0,)} for topic in TWO)
            assert await errors(Api.OFFSET_FETCH, 7, topics=wanted, **ours) == expected
            every = await errors(Api.OFFSET_FETCH, 7, topics=None, **ours)
            assert every == {"open": Wire.none}
            rows = ({"partition_index": 0, "timestamp": -1},)
            times = tuple({"name": topic, "partitions": rows} for topic in TWO)
            assert await errors(Api.LIST_OFFSETS, 7, topics=times) == expected
            metadata = await line.ask(Api.METADATA, 9, topics=None)
            assert [topic.name for topic in metadata.topics] == ["open"]
            await line.close()

    run(work())


def test_a_refused_group_does_not_affect_the_others():
    async def work():
        async with broker({"open": 1}, acls=["*:all:group:ours", "*:read:topic:open"]) as kafka:
            line = await Line.to(kafka.address)
            await line.ask(Api.OFFSET_COMMIT, 8, group_id="ours", topics=(committed("open"),))
            listed = await line.ask(Api.LIST_GROUPS, 5, states_filter=(), types_filter=())
            assert [group.group_id for group in listed.groups] == ["ours"]
            described = await line.ask(Api.DESCRIBE_GROUPS, 5, groups=("theirs", "ours"))
            errors = {group.group_id: group.error_code for group in described.groups}
            assert errors == {"ours": Wire.none, "theirs": GROUP}
            wanted = tuple({"group_id": group, "topics": None} for group in ("theirs", "ours"))
            fetched = await line.ask(Api.OFFSET_FETCH, 8, groups=wanted)
            errors = {group.group_id: group.error_code for group in fetched.groups}
            assert errors == {"ours": Wire.none, "theirs": GROUP}
            deleted = await line.ask(Api.DELETE_GROUPS, 2, groups_names=("theirs", "ours"))
            assert {row.group_id: row.error_code for row in deleted.results} == {
                "ours": Wire.none,
                "theirs": GROUP,
            }
            await line.close()

    run(work())


# --- regular expressions of consumer groups (KIP-848)


PATTERNS = ("*:read:group:g", "*:describe:topic:open*", "eve:describe:topic:closed*")


async def logged_in(kafka, user, name):
    """Return a member of group g whose connection is a user's."""
    member = await Member.of(kafka, name)
    await member.line.ask(Api.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    await member.line.ask(Api.SASL_AUTHENTICATE, 2, auth_bytes=f"\0{user}\0{USERS[user]}".encode())
    return member


def assigned(kafka, answer):
    """Return the topics of an assignment, None without one."""
    if answer.assignment is None:
        return None
    return sorted(
        kafka._running().data.topics.named(row.topic_id) for row in answer.assignment.topic_partitions
    )


def test_a_pattern_gives_a_member_only_topics_that_its_user_may_describe():
    """Each member of a group has the rights of its own user, also for topics that are created later."""

    async def work():
        async with serving({"open": 1, "closed": 1}, users=USERS, acls=PATTERNS) as kafka:
            ada = await logged_in(kafka, "ada", "a")
            assert assigned(kafka, await ada.join(subscribed_topic_regex=".*")) == ["open"]
            eve = await logged_in(kafka, "eve", "b")
            assert assigned(kafka, await eve.join(subscribed_topic_regex=".*")) == ["closed"]
            kafka.create_topics({"open-2": 1, "closed-2": 1})
            assert assigned(kafka, await ada.beat()) in (["open"], ["open", "open-2"], None)
            for _ in range(4):
                answers = [await each.beat(topic_partitions=()) for each in (ada, eve)]
            shares = [assigned(kafka, answer) for answer in answers]
            assert sorted(topic for share in shares for topic in share) == sorted(kafka.topics)
            assert set(shares[0]) <= {"open", "open-2"}
            await closed(ada, eve)

    run(work())


def test_a_pattern_follows_the_user_that_sends_the_heartbeats():
    async def work():
        async with serving({"open": 1, "closed": 1}, users=USERS, acls=PATTERNS) as kafka:
            eve, ada = [await logged_in(kafka, user, "a") for user in ("eve", "ada")]
            assert assigned(kafka, await eve.join(subscribed_topic_regex=".*")) == ["closed", "open"]
            ada.epoch = eve.epoch
            assert assigned(kafka, await ada.beat()) == ["open"]
            await closed(ada, eve)

    run(work())


def test_a_pattern_matches_what_the_user_may_describe_also_after_a_restart(tmp_path):
    """Topics are created between two heartbeats. The user of the member is known from the log."""

    async def work():
        async with serving({"open": 1, "closed": 1}, acls=PATTERNS, data_dir=tmp_path) as kafka:
            member = await Member.of(kafka, "a")
            joined = await member.join(subscribed_topic_regex=".*")
            assert assigned(kafka, joined) == ["open"]
            await closed(member)
        async with serving({"open-2": 1, "closed-2": 1}, acls=PATTERNS, data_dir=tmp_path) as kafka:
            member = await Member.of(kafka, "a")
            member.epoch = joined.member_epoch
            assert assigned(kafka, await member.beat()) == ["open", "open-2"]
            await closed(member)

    run(work())


def test_a_group_with_topics_that_the_user_may_not_describe_is_not_described():
    """As in Kafka, nothing of the group is returned."""

    async def work():
        async with serving({"open": 1, "closed": 1}, users=USERS, acls=PATTERNS) as kafka:
            ada, eve = [await logged_in(kafka, user, user) for user in ("ada", "eve")]
            await eve.join("closed", "open")
            groups = [
                (await each.line.ask(Api.CONSUMER_GROUP_DESCRIBE, 1, group_ids=("g",))).groups[0]
                for each in (ada, eve)
            ]
            assert [(group.error_code, len(group.members)) for group in groups] == [
                (TOPIC_ERROR, 0),
                (Wire.none, 1),
            ]
            assert "closed" not in str(groups[0])
            await closed(ada, eve)

    run(work())


# --- clients


@pytest.fixture
def guarded(kafka_broker):
    broker = kafka_broker(topics={"open": 1, "closed": 1}, tls=True, users=USERS, acls=ACLS)
    from kafka import KafkaProducer

    with_all = KafkaProducer(bootstrap_servers=broker.address, **broker.client_arguments("root"))
    for topic in ("open", "closed"):
        with_all.send(topic, b"value", partition=0).get(SECONDS)
    with_all.close()
    return broker


REFUSED = [
    pytest.param("ada", "open", "theirs", "Group", id="group"),
    pytest.param("ada", "closed", "ours", "Topic", id="topic"),
]


@pytest.mark.peer
@pytest.mark.parametrize(("user", "topic", "group", "kind"), REFUSED)
def test_confluent_kafka_reports_a_refusal(guarded, user, topic, group, kind):
    confluent_kafka = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": guarded.address, **guarded.client_settings(user)}
    consumer = confluent_kafka.Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message, end = None, time.monotonic() + SECONDS
    while message is None and time.monotonic() < end:
        message = consumer.poll(0.5)
    consumer.close()
    expected = getattr(confluent_kafka.KafkaError, f"{kind.upper()}_AUTHORIZATION_FAILED")
    assert message.error().code() == expected


@pytest.mark.peer
@pytest.mark.parametrize(("user", "topic", "group", "kind"), REFUSED)
def test_kafka_python_reports_a_refusal(guarded, caplog, user, topic, group, kind):
    from kafka import KafkaConsumer, errors

    consumer = KafkaConsumer(
        topic, bootstrap_servers=guarded.address, group_id=group, **guarded.client_arguments(user)
    )
    end = time.monotonic() + SECONDS

    def polls():
        while time.monotonic() < end and "Topic closed is not authorized" not in caplog.text:
            consumer.poll(timeout_ms=200)

    try:
        with pytest.raises(errors.GroupAuthorizationFailedError) if kind == "Group" else nullcontext():
            polls()
    finally:
        consumer.close(autocommit=False)
    assert time.monotonic() < end


@pytest.mark.peer
@pytest.mark.parametrize(("user", "topic", "group", "kind"), REFUSED)
def test_aiokafka_raises_a_refusal(guarded, user, topic, group, kind):
    from aiokafka import AIOKafkaConsumer, errors

    async def reads(consumer):
        await consumer.start()
        await consumer.getone()

    async def work():
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=guarded.address,
            group_id=group,
            **await asyncio.to_thread(guarded.client_arguments, user),
        )
        try:
            with pytest.raises(getattr(errors, f"{kind}AuthorizationFailedError")):
                await asyncio.wait_for(reads(consumer), SECONDS)
        finally:
            await consumer.stop()

    run(work())


@pytest.mark.parametrize(
    ("user", "topic", "group", "error"),
    [
        ("ada", "open", "theirs", "GROUP_AUTHORIZATION_FAILED: group theirs"),
        ("ada", "closed", "ours", "TOPIC_AUTHORIZATION_FAILED: closed"),
        ("eve", "open", "ours", "GROUP_AUTHORIZATION_FAILED: group ours"),
    ],
)
def test_our_consumer_raises_a_refusal_in_one_line(guarded, user, topic, group, error):
    async def work():
        settings = guarded.client_settings(user)
        async with member(guarded.address, topic, group_id=group, settings=settings) as consumer:
            with pytest.raises(RebalanceLabError) as refused:
                await polled(consumer, until=lambda _: False)
            assert error in str(refused.value)
            assert len(str(refused.value).splitlines()) == 1

    run(work())


def test_our_consumer_raises_when_it_may_describe_a_topic_but_not_read_it(kafka_broker):
    acls = ("*:describe:topic:t", "*:read:group:g")
    broker = kafka_broker(topics={"t": 1}, acls=acls)

    async def work():
        async with member(broker.address) as consumer:
            with pytest.raises(RebalanceLabError, match="this client may not read the topic"):
                await polled(consumer, until=lambda _: False)

    run(work())


@pytest.mark.peer
@pytest.mark.parametrize(
    ("user", "topic", "is_allowed"), [("ada", "open", True), ("ada", "closed", False), ("eve", "open", False)]
)
def test_a_producer_reports_a_topic_that_it_may_not_write_to(guarded, user, topic, is_allowed):
    confluent_kafka = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": guarded.address, **guarded.client_settings(user)}
    producer = confluent_kafka.Producer(settings)
    errors = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(SECONDS) == 0
    expected = confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert [error and error.code() for error in errors] == [None if is_allowed else expected]
