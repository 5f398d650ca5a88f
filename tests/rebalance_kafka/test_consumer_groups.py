"""Groups of the consumer protocol (KIP-848) by their bytes."""

import asyncio
import logging
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import InputError
from rebalance_kafka import Consumer, EmbeddedBroker
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.live import polled, run
from tests.rebalance_kafka.stand import Line

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.session.timeout.ms": 60_000,
    "group.consumer.assignment.interval.ms": 0,
}
MINUTE = 60_000
UNCHANGED = {
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout": -1,
    "subscribed_topic_names": None,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": None,
}
HALF_COMMITTED = {"committed_leader_epoch": -1, "committed_metadata": ""}
VERSIONS = pytest.mark.parametrize("version", [0, 1])


def serving(topics=None, **options):
    settings = SETTINGS | options.pop("settings", {})
    return EmbeddedBroker({"t": 4} if topics is None else topics, settings=settings, **options)


class Member:
    """A member of group g that says what it is told to."""

    def __init__(self, broker, line, name, version=1):
        self.broker, self.line, self.name, self.version = broker, line, name, version
        self.epoch, self.owned = 0, ()

    @classmethod
    async def of(cls, broker, name, version=1):
        return cls(broker, await Line.to(broker.address), name, version)

    async def beat(self, **fields):
        """Send a heartbeat with the member's epoch, and take over the epoch of the answer."""
        values = {"group_id": "g", "member_id": self.name, "member_epoch": self.epoch, **UNCHANGED, **fields}
        answer = await self.line.ask(Api.CONSUMER_GROUP_HEARTBEAT, self.version, **values)
        if answer.error_code is Wire.none:
            self.name, self.epoch = answer.member_id, answer.member_epoch
        return answer

    async def join(self, *topics, **fields):
        joining = {"member_epoch": 0, "rebalance_timeout": MINUTE, "topic_partitions": ()}
        if "subscribed_topic_regex" not in fields:
            joining["subscribed_topic_names"] = topics or ("t",)
        return await self.beat(**joining | fields)

    async def report(self, *numbers):
        """Report the partitions of t that it owns."""
        number = topic_id(self.broker, "t")
        return await self.beat(topic_partitions=({"topic_id": number, "partitions": numbers},))

    async def settle(self, answer):
        """Report what was assigned until nothing changes."""
        while answer.assignment is not None:
            answer = await self.report(*given(answer))
        return answer


def topic_id(broker, topic) -> UUID:
    return broker._running().data.topics.ids[topic]


def given(answer, *, of=0):
    """The partitions of the assignment's topic, None without an assignment."""
    if answer.assignment is None:
        return None
    topics = answer.assignment.topic_partitions
    return sorted(topics[of].partitions) if topics else []


async def closed(*members):
    for member in members:
        await member.line.close()


@VERSIONS
def test_a_member_joins_is_reconciled_and_leaves(version):
    async def work():
        async with serving() as broker:
            a, b = [await Member.of(broker, name, version) for name in "ab"]
            joined = await a.join()
            assert (joined.error_code, joined.member_id, joined.member_epoch) == (Wire.none, "a", 2)
            assert joined.heartbeat_interval == 100
            assert joined.assignment.topic_partitions[0].topic_id == topic_id(broker, "t")
            assert given(joined) == [0, 1, 2, 3]
            assert (await a.report(0, 1, 2, 3)).assignment is None
            waiting = await b.join()
            assert (waiting.member_epoch, given(waiting)) == (3, [])
            asked = await a.beat()
            kept = given(asked)
            assert (asked.member_epoch, len(kept)) == (2, 2)
            assert (await a.report(*kept)).member_epoch == 3
            assert sorted(given(await b.beat()) + kept) == [0, 1, 2, 3]
            left = await b.beat(member_epoch=-1)
            assert (left.error_code, left.member_epoch) == (Wire.none, -1)
            assert given(await a.beat()) == [0, 1, 2, 3]
            await closed(a, b)

    run(work())


def test_a_member_of_version_0_without_an_id_gets_one():
    async def work():
        async with serving() as broker:
            member = await Member.of(broker, "", 0)
            joined = await member.join()
            assert len(joined.member_id) > 30
            assert (await member.beat()).error_code is Wire.none
            await closed(member)

    run(work())


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"server_assignor": "sticky"}, Wire.unsupported_assignor, "assignors: uniform, range."),
        ({"subscribed_topic_regex": "(?=a)"}, Wire.invalid_regular_expression, "(?="),
        ({"subscribed_topic_regex": "["}, Wire.invalid_regular_expression, "`[` is not a valid regular"),
        ({"member_epoch": -2}, Wire.invalid_request, "InstanceId can't be null."),
        ({"group_id": ""}, Wire.invalid_request, "GroupId can't be empty."),
        ({"group_id": " "}, Wire.invalid_request, "GroupId can't be empty."),
        ({"member_id": " "}, Wire.invalid_request, "MemberId can't be empty."),
        ({"member_epoch": 7}, Wire.group_id_not_found, "Consumer group g not found."),
        ({"member_epoch": -1}, Wire.group_id_not_found, "Group g not found."),
    ],
)
def test_a_wrong_heartbeat_is_answered_with_an_error_and_a_message(fields, error, words):
    async def work():
        async with serving() as broker:
            member = await Member.of(broker, "a")
            joining = {"rebalance_timeout": MINUTE, "topic_partitions": (), "subscribed_topic_names": ("t",)}
            answer = await member.beat(**joining | fields)
            assert answer.error_code is error
            assert words is None or words in answer.error_message
            assert broker.groups == []
            await closed(member)

    run(work())


