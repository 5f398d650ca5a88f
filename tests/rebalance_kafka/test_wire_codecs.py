"""The codecs, with kio as the judge: every schema in every version has the same bytes, written and read."""

import io
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from types import NoneType, SimpleNamespace, UnionType
from typing import get_args, get_origin
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire
from kio.serial import entity_reader, entity_writer

from rebalance_kafka.wire.codecs import codec, nested
from rebalance_kafka.wire.fields import CONSTANTS, EVERYWHERE, NAMES
from rebalance_kafka.wire.schemas import request_schema, response_schema
from rebalance_kafka.wire.values import Input, Output
from tests.examples import scaled
from tests.rebalance_kafka.frames import EVERY_VERSION

LOADS = (request_schema, response_schema)
MOST_MS = 2**31 - 1


SIZES = (0, 1, 5, 126, 127, 128, 300)
"""Lengths of text and bytes, also where those of compact values get another byte."""


def _number(bits):
    return lambda random: random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))


def _bytes(random):
    return random.randbytes(random.choice(SIZES))


def _time(random):
    return timedelta(milliseconds=random.randrange(-1, MOST_MS))


VALUES = {
    "bool": lambda random: random.random() < 0.5,
    "bytes": _bytes,
    "datetime_i64": lambda random: datetime.fromtimestamp(random.randrange(MOST_MS), UTC),
    "error_code": lambda random: random.choice(list(Wire)),
    "int8": _number(8),
    "int16": _number(16),
    "int32": _number(32),
    "int64": _number(64),
    "records": _bytes,
    "string": lambda random: random.choice("x\u00e9\u20ac") * random.choice(SIZES),
    "timedelta_i32": _time,
    "timedelta_i64": _time,
    "uuid": lambda random: UUID(int=random.randrange(1, 2**128)),
}


def value_of(field, random):
    """A value of a field of a kio schema. Of a tagged one the default, too."""
    kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
    if "tag" in field.metadata and random.random() < 0.5:
        return field.default
    if NoneType in kinds and "tag" not in field.metadata and random.random() < 0.3:
        return None

    def one():
        inner = nested(field)
        return VALUES[field.metadata["kafka_type"]](random) if inner is None else entity_of(inner, random)

    is_array = any(get_origin(kind) is tuple for kind in kinds)
    return tuple(one() for _ in range(random.randrange(4))) if is_array else one()


def entity_of(schema, random):
    return schema(**{field.name: value_of(field, random) for field in fields(schema)})


def plain(value, make):
    """A value as codecs have it: times in milliseconds, and nothing for a tagged default to be written."""
    if hasattr(value, "__dataclass_fields__"):
        tagged = {f.name: f.default for f in fields(value) if "tag" in f.metadata and make is dict}
        value = {f.name: getattr(value, f.name) for f in fields(value)}
        given = {name: each for name, each in value.items() if name not in tagged or each != tagged[name]}
        return make(**{name: plain(each, make) for name, each in given.items()})
    if isinstance(value, SimpleNamespace):
        return make(**{name: plain(each, make) for name, each in vars(value).items()})
    if isinstance(value, tuple):
        return tuple(plain(each, make) for each in value)
    if isinstance(value, datetime):
        value -= datetime.fromtimestamp(0, UTC)
    return value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value


@pytest.mark.parametrize("load", LOADS, ids=["request", "response"])
@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
@settings(max_examples=scaled(100))  # of each version
@given(random=st.randoms(use_true_random=False))
def test_values_have_the_bytes_of_kio(load, api, version, random):
    schema = load(api, version)
    entity = entity_of(schema, random)
    written, ours = io.BytesIO(), Output()
    entity_writer(schema)(written, entity)
    codec(schema).write(ours, plain(entity, dict))
    assert bytes(ours) == written.getvalue()
    source = Input(bytes(ours))
    values = codec(schema).read(source)
    assert source.at == len(ours)
    read, _ = entity_reader(schema)(bytes(ours), 0)
    assert plain(values, SimpleNamespace) == plain(read, SimpleNamespace)


# --- the tables of names


def names_in(schema):
    """The names of the schema's fields, and those of its nested entities."""
    for field in fields(schema):
        yield field.name
        if nested(field) is not None:
            yield from names_in(nested(field))


def test_the_tables_name_fields_that_exist():
    names_of_kafka = {
        name for api, version in EVERY_VERSION for load in LOADS for name in names_in(load(api, version))
    }
    for message, names in NAMES.items():
        assert set(names) <= {field.name for field in msgspec.structs.fields(message)}, message
        assert set(names.values()) <= names_of_kafka, message
    assert {*EVERYWHERE.values(), *CONSTANTS} <= names_of_kafka


def test_a_field_that_no_message_has_must_have_a_constant():
    class Incomplete(msgspec.Struct):
        group_id: str

    with pytest.raises(TypeError, match="HeartbeatRequest v4 without generation_id"):
        codec(request_schema(12, 4), Incomplete).write(Output(), Incomplete("g"))
