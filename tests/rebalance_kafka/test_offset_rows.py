"""Rows of requests for committed offsets and groups: the errors and the order of Kafka 4.4."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.live import broker, run
from tests.rebalance_kafka.stand import Line

NONE, UNKNOWN = Wire.none, Wire.unknown_topic_or_partition
NO_ID = UUID(int=7)


def on_a_line(ask, **options):
    """Return what a client gets from a broker with topics ``t`` of two partitions and ``u`` of one."""

    answers = []

    async def work():
        async with broker({"t": 2, "u": 1}, **options) as kafka:
            line = await Line.to(kafka.address)
            answers.append(await ask(line, kafka))
            await line.close()

    run(work())
    return answers[0]


def to_commit(*numbers, offset=5):
    return tuple(
        {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        for number in numbers
    )


def rows_of(topics, name="name"):
    return [
        (getattr(topic, name), [(row.partition_index, row.error_code) for row in topic.partitions])
        for topic in topics
    ]


async def commit(line, version, *topics, name="name", **other):
    listed = tuple({name: topic, "partitions": to_commit(*numbers)} for topic, numbers in topics)
    fields = {"group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1, **other}
    answer = await line.ask(Api.OFFSET_COMMIT, version, topics=listed, **fields)
    return rows_of(answer.topics, name)


# --- commits


@pytest.mark.parametrize("version", [2, 9])
def test_errors_come_first_and_each_topic_once(version):
    wanted = [("t", (0,)), ("v", (0, 3)), ("t", (1, 7, 0)), ("t", ()), ("w", ()), ("u", (0,))]

    async def ask(line, _):
        return await commit(line, version, *wanted)

    assert on_a_line(ask) == [
        ("v", [(0, UNKNOWN), (3, UNKNOWN)]),
        ("t", [(7, UNKNOWN), (0, NONE), (1, NONE), (0, NONE)]),
        ("w", []),
        ("u", [(0, NONE)]),
    ]


def test_without_errors_rows_are_as_requested():
    async def ask(line, _):
        return await commit(line, 9, ("t", (0,)), ("u", (0,)), ("t", (1, 1)), ("u", ()))

    assert on_a_line(ask) == [("t", [(0, NONE)]), ("u", [(0, NONE)]), ("t", [(1, NONE), (1, NONE)])]


def test_an_error_of_the_group_is_for_the_rows_that_exist():
    async def ask(line, _):
        return await commit(
            line, 9, ("v", (0,)), ("t", (0, 9)), member_id="a", generation_id_or_member_epoch=3
        )

    unknown_group = Wire.group_id_not_found
    assert on_a_line(ask) == [("v", [(0, UNKNOWN)]), ("t", [(9, UNKNOWN), (0, unknown_group)])]


def test_offsets_can_be_committed_for_the_topic_of_offsets():
    """Kafka's coordinator has it as a topic."""

    async def ask(line, _):
        return await commit(line, 9, ("__consumer_offsets", (0, 2)))

    settings = {"offsets.topic.num.partitions": 2}
    assert on_a_line(ask, settings=settings) == [("__consumer_offsets", [(2, UNKNOWN), (0, NONE)])]


def test_a_commit_names_topics_by_their_ids():
    """KIP-1319: from version 10 on."""

    async def ask(line, kafka):
        number = kafka.ids.ids["t"]
        wanted = [(number, (0,)), (NO_ID, (0,)), (number, (5,)), (NO_ID, ())]
        return number, await commit(line, 10, *wanted, name="topic_id")

    number, found = on_a_line(ask)
    assert found == [(NO_ID, [(0, Wire.unknown_topic_id)]), (number, [(5, UNKNOWN), (0, NONE)])]


# --- fetches


async def fetched(line, version, *topics, name="name", **other):
    listed = tuple({name: topic, "partition_indexes": numbers} for topic, numbers in topics)
    group = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": listed, **other}
    fields = {"groups": (group,)} if version >= 8 else group
    answer = await line.ask(Api.OFFSET_FETCH, version, require_stable=False, **fields)
    found = answer.groups[0] if version >= 8 else answer
    offsets = [
        (
            getattr(topic, name),
            [(row.partition_index, row.committed_offset, row.error_code) for row in topic.partitions],
        )
        for topic in found.topics
    ]
    return getattr(found, "error_code", NONE), offsets


@pytest.mark.parametrize("version", [1, 7, 9])
def test_offsets_are_fetched_as_requested(version):
    async def ask(line, _):
        await commit(line, 9, ("t", (0, 1)))
        return await fetched(line, version, ("t", (0,)), ("v", (0,)), ("t", (1, 7, 0)), ("t", ()), ("w", ()))

    assert on_a_line(ask) == (
        NONE,
        [
            ("t", [(0, 5, NONE)]),
            ("v", [(0, -1, NONE)]),
            ("t", [(1, 5, NONE), (7, -1, NONE), (0, 5, NONE)]),
            ("t", []),
            ("w", []),
        ],
    )


def test_a_fetch_names_topics_by_their_ids():
    """KIP-1319: from version 10 on. Unknown ids come last."""

    async def ask(line, kafka):
        await commit(line, 9, ("t", (0,)))
        number = kafka.ids.ids["t"]
        _, found = await fetched(line, 10, (NO_ID, (0, 1)), (number, (0,)), name="topic_id")
        every = await line.ask(
            Api.OFFSET_FETCH, 10, groups=({"group_id": "g", "topics": None},), require_stable=False
        )
        return number, found, [topic.topic_id for topic in every.groups[0].topics]

    number, found, every = on_a_line(ask)
    unknown = Wire.unknown_topic_id
    assert found == [(number, [(0, 5, NONE)]), (NO_ID, [(0, -1, unknown), (1, -1, unknown)])]
    assert every == [number]


