"""Settings by Kafka's names, as a coordinator or a client has them."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import close_to

MOST = 2**31 - 1
"""Kafka's numbers have 32 bits."""

_WHAT = {int: f"a whole number from 0 to {MOST:,}", bool: "true or false"}
_Config = TypeVar("_Config", bound=msgspec.Struct)


def configured(kind: type[_Config], given: Mapping[str, Any]) -> _Config:
    """A configuration of that kind. Raises InputError for names it has not and values it cannot have."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    known = list(fields)
    for name, value in given.items():
        if name not in known:
            hint = close_to(name, known) or f": {', '.join(sorted(known))}"
            raise InputError("settings", repr(name), f"a setting by Kafka's name{hint}")
        if not _has(fields[name].type, value):
            raise InputError(name, repr(value), _WHAT.get(fields[name].type, "text"))
    return msgspec.convert(dict(given), kind, strict=False)


def _has(kind: Any, value: Any) -> bool:
    """Whether a setting of a type can have a value, as it is or as text."""
    try:
        converted = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return False
    return kind is not int or 0 <= converted <= MOST
