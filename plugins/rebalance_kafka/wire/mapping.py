"""Conversion between the messages of the core and kio's entities.

The functions are built once for each message and schema, from the annotations of both and from the tables in
`rebalance_kafka.wire.fields`. kio knows which fields a version has: a field that the version lacks is not
written, and is read as the message's default.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from kio.schema.errors import ErrorCode as WireError

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.fields import ABSENT, CONSTANTS, EVERYWHERE, NAMES, READ_FROM
from rebalance_kafka.wire.frames import from_ms, in_ms
from rebalance_kafka.wire.schemas import is_nullable, nested

Convert: TypeAlias = Callable[..., Any]
"""Makes an entity from a message, or a message from an entity. A row of a topic also takes the topic."""

TOPIC, VERSION = "topic", "version"
_WIRE_ERRORS = {code: WireError(int(code)) for code in ErrorCode}
_CORE_ERRORS = {wire: code for code, wire in _WIRE_ERRORS.items()}


@cache
def reader(message: Any, schema: Any) -> Convert:
    """Return the function that makes a message from an entity."""
    by_name = _by_name(schema)
    names: dict[str, str] = {}
    converts: dict[str, Convert] = {}
    constants: dict[str, Any] = {}
    given: list[str] = []
    for name, hint in get_type_hints(message).items():
        found = _name_in(by_name, message, name) or READ_FROM.get(name)
        if found in by_name:
            names[name] = found
            _add(converts, name, _from_wire(hint, by_name[found]))
        elif name == VERSION:
            constants[name] = int(schema.__version__)
        elif name == TOPIC:
            given.append(name)
        elif name in ABSENT:
            constants[name] = ABSENT[name]
    return _maker(message, names, converts, constants, *given)


@cache
def writer(message: Any, schema: Any) -> Convert:
    """Return the function that makes an entity from a message.

    Raises:
        TypeError: if neither the message nor the tables have a value for a field.
    """
    by_name, hints = _by_name(schema), get_type_hints(message)
    own = {_name_in(by_name, message, name): name for name in hints}
    names: dict[str, str] = {}
    converts: dict[str, Convert] = {}
    constants: dict[str, Any] = {}
    for found, field in by_name.items():
        if found in own:
            names[found] = own[found]
            _add(converts, found, _to_wire(hints[own[found]], field))
        elif found in CONSTANTS:
            constants[found] = CONSTANTS[found]
        elif field.default is MISSING:
            raise TypeError(f"{schema.__name__} v{schema.__version__} without {found}")
    return _maker(schema, names, converts, constants)


def _maker(
    make: Any,
    names: Mapping[str, str],
    converts: Mapping[str, Convert],
    constants: Mapping[str, Any],
    *given: str,
) -> Convert:
    """Return the function that makes one side from the other. ``names``: field to make -> field to read.

    ``given``: fields that are arguments of the function. It is compiled from an expression, as every message
    passes through it.
    """
    known: dict[str, Any] = {"make": make}
    known |= {f"convert_{name}": convert for name, convert in converts.items()}
    known |= {f"constant_{name}": value for name, value in constants.items()}
    arguments = [
        f"{name}=convert_{name}(source.{source})" if name in converts else f"{name}=source.{source}"
        for name, source in names.items()
    ]
    arguments += [f"{name}=constant_{name}" for name in constants]
    arguments += [f"{name}={name}" for name in given]
    expression = f"lambda {', '.join(('source', *given))}: make({', '.join(arguments)})"
    made: Convert = eval(expression, known)
    return made


def _by_name(schema: Any) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(schema)}


def _name_in(by_name: Mapping[str, Any], message: Any, name: str) -> str | None:
    """Return the name of a message's field in a schema, None if the schema lacks the field."""
    candidates = (NAMES.get(message, {}).get(name, name), EVERYWHERE.get(name), name.removesuffix("_ms"))
    return next((candidate for candidate in candidates if candidate in by_name), None)


def _add(converts: dict[str, Convert], name: str, convert: Convert | None) -> None:
    if convert is not None:
        converts[name] = convert


