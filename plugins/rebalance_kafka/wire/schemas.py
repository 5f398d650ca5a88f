"""Questions about the fields of kio's entities."""

from dataclasses import Field
from types import UnionType
from typing import Any, get_args, get_origin


def is_nullable(field: Field[Any]) -> bool:
    """Return whether the field may be null on the wire."""
    return isinstance(field.type, UnionType)


def is_array(field: Field[Any]) -> bool:
    """Return whether the field is an array, or an array that may be null."""
    return any(get_origin(kind) is tuple for kind in kinds(field.type))


def nested(field: Field[Any]) -> Any:
    """Return the entity that the field, or each of its elements, is. Return None for plain values."""
    for kind in kinds(field.type):
        inner = get_args(kind)[0] if get_origin(kind) is tuple else kind
        for candidate in kinds(inner):
            if hasattr(candidate, "__api_key__"):
                return candidate
    return None


def kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types that a field may have. The None of a nullable field is one of them."""
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)
