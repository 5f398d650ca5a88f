"""Documents as types of msgspec: a right one is converted at once, of a wrong one the first error is found.

A type says all that there is to say of a value: its limits, its description for editors, and the texts of
errors (`about`). The JSON schema follows from it. A type that msgspec does not know, such as `Duration`, has
a method ``read(value, where)``, which raises InputError, and its ``schema``.
"""

from collections.abc import Mapping
from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

import msgspec
from msgspec import inspect as types

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import LARGEST, inside, unexpected
from coordinator_core.reading.durations import PATTERN, format_duration, parse_duration
from coordinator_core.reading.suggestions import one_of

Schema: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


def about(description: str | None = None, *, schema: Schema | None = None, **texts: str) -> msgspec.Meta:
    """Return the description of a field, further keywords of its schema, and the texts of its errors.

    ``expected`` is what a value of another type should be, ``of`` what a list has, ``least`` what an empty
    list or mapping lacks, ``key`` what the keys of a mapping are, and ``missing`` what a required field
    without a value should have.
    """
    more = None if schema is None else dict(schema)
    return msgspec.Meta(description=description, extra_json_schema=more, extra=dict(texts))


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with these fields and no others. Those without a default are required."""


class Duration(int):
    """The whole milliseconds of a duration, ``10s`` or an integer."""

    schema: ClassVar[Schema] = {"$ref": "#/$defs/duration"}
    least_ms: ClassVar[int] = 0

    @classmethod
    def read(cls, value: Any, where: str) -> Self:
        """Return the milliseconds."""
        return cls(parse_duration(value, where, at_least_ms=cls.least_ms))


class Time(Duration):
    """A duration of a millisecond at least."""

    least_ms = 1


class Bounds(tuple[int, int]):
    """The shortest and the longest duration in milliseconds: a list of both, or a single duration."""

    __slots__ = ()
    schema: ClassVar[Schema] = {"$ref": "#/$defs/span"}
    two: ClassVar[str] = "a duration, or a list of the shortest and the longest"
    order: ClassVar[tuple[str, str]] = ("[{}, {}]", "the shortest duration first")

    @classmethod
    def read(cls, value: Any, where: str) -> Self:
        """Return both durations."""
        if not isinstance(value, list):
            value, places = [value, value], (where, where)
        elif len(value) == 2:
            places = inside(where, 0), inside(where, 1)
        else:
            raise unexpected(where, value, cls.two)
        low, high = map(parse_duration, value, places)
        if low > high:
            found, expected = cls.order
            raise InputError(where, found.format(format_duration(low), format_duration(high)), expected)
        return cls((low, high))


DEFINITIONS: Mapping[str, Schema] = {
    "duration": {
        "description": "A duration such as 250ms, 10s, 5m, 24h, or whole milliseconds.",
        "type": ["string", "integer"],
        "pattern": f"^{PATTERN}$",
        "minimum": 0,
    },
    "span": {
        "description": "A duration, or a list of the shortest and the longest.",
        "anyOf": [Duration.schema, {"type": "array", "items": Duration.schema, "minItems": 2, "maxItems": 2}],
    },
}
"""The definitions that schemas refer to, besides those of documents."""

Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S", max_length=249)]
"""Text of 1 to 249 characters (Kafka's limit for the name of a topic)."""
TEXT: Schema = {"type": "string", "pattern": r"\S", "maxLength": 249}
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=LARGEST)]


