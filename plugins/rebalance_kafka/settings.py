"""Settings of coordinators and clients by Kafka's names. Milliseconds may be written as durations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import close_to

MOST = 2**31 - 1
"""The largest number of a setting: Kafka's have 32 bits."""

MILLISECONDS = ".ms"
"""The end of the names of settings that are durations."""

_WHAT = {int: f"a whole number from 0 to {MOST:,}", bool: "true or false"}
_Config = TypeVar("_Config", bound=msgspec.Struct)


def configured(kind: type[_Config], given: Mapping[str, Any]) -> _Config:
    """Return a configuration with the given settings.

    Raises:
        InputError: if a name is unknown or a value is not allowed.
    """
    (config,) = all_configured((kind,), given)
    assert isinstance(config, kind)
    return config


def all_configured(kinds: Sequence[type[msgspec.Struct]], given: Mapping[str, Any]) -> list[Any]:
    """Return several configurations, each with those of the given settings that are its own.

    Raises:
        InputError: if a name is unknown or a value is not allowed.
    """
    given = _checked(kinds, given)
    configs = []
    for kind in kinds:
        names = {field.encode_name for field in msgspec.structs.fields(kind)}
        own = {name: value for name, value in given.items() if name in names}
        configs.append(msgspec.convert(own, kind, strict=False))
    return configs


def _checked(kinds: Iterable[type[msgspec.Struct]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with durations in milliseconds, if all are known and allowed."""
    checked = {}
    fields = {field.encode_name: field for kind in kinds for field in msgspec.structs.fields(kind)}
    known = list(fields)
    for name, value in given.items():
        if name not in known:
            hint = close_to(name, known) or f": {', '.join(sorted(known))}"
            raise InputError("settings", repr(name), f"a setting by Kafka's name{hint}")
        kind = fields[name].type
        is_duration = kind is int and name.endswith(MILLISECONDS) and isinstance(value, str)
        checked[name] = parse_duration(value, name) if is_duration else value
        if not _has(kind, checked[name]):
            raise InputError(name, repr(value), _WHAT.get(kind, "text"))
    return checked


def _has(kind: Any, value: Any) -> bool:
    """Return whether a setting of the type can have the value, which may be text."""
    try:
        converted = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return False
    return kind is not int or 0 <= converted <= MOST
