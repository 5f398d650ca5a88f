"""Codecs of messages, compiled from kio's schemas, which have the fields of every version.

A message of the core is read and written by its annotations and the tables in `rebalance_kafka.wire.fields`.
A field that the version lacks is not written, and is read as the message's default. Rows of partitions are
grouped by topic where the schema groups them. Without a message, values are read as a namespace and written
from mappings, by the names of the schema.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from functools import cache, partial
from operator import attrgetter
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.fields import ABSENT, CONSTANTS, EVERYWHERE, NAMES
from rebalance_kafka.wire.rows import Rows, Topic, grouped
from rebalance_kafka.wire.values import (
    COMPACT,
    FIXED,
    INT16,
    INT32,
    Codec,
    Input,
    Output,
    Read,
    Write,
    array,
    optional,
    read_tags,
    sized,
    write_tags,
)

ID_LETTERS = 36
TOPIC, TOPIC_ID, VERSION, TAG = "topic", "topic_id", "version", "tag"
TOPIC_NAMES = (TOPIC, "name", "topic_name")
PARTITIONS = ("partitions", "partition_indexes")
_CODES: Mapping[int, ErrorCode] = {int(code): code for code in ErrorCode}
_CORE_ERROR = Codec(
    lambda source: _CODES.get(INT16.read(source), ErrorCode.UNKNOWN_SERVER_ERROR), INT16.write
)


class _Part(NamedTuple):
    """A field of a schema: its name in the message or "", its value in a message, codec and default."""

    own: str
    get: Callable[[Any], Any]
    codec: Codec
    default: Any


@cache
def codec(schema: Any, message: Any = None) -> Codec:
    """Return the codec of a schema. ``message``: a class of the core, None for values.

    Writing raises TypeError if neither the message nor the tables have a value for a field.
    """
    return _entity(schema, message, {} if message is None else get_type_hints(message))


def own_name(message: Any, hints: Mapping[str, Any], name: str) -> str:
    """Return the name that a field of a schema has in a message, "" if the message does not have it."""
    names = {**EVERYWHERE, **NAMES.get(message, {})}
    candidates = (*(own for own, theirs in names.items() if theirs == name), name, f"{name}_ms")
    return next((own for own in reversed(candidates) if own in hints), "")


def _entity(schema: Any, message: Any, hints: Mapping[str, Any]) -> Codec:
    parts, tagged = list[_Part](), dict[int, _Part]()
    for field in fields(schema):
        own = field.name if message is None else own_name(message, hints, field.name)
        of_field = _field(field, schema.__flexible__, hints.get(own))
        part = _Part(own, _getter(schema, field, message, own), of_field, field.default)
        if TAG in field.metadata:
            tagged[field.metadata[TAG]] = part
        else:
            parts.append(part)
    every_part = (*parts, *tagged.values())
    missing = hints.keys() - {part.own for part in every_part}
    absent = {name: value for name, value in ABSENT.items() if name in missing}
    if VERSION in missing:
        absent[VERSION] = int(schema.__version__)
    if message is None:
        absent = {part.own: part.default for part in tagged.values()}
    make: Any = message or SimpleNamespace
    if TOPIC in missing:
        make = dict  # a row, which gets its topic later
    tags = tagged if schema.__flexible__ else None
    return Codec(_reader(make, absent, parts, tags), _writer(parts, tags))


def _reader(
    make: Any, absent: Mapping[str, Any], parts: Sequence[_Part], tagged: Mapping[int, _Part] | None
) -> Read:
    steps = [(part.own, part.codec.read) for part in parts]
    known = {tag: (part.own, part.codec) for tag, part in (tagged or {}).items()}
    has_others = any(not part.own for part in parts)
    is_row = make is dict

    def read(source: Input) -> Any:
        values = dict(absent)
        for own, read_field in steps:
            values[own] = read_field(source)
        if tagged is not None:
            read_tags(source, known, values)
        if has_others:
            values.pop("", None)  # fields that the message does not have
        return values if is_row else make(**values)

    return read


def _writer(parts: Sequence[_Part], tagged: Mapping[int, _Part] | None) -> Write:
    steps = [(part.get, part.codec.write) for part in parts]
    in_order = sorted((tagged or {}).items())

    def write(out: Output, message: Any) -> None:
        for get, write_field in steps:
            write_field(out, get(message))
        if in_order:
            given = [(tag, part, part.get(message)) for tag, part in in_order]
            write_tags(out, [(tag, part.codec, value) for tag, part, value in given if value != part.default])
        elif tagged is not None:
            out.append(0)

    return write


def _getter(schema: Any, field: Field[Any], message: Any, own: str) -> Callable[[Any], Any]:
    """Return the function that returns the value of a field from a message, or from values."""
    if message is not None and own:
        return attrgetter(own)
    name, default = field.name, CONSTANTS.get(field.name, _default(field))

    def constant(_: Any) -> Any:
        if default is MISSING:
            raise TypeError(f"{schema.__name__} v{schema.__version__} without {name}")
        return default

    if message is not None:
        return constant
    return lambda values: values[name] if name in values else constant(values)


def _default(field: Field[Any]) -> Any:
    default: Any = field.default
    return round(default.total_seconds() * 1_000) if isinstance(default, timedelta) else default


# --- fields


def nested(field: Field[Any]) -> Any:
    """Return the entity that the field, or each of its elements, is. Return None for plain values."""
    kinds = (*_kinds(field.type), *_kinds(_element(field.type)))
    return next((kind for kind in kinds if hasattr(kind, "__api_key__")), None)


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have. The None of a nullable field is one of them."""
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _element(hint: Any) -> Any:
    """Return the type of the elements of an array, None if there is none."""
    return next((get_args(kind)[0] for kind in _kinds(hint) if get_origin(kind) is tuple), None)