def read(kind: type[T], value: Any, where: str) -> T:
    """Return a value of a document as one of a type.

    Raises:
        InputError: for the first error in the value, with its place.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_read_own)
    except (msgspec.ValidationError, ValueError, InputError) as error:
        search_error(kind, value, where)
        raise unexpected(where, value, str(error)) from error


def _read_own(kind: Any, value: Any) -> Any:
    return kind.read(value, "")


def search_error(kind: Any, value: Any, where: str) -> None:
    """Look for the first place where a value is not of a type.

    Raises:
        InputError: if there is one.
    """
    _check(_type_of(kind), value, where, {})


@cache
def _type_of(kind: Any) -> types.Type:
    return types.type_info(kind)


def _check(kind: types.Type, value: Any, where: str, texts: Mapping[str, str]) -> None:
    match kind:
        case types.Metadata():
            _check(kind.type, value, where, {**texts, **(kind.extra or {})})
        case types.UnionType():
            _check_one_of(kind, value, where, texts)
        case types.StructType():
            _check_fields(kind, value, where)
        case types.DictType():
            _check_entries(kind, value, where, texts)
        case types.ListType() | types.VarTupleType():
            doc.sequence(value, where, texts.get("of", ""))
            if not value and kind.min_length:
                raise unexpected(where, value, texts["least"])
            for i, item in enumerate(value):
                _check(kind.item_type, item, inside(where, i), {})
        case types.TupleType():
            _check_tuple(kind, value, where, texts["expected"])
        case types.CustomType():
            own: Any = kind.cls
            own.read(value, where)
        case _:
            _check_plain(kind, value, where, texts.get("expected", "text"))


def _check_plain(kind: types.Type, value: Any, where: str, expected: str) -> None:
    match kind:
        case types.StrType() if kind.max_length is not None:
            doc.text(value, where, expected)
        case types.StrType():
            if not isinstance(value, str) or len(value) < (kind.min_length or 0):
                raise unexpected(where, value, expected)
        case types.IntType(ge=int(low), le=int(high)):
            doc.whole(value, where, low=low, high=high)
        case types.FloatType():
            below = {} if kind.lt in (None, LARGEST) else {"below": kind.lt}
            doc.number(value, where, positive=kind.gt is not None, **below)
        case types.BoolType():
            if not isinstance(value, bool):
                raise unexpected(where, value, "true or false")
        case types.LiteralType():
            if doc.text(value, where, expected) not in kind.values:
                raise InputError(where, repr(value), one_of(value, map(str, kind.values)))


def _check_one_of(kind: types.UnionType, value: Any, where: str, texts: Mapping[str, str]) -> None:
    """Check a value against the type that it seems to have been meant as."""
    if value is None and kind.includes_none:
        return
    lists = (types.ListType, types.VarTupleType)
    others = [one for one in kind.types if not isinstance(one, types.NoneType)]
    meant = [one for one in others if isinstance(one, lists) is isinstance(value, list)] or others
    _check(meant[0], value, where, texts)


def _check_fields(kind: types.StructType, value: Any, where: str) -> None:
    names = [field.encode_name for field in kind.fields]
    fields = doc.mapping(value, where, names if kind.forbid_unknown_fields else None)
    for field in kind.fields:
        at = inside(where, field.encode_name)
        if field.required and fields.get(field.encode_name) is None:
            texts = getattr(field.type, "extra", None) or {}
            raise InputError(at, "nothing", texts.get("missing", "a value"))
        if field.encode_name in fields:
            _check(field.type, fields[field.encode_name], at, {})


def _check_entries(kind: types.DictType, value: Any, where: str, texts: Mapping[str, str]) -> None:
    if "expected" in texts and not isinstance(value, Mapping):
        raise unexpected(where, value, texts["expected"])
    entries = doc.mapping(value, where)
    if not entries and kind.min_length:
        raise unexpected(where, entries, texts["least"])
    for name, entry in entries.items():
        doc.text(name, where, texts.get("key", "text"))
        _check(kind.value_type, entry, inside(where, name), {})


def _check_tuple(kind: types.TupleType, value: Any, where: str, expected: str) -> None:
    """Check a list of fixed length. A text in it is part of its form."""
    if not isinstance(value, list) or len(value) != len(kind.item_types):
        raise unexpected(where, value, expected)
    items = list(zip(kind.item_types, value, strict=True))
    if any(isinstance(one, types.StrType) and not isinstance(item, str) for one, item in items):
        raise unexpected(where, value, expected)
    for i, (one, item) in enumerate(items):
        _check(one, item, inside(where, i), {})


def _schema_of_own(kind: Any) -> dict[str, Any]:
    return dict(kind.schema)


def schemas_of(*kinds: Any) -> tuple[list[Schema], dict[str, Schema]]:
    """Return the JSON schema (2020-12) of each type, and the definitions of documents that they refer to."""
    found, definitions = msgspec.json.schema_components(
        kinds, schema_hook=_schema_of_own, ref_template="#/$defs/{name}"
    )
    return [_uniform(schema) for schema in found], _uniform(definitions)


def _uniform(part: Any) -> Any:
    """Return a part of a schema as all versions of msgspec would write it.

    Of the versions since 0.20, some write docstrings with their indentation, and null first in ``anyOf``.
    """
    if isinstance(part, list):
        return [_uniform(entry) for entry in part]
    if not isinstance(part, dict):
        return part
    uniform = {key: _uniform(entry) for key, entry in part.items()}
    if isinstance(text := uniform.get("description"), str):
        uniform["description"] = cleandoc(text)
    if "anyOf" in uniform:
        uniform["anyOf"].sort(key=lambda kind: kind == {"type": "null"})
    return uniform