# --- deletions


def test_offsets_that_do_not_exist_are_not_deleted():
    wanted = [("t", (0, 9)), ("v", (0,)), ("t", (1,)), ("t", ()), ("w", ())]

    async def ask(line, _):
        listed = tuple(
            {"name": topic, "partitions": tuple({"partition_index": number} for number in numbers)}
            for topic, numbers in wanted
        )
        unknown = await line.ask(Api.OFFSET_DELETE, 0, group_id="g", topics=listed)
        await commit(line, 9, ("t", (0, 1)))
        answer = await line.ask(Api.OFFSET_DELETE, 0, group_id="g", topics=listed)
        return (
            (unknown.error_code, unknown.topics),
            rows_of(answer.topics),
            await fetched(line, 9, ("t", (0, 1))),
        )

    unknown, found, left = on_a_line(ask)
    assert unknown == (Wire.group_id_not_found, ())
    assert found == [("t", [(9, UNKNOWN), (0, NONE), (1, NONE)]), ("v", [(0, UNKNOWN)]), ("w", [])]
    assert left == (NONE, [("t", [(0, -1, NONE), (1, -1, NONE)])])


# --- groups


def test_groups_are_described_as_requested_with_their_errors():
    """From version 6 on, an unknown group is an error with a message (KIP-1043)."""

    async def ask(line, _):
        await commit(line, 9, ("t", (0,)))
        names = {"groups": ("?", "g", "?"), "include_authorized_operations": True}
        return [await line.ask(Api.DESCRIBE_GROUPS, version, **names) for version in (5, 6)]

    older, newer = on_a_line(ask)
    described = [(row.group_id, row.group_state, row.error_code) for row in older.groups]
    assert described == [("?", "Dead", NONE), ("g", "Empty", NONE), ("?", "Dead", NONE)]
    assert [row.authorized_operations for row in older.groups] == [3400] * 3
    unknown = ("?", Wire.group_id_not_found, "Group ? not found.", -(2**31))
    assert [
        (row.group_id, row.error_code, row.error_message, row.authorized_operations) for row in newer.groups
    ] == [unknown, ("g", NONE, None, 3400), unknown]


def test_groups_are_deleted_once_those_without_a_name_first():
    async def ask(line, _):
        await commit(line, 9, ("t", (0,)))
        return (await line.ask(Api.DELETE_GROUPS, 3, groups_names=("g", "?", "", "g"))).results

    missing = Wire.group_id_not_found
    found = [(row.group_id, row.error_code, row.error_message) for row in on_a_line(ask)]
    assert found == [("", missing, None), ("g", NONE, None), ("?", missing, None)]


def test_authorized_operations_are_included_where_requested():
    """KIP-430: bits of the operations, as those of Kafka without access control."""

    async def ask(line, _):
        found = []
        for wanted in (True, False):
            topics = {"include_topic_authorized_operations": wanted, "topics": ({"name": "t"},)}
            names = {"include_cluster_authorized_operations": wanted, **topics}
            described = await line.ask(
                Api.DESCRIBE_GROUPS, 5, groups=("g",), include_authorized_operations=wanted
            )
            metadata = await line.ask(Api.METADATA, 9, **names)
            of_cluster = await line.ask(
                Api.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=wanted, endpoint_type=1
            )
            found.append(
                (
                    described.groups[0].authorized_operations,
                    metadata.topics[0].topic_authorized_operations,
                    of_cluster.cluster_authorized_operations,
                )
            )
        return found

    included, left_out = on_a_line(ask)
    assert included == (3400, 3576, 8096)
    assert left_out == (-(2**31),) * 3


def test_a_group_of_the_consumer_protocol_has_authorized_operations_too():
    async def ask(line, _):
        beat = {"group_id": "g", "member_id": "a", "member_epoch": 0, "topic_partitions": ()}
        await line.ask(
            Api.CONSUMER_GROUP_HEARTBEAT, 1, subscribed_topic_names=("t",), rebalance_timeout=60_000, **beat
        )
        fields = {"group_ids": ("g", "?", ""), "include_authorized_operations": True}
        return (await line.ask(Api.CONSUMER_GROUP_DESCRIBE, 1, **fields)).groups

    found = [(row.group_id, row.error_code, row.authorized_operations) for row in on_a_line(ask)]
    assert found == [
        ("", Wire.invalid_group_id, -(2**31)),
        ("g", NONE, 3400),
        ("?", Wire.group_id_not_found, -(2**31)),
    ]


@pytest.mark.parametrize(("version", "message"), [(1, "NONE"), (3, "NONE"), (4, ""), (6, "")])
def test_a_coordinator_that_is_found_has_the_message_of_the_version(version, message):
    async def ask(line, _):
        answer = await line.ask(
            Api.FIND_COORDINATOR, version, key="g", key_type=0, coordinator_keys=("g", "g")
        )
        return getattr(answer, "coordinators", [answer])

    found = on_a_line(ask)
    assert [(row.error_code, row.error_message) for row in found] == [(NONE, message)] * (1 + (version >= 4))