def _field(field: Field[Any], compact: bool, hint: Any) -> Codec:
    """Return the codec of a field. ``hint``: the annotation of the field in the message, None without one."""
    kind, entity = field.metadata.get("kafka_type", ""), nested(field)
    nullable = NoneType in _kinds(field.type)
    if _element(field.type) is not None:
        return _non_null((), _of_array(field, compact, hint, nullable=nullable), nullable, hint)
    if entity is not None:
        of_entity = _only_field(entity, hint) if _element(hint) else codec(entity, hint)
        return optional(of_entity) if nullable and TAG not in field.metadata else of_entity
    if kind == "error_code" and hint is not None:
        return _CORE_ERROR
    plain = _plain(kind, compact, nullable=nullable)
    return plain if kind in FIXED else _non_null("" if kind == "string" else b"", plain, nullable, hint)


def _plain(kind: str, compact: bool, *, nullable: bool) -> Codec:
    if kind in FIXED:
        return FIXED[kind]
    is_text = kind == "string"
    length = COMPACT if compact else INT16 if is_text else INT32
    return sized(length, is_text=is_text, nullable=nullable)


def _non_null(empty: Any, of_field: Codec, nullable: bool, hint: Any) -> Codec:
    """Return a codec for a field that only one of message and schema allows to be null, else empty."""
    may_be_none = NoneType in _kinds(hint)
    if hint is None or nullable == may_be_none:
        return of_field

    def read(source: Input) -> Any:
        value = of_field.read(source)
        return empty if value is None else value

    def write(out: Output, value: Any) -> None:
        of_field.write(out, empty if value is None else value)

    return Codec(read, of_field.write) if nullable else Codec(of_field.read, write)


# --- arrays


def _of_array(field: Field[Any], compact: bool, hint: Any, *, nullable: bool) -> Codec:
    """Return the codec of an array of values, of entities, or of the rows of topics."""
    length = COMPACT if compact else INT32
    entity, message = nested(field), _element(hint)
    if entity is None:
        of_value = _plain(field.metadata["kafka_type"], compact, nullable=False)
        return array(length, of_value, nullable=nullable)
    partitions = next((each for each in fields(entity) if each.name in PARTITIONS), None)
    if partitions is None or TOPIC not in getattr(message, "__annotations__", ()):
        return array(length, codec(entity, message), nullable=nullable)
    of_topic = _entity(entity, None, {partitions.name: hint})
    return _rows(message, entity, partitions, array(length, of_topic, nullable=nullable))


def _rows(message: Any, entity: Any, partitions: Field[Any], topics: Codec) -> Codec:
    """Return the codec of rows of topics. Topics without an id are left out if there must be one.

    An unknown id, such as that of a deleted topic, is the name of its topic.
    """
    names = [field.name for field in fields(entity) if field.name in TOPIC_NAMES]
    has_numbers = nested(partitions) is None
    has_ids = TOPIC_ID in {field.name for field in fields(entity)}

    def read(source: Input) -> Rows | None:
        found = topics.read(source)
        return None if found is None else Rows.of(map(partial(topic_of, source), found))

    def topic_of(source: Input, topic: Any) -> tuple[Topic, list[Any]]:
        listed, number = getattr(topic, partitions.name), getattr(topic, TOPIC_ID, None)
        known = getattr(topic, names[0]) if names else source.topics.named(number)
        name = source.name_of(number) if known is None else known
        if has_numbers:
            return Topic(known, number), [message(name, number) for number in listed]
        return Topic(known, number), [message(topic=name, **row) for row in listed]

    def id_of(out: Output, topic: Topic) -> UUID | None:
        name = topic.name or ""
        return (topic.topic_id or out.topics.ids.get(name) or _id_in(name)) if has_ids else None

    def write(out: Output, rows: Iterable[Any] | None) -> None:
        listed = [
            {
                **dict.fromkeys(names, topic.name),
                TOPIC_ID: number,
                partitions.name: [row.partition for row in own] if has_numbers else own,
            }
            for topic, own in grouped(() if rows is None else rows)
            if (number := id_of(out, topic)) or not has_ids
        ]
        topics.write(out, None if rows is None else listed)

    return Codec(read, write)


def _id_in(name: str) -> UUID | None:
    """Return the id that is the name of a topic, None if it is none."""
    try:
        return UUID(name) if len(name) == ID_LETTERS else None
    except ValueError:
        return None


def _only_field(entity: Any, hint: Any) -> Codec:
    """Return the codec of rows that are the only field of an entity."""
    (field,) = fields(entity)
    of_entity = _entity(entity, None, {field.name: hint})
    return Codec(
        lambda source: getattr(of_entity.read(source), field.name),
        lambda out, rows: of_entity.write(out, {field.name: rows}),
    )
