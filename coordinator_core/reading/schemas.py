"""JSON schemas of the values in documents that people write (JSON Schema 2020-12), for editors.

Each corresponds to a check in `checks` or to `durations.parse_duration`. A table that maps the fields of a
mapping to their schemas is also the list of fields that a parser knows.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from coordinator_core.reading.durations import PATTERN

Schema: TypeAlias = Mapping[str, Any]

TEXT: Schema = {"type": "string", "pattern": r"\S", "maxLength": 249}
ANY_TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
DURATION: Schema = {"$ref": "#/$defs/duration"}
SPAN: Schema = {"$ref": "#/$defs/span"}

DEFINITIONS: Mapping[str, Schema] = {
    "duration": {
        "description": "A duration such as 250ms, 10s, 5m, 24h, or whole milliseconds.",
        "type": ["string", "integer"],
        "pattern": f"^{PATTERN}$",
        "minimum": 0,
    },
    "span": {
        "description": "A duration, or a list of the shortest and the longest.",
        "anyOf": [DURATION, {"type": "array", "items": DURATION, "minItems": 2, "maxItems": 2}],
    },
}
"""The definitions that the schemas above refer to."""


def whole(low: int, high: int) -> Schema:
    """Return the schema of a whole number in a range. Both ends belong to the range."""
    return {"type": "integer", "minimum": low, "maximum": high}


def number(*, positive: bool = False, below: float | None = None) -> Schema:
    """Return the schema of a number from zero, or above zero if ``positive``, to below a limit."""
    limit = {} if below is None else {"exclusiveMaximum": below}
    return {"type": "number", "exclusiveMinimum" if positive else "minimum": 0, **limit}


def listed(item: Schema, *, least: int = 0) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": item, **({"minItems": least} if least else {})}


def one_or_more(item: Schema) -> Schema:
    """Return the schema of a value, or of a list of values."""
    return {"anyOf": [item, {**listed(item, least=1), "uniqueItems": True}]}


def named(item: Schema, *, least: int = 0) -> Schema:
    """Return the schema of a mapping from names to values."""
    some = {"minProperties": least} if least else {}
    return {"type": "object", "propertyNames": TEXT, "additionalProperties": item, **some}


def fields_of(fields: Mapping[str, Schema], required: Iterable[str] = (), **more: Any) -> Schema:
    """Return the schema of a mapping with these fields and no others."""
    names = list(required)
    return {
        "type": "object",
        "properties": dict(fields),
        **({"required": names} if names else {}),
        "additionalProperties": False,
        **more,
    }


def described(text: str, schema: Schema, **more: Any) -> Schema:
    """Return a schema with a description and further keywords."""
    return {"description": text, **schema, **more}


def optional(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
