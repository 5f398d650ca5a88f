"""The mapping between messages and kio's entities: its tables, and a message that needs no entry in them."""

from uuid import UUID

import msgspec
import pytest
from kio.index import load_request_schema, load_response_schema
from msgspec.structs import fields

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import ROWS
from rebalance_kafka.wire.fields import CONSTANTS, EVERYWHERE, NAMES, READ_FROM
from rebalance_kafka.wire.mapping import reader, writer
from rebalance_kafka.wire.schemas import nested

CONSUMER_GROUP_HEARTBEAT = 68


def names_in(schema):
    """The names of the schema's fields, and those of its nested entities."""
    for field in schema.__dataclass_fields__.values():
        yield field.name
        if nested(field) is not None:
            yield from names_in(nested(field))


def test_the_tables_name_fields_that_exist():
    names_of_kafka = {
        name
        for api, row in ROWS.items()
        for version in range(row.versions[0], row.versions[1] + 1)
        for load in (load_request_schema, load_response_schema)
        for name in names_in(load(api, version))
    }
    for message, names in NAMES.items():
        assert set(names) <= {field.name for field in fields(message)}, message
        assert set(names.values()) <= names_of_kafka, message
    assert {*EVERYWHERE.values(), *READ_FROM.values(), *CONSTANTS} <= names_of_kafka
    messages = {message for row in ROWS.values() for message in (row.request, row.response) if message}
    assert set(READ_FROM) <= {field.name for message in messages for field in fields(message)}


class OwnedTopic(msgspec.Struct):
    topic_id: UUID
    partitions: tuple[int, ...]


class GroupHeartbeatRequest(msgspec.Struct):
    """A message of the consumer protocol (KIP-848), which is not spoken here."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[OwnedTopic, ...] | None = None


class Assignment(msgspec.Struct):
    topic_partitions: tuple[OwnedTopic, ...]


class GroupHeartbeatResponse(msgspec.Struct):
    error: ErrorCode
    member_epoch: int
    heartbeat_interval_ms: int
    error_message: str | None = None
    member_id: str | None = None


OWNED = OwnedTopic(UUID(int=5), (0, 3))


@pytest.mark.parametrize(
    ("message", "schema"),
    [
        (
            GroupHeartbeatRequest(
                "g",
                "m",
                3,
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=("t",),
                topic_partitions=(OWNED,),
            ),
            load_request_schema(CONSUMER_GROUP_HEARTBEAT, 0),
        ),
        (GroupHeartbeatRequest("g", "m", -1), load_request_schema(CONSUMER_GROUP_HEARTBEAT, 0)),
        (
            GroupHeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS, 4, 3_000, member_id="m"),
            load_response_schema(CONSUMER_GROUP_HEARTBEAT, 0),
        ),
    ],
)
def test_messages_of_another_protocol_are_mapped_by_their_annotations(message, schema):
    entity = writer(type(message), schema)(message)
    assert isinstance(entity, schema)
    assert reader(type(message), schema)(entity) == message


def test_a_field_that_no_message_has_must_have_a_constant():
    class Incomplete(msgspec.Struct):
        group_id: str

    with pytest.raises(TypeError, match="HeartbeatRequest v4 without generation_id"):
        writer(Incomplete, load_request_schema(12, 4))
