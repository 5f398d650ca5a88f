"""The codecs, with kio as the judge: every schema in every version has the same bytes, written and read."""

import io
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType, SimpleNamespace, UnionType
from typing import get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as Wire
from kio.serial import entity_reader, entity_writer

from rebalance_kafka.wire.codecs import codec, nested
from rebalance_kafka.wire.fields import CONSTANTS, EVERYWHERE, NAMES
from rebalance_kafka.wire.values import Input, Output
from tests.examples import scaled
from tests.rebalance_kafka.frames import EVERY_VERSION

LOADS = (load_request_schema, load_response_schema)
MOST_MS = 2**31 - 1


VALUES = {
    "bool": st.booleans(),
    "bytes": st.binary(max_size=300),
    "datetime_i64": st.integers(0, MOST_MS).map(lambda s: datetime.fromtimestamp(s, UTC)),
    "error_code": st.sampled_from(Wire),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "records": st.binary(max_size=300),
    "string": st.text(st.characters(codec="utf-8"), max_size=150),
    "timedelta_i32": st.integers(-1, MOST_MS).map(lambda ms: timedelta(milliseconds=ms)),
    "timedelta_i64": st.integers(-1, MOST_MS).map(lambda ms: timedelta(milliseconds=ms)),
    "uuid": st.uuids(),
}


def values_of(field):
    """Values of a field of a kio schema. Of a tagged one the default, too."""
    kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
    inner = nested(field)
    value = VALUES[field.metadata["kafka_type"]] if inner is None else entities(inner)
    if any(get_origin(kind) is tuple for kind in kinds):
        value = st.lists(value, max_size=3).map(tuple)
    if "tag" in field.metadata:
        return st.just(field.default) | value
    return st.none() | value if NoneType in kinds else value


@cache
def entities(schema):
    return st.builds(schema, **{field.name: values_of(field) for field in fields(schema)})


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
@settings(max_examples=scaled(8))  # of each version
@given(data=st.data())
def test_values_have_the_bytes_of_kio(load, api, version, data):
    schema = load(api, version)
    entity = data.draw(entities(schema))
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
        codec(load_request_schema(12, 4), Incomplete).write(Output(), Incomplete("g"))