# --- fields


def _from_wire(hint: Any, field: Field[Any]) -> Convert | None:
    """Return the conversion of a value that kio has read, None if it stays as it is."""
    kind = field.metadata.get("kafka_type", "")
    element, may_be_none = _element(hint)
    if kind == "error_code":
        return _core_error
    if kind.startswith("timedelta"):
        return in_ms
    if element is not None:
        read = _rows_reader(element, field)
        # librdkafka's mock cluster sends null for empty arrays
        return lambda value: None if value is None and may_be_none else read(value or ())
    if hint in (str, bytes) and is_nullable(field):
        empty = hint()
        return lambda value: empty if value is None else value
    return None


def _to_wire(hint: Any, field: Field[Any]) -> Convert | None:
    """Return the conversion of a value for kio to write, None if it stays as it is."""
    kind = field.metadata.get("kafka_type", "")
    element, _ = _element(hint)
    if kind == "error_code":
        return _WIRE_ERRORS.__getitem__
    if kind.startswith("timedelta"):
        return from_ms
    if element is not None:
        write = _rows_writer(element, field)
        return lambda value: None if value is None else write(value)
    if hint == str | None and not is_nullable(field):
        return lambda value: "" if value is None else value
    return None


def _core_error(error: WireError) -> ErrorCode:
    """Return the error of the core; UNKNOWN_SERVER_ERROR if it has none."""
    return _CORE_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)


def _element(hint: Any) -> tuple[Any, bool]:
    """Return the message that the elements of a tuple are, None for others; and whether None is allowed."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    may_be_none = NoneType in kinds
    for kind in kinds:
        if get_origin(kind) is tuple and getattr(get_args(kind)[0], "__annotations__", None):
            return get_args(kind)[0], may_be_none
    return None, may_be_none


# --- arrays


def _rows_reader(element: Any, field: Field[Any]) -> Convert:
    """Return the function that reads an array of entities, or the rows of an array of topics."""
    schema = nested(field)
    partitions = _partitions_of(schema, element)
    if partitions is None:
        read = reader(element, schema)
        return lambda entities: tuple(map(read, entities))
    row_schema = nested(partitions)
    topic_of, rows_of = attrgetter(_topic_name(schema)), attrgetter(partitions.name)

    def numbered(partition: int, topic: str) -> Any:
        return element(topic=topic, partition=partition)

    read_row = numbered if row_schema is None else reader(element, row_schema)

    def read_rows(topics: Iterable[Any]) -> tuple[Any, ...]:
        rows: list[Any] = []
        for entity in topics:
            topic = topic_of(entity)
            rows += [read_row(row, topic) for row in rows_of(entity)]
        return tuple(rows)

    return read_rows


def _rows_writer(element: Any, field: Field[Any]) -> Convert:
    """Return the function that writes an array of entities, or rows grouped by topic."""
    schema = nested(field)
    partitions = _partitions_of(schema, element)
    if partitions is None:
        write = writer(element, schema)
        return lambda messages: tuple(map(write, messages))
    name, inner, row_schema = _topic_name(schema), partitions.name, nested(partitions)
    write_row = attrgetter("partition") if row_schema is None else writer(element, row_schema)

    def write_rows(rows: Iterable[Any]) -> tuple[Any, ...]:
        grouped: dict[str, list[Any]] = {}
        for row in rows:
            grouped.setdefault(row.topic, []).append(write_row(row))
        return tuple(schema(**{name: topic, inner: tuple(values)}) for topic, values in grouped.items())

    return write_rows


def _partitions_of(schema: Any, element: Any) -> Field[Any] | None:
    """Return the field with the partitions of a topic, None if the elements are not rows of topics."""
    by_name = _by_name(schema) if TOPIC in get_type_hints(element) else {}
    return by_name.get("partitions") or by_name.get("partition_indexes")


def _topic_name(schema: Any) -> str:
    return TOPIC if TOPIC in _by_name(schema) else "name"