def test_the_names_of_a_member_may_be_long():
    async def work():
        async with serving() as broker:
            member = await Member.of(broker, "a" * 300)
            joined = await member.join(instance_id="i" * 300, rack_id="r" * 300)
            assert (joined.error_code, joined.member_id) == (Wire.none, "a" * 300)
            await closed(member)

    run(work())


def test_a_pattern_is_matched_by_the_broker_also_with_topics_that_are_created_later():
    async def work():
        async with serving({"orders-1": 1, "other": 1}) as broker:
            member = await Member.of(broker, "a")
            joined = await member.join(subscribed_topic_regex="orders-\\d+")
            assert joined.assignment.topic_partitions == ()
            (row,) = (await member.beat()).assignment.topic_partitions
            assert (row.topic_id, row.partitions) == (topic_id(broker, "orders-1"), (0,))
            broker.create_topics({"orders-2": 2, "orders-": 1})
            later = await Member.of(broker, "b")
            assert (await later.join(subscribed_topic_regex="orders-2")).assignment.topic_partitions == ()
            assert broker._running().coordinator.group("g").awaits_heartbeat
            await closed(later)
            await closed(member)

    run(work())


def test_a_deleted_topic_is_taken_from_its_owners():
    async def work():
        async with serving({"t": 1, "u": 1}) as broker:
            member = await Member.of(broker, "a")
            await member.join("t", "u")
            await member.line.ask(
                Api.DELETE_TOPICS, 6, topics=({"name": "u", "topic_id": None},), timeout=MINUTE
            )
            answer = await member.beat()
            assert [row.topic_id for row in answer.assignment.topic_partitions] == [topic_id(broker, "t")]
            await closed(member)

    run(work())


# --- fencing, static members, sessions


def test_a_member_that_never_confirms_a_revocation_is_removed():
    """Its heartbeats go on; its rebalance timeout ends."""

    async def work():
        async with serving() as broker:
            a, b = [await Member.of(broker, name) for name in "ab"]
            await a.join(rebalance_timeout=200)
            await b.join()
            while (await a.beat()).error_code is Wire.none:
                await asyncio.sleep(0.05)
            assert (await a.beat()).error_code is Wire.unknown_member_id
            assert given(await b.beat()) == [0, 1, 2, 3]
            await closed(a, b)

    run(work())


# --- offsets and administration


def committing(offset, **member):
    row = {"partition_index": 0, "committed_offset": offset, **HALF_COMMITTED}
    return {"group_id": "g", "topics": ({"name": "t", "partitions": (row,)},), **member}


def test_commits_and_fetches_name_a_member_and_its_epoch():
    async def work():
        async with serving() as broker:
            member = await Member.of(broker, "a")
            await member.join()

            async def commit(epoch, name="a", version=9):
                fields = {"member_id": name, "generation_id_or_member_epoch": epoch}
                values = committing(7, **fields)
                answer = await member.line.ask(Api.OFFSET_COMMIT, version, **values)
                return answer.topics[0].partitions[0].error_code

            async def fetch(epoch, name="a", version=9):
                topics = ({"name": "t", "partition_indexes": (0,)},)
                group = {"group_id": "g", "member_id": name, "member_epoch": epoch, "topics": topics}
                answer = await member.line.ask(Api.OFFSET_FETCH, version, groups=(group,))
                (group,) = answer.groups
                offsets = [row.committed_offset for topic in group.topics for row in topic.partitions]
                return group.error_code, offsets

            assert await commit(2) is Wire.none
            assert await commit(3) is Wire.stale_member_epoch
            assert await commit(1) is Wire.stale_member_epoch
            assert await commit(2, "b") is Wire.unknown_member_id
            assert await commit(2, version=8) is Wire.unsupported_version
            assert await fetch(2) == (Wire.none, [7])
            assert await fetch(-1, None) == (Wire.none, [7])
            assert await fetch(0) == (Wire.stale_member_epoch, [])
            assert await fetch(2, "b") == (Wire.unknown_member_id, [])
            assert await fetch(0, version=8) == (Wire.none, [7])
            await closed(member)

    run(work())


@VERSIONS
def test_a_group_is_described_with_its_epochs_and_assignments(version):
    async def work():
        async with serving() as broker:
            a, b = [await Member.of(broker, name) for name in "ab"]
            await a.join(rack_id="r1", instance_id="one")
            await b.join(subscribed_topic_regex="t|u", server_assignor="range")
            await b.beat()
            found = await a.line.ask(Api.CONSUMER_GROUP_DESCRIBE, version, group_ids=("g", "?", "g"))
            group, unknown, again = found.groups
            assert again == group
            assert (group.error_code, group.group_state, group.assignor_name) == (
                Wire.none,
                "Reconciling",
                "range",
            )
            assert (group.group_epoch, group.assignment_epoch) == (4, 4)
            first, second = group.members
            assert (first.member_id, first.instance_id, first.rack_id, first.member_epoch) == (
                "a",
                "one",
                "r1",
                2,
            )
            assert (first.client_id, first.client_host, first.subscribed_topic_names) == (
                "good",
                "/127.0.0.1",
                ("t",),
            )
            (now,), (later,) = first.assignment.topic_partitions, first.target_assignment.topic_partitions
            assert (now.topic_name, now.partitions, later.partitions) == ("t", (0, 1, 2, 3), (0, 1))
            assert (second.subscribed_topic_regex, second.assignment.topic_partitions) == ("t|u", ())
            assert version == 0 or second.member_type == 1
            assert (unknown.error_code, unknown.error_message) == (
                Wire.group_id_not_found,
                "Group ? not found.",
            )
            await closed(a, b)

    run(work())


# --- settings


def test_any_assignor_can_run_in_the_broker():
    async def work():
        settings = {"group.consumer.assignors": "roundrobin, range"}
        async with serving({"t": 2, "u": 2}, settings=settings) as broker:
            a, b = [await Member.of(broker, name) for name in "ab"]
            await a.join("t", "u")
            await b.join("t", "u")
            answer = await a.line.ask(Api.CONSUMER_GROUP_DESCRIBE, 1, group_ids=("g",))
            (group,) = answer.groups
            shares = [
                {row.topic_name: row.partitions for row in member.target_assignment.topic_partitions}
                for member in group.members
            ]
            assert (group.assignor_name, shares) == (
                "roundrobin",
                [{"t": (0,), "u": (0,)}, {"t": (1,), "u": (1,)}],
            )
            unsupported = await b.beat(server_assignor="uniform")
            assert unsupported.error_code is Wire.unsupported_assignor
            await closed(a, b)

    run(work())


@pytest.mark.parametrize("listed", ["", " , ", "nobody"])
def test_assignors_that_cannot_be_made_are_an_error_before_the_broker_starts(listed):
    with pytest.raises(InputError):
        serving(settings={"group.consumer.assignors": listed})


FAILING = """
class Failing:
    name = "failing"

    def assign(self, cluster, group):
        raise ValueError("not today")
"""


def test_an_assignor_that_fails_is_an_error_of_the_request(tmp_path, caplog):
    """The broker goes on, and the log has the reason."""
    file = tmp_path / "mine.py"
    file.write_text(FAILING)

    async def work():
        settings = {"group.consumer.assignors": f"uniform,{file}:Failing"}
        async with serving(settings=settings) as broker:
            member = await Member.of(broker, "a")
            assert (await member.join(server_assignor="failing")).error_code is Wire.unknown_server_error
            assert (await member.join()).error_code is Wire.none
            await closed(member)

    with caplog.at_level(logging.WARNING):
        run(work())
    assert "group g: " in caplog.text
    assert "not today" in caplog.text


def test_the_settings_of_consumer_groups_are_described():
    async def work():
        async with serving() as broker:
            line = await Line.to(broker.address)
            resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
            answer = await line.ask(Api.DESCRIBE_CONFIGS, 4, resources=(resource,))
            values = {entry.name: entry.value for entry in answer.results[0].configs}
            assert values["group.consumer.heartbeat.interval.ms"] == "100"
            assert values["group.consumer.assignors"] == "uniform,range"
            await line.close()

    run(work())


# --- our Consumer


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"protocol": "consumers"}, "protocol: found 'consumers', expected one of classic, consumer"),
        ({"strategy": ["range", "uniform"]}, "expected the name of an assignor of the coordinator"),
        ({"settings": {"session.timeout.ms": 9}}, "group.consumer.session.timeout.ms of the brokers counts"),
    ],
)
def test_options_without_a_meaning_are_an_error(options, found):
    with pytest.raises(InputError, match=found):
        Consumer("t", bootstrap_servers="x:1", group_id="g", **{"protocol": "consumer", **options})


def test_our_consumer_learns_of_topics_by_their_ids():
    """The coordinator assigns a topic that was created after the consumer has read its metadata."""

    async def work():
        async with serving({"t-1": 1}) as broker:
            options = {"bootstrap_servers": broker.address, "group_id": "g", "protocol": "consumer"}
            async with Consumer("t-1", "t-2", **options) as consumer:
                await polled(consumer, until=lambda _: consumer.assignment)
                broker.create_topics({"t-2": 2})
                expected = (("t-1", 0), ("t-2", 0), ("t-2", 1))
                await polled(consumer, until=lambda _: consumer.assignment == expected)

    run(work())
