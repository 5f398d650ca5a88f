"""The ``config`` of a scenario: settings of consumers, coordinator and protocols by their dotted names."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import Registry

_Config = TypeVar("_Config", bound=msgspec.Struct)

_NOT_FOR_SCENARIOS = frozenset({"group.id", "client.id", "group.instance.id", "client.rack"})
"""The identity of a consumer comes from its entry in ``members``."""

_OTHER_DEFAULTS = {"auto.offset.reset": "earliest"}
"""A simulated group reads its topics from the beginning. Otherwise it would skip records and their lag."""


def settings_of(kind: type[Any]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the settings of a configuration by their dotted names."""
    return {f.encode_name: f for f in msgspec.structs.fields(kind) if f.encode_name not in _NOT_FOR_SCENARIOS}


def parse_config(value: Any, where: str, registry: Registry) -> Mapping[str, Any]:
    """Return checked values by dotted names. Milliseconds may be written as durations.

    Raises:
        InputError: if a name is unknown, a value is wrong, or values do not go together.
    """
    of_protocols: list[type[Any]] = [
        spec.settings for spec in registry.protocols().values() if spec.settings is not None
    ]
    known = settings_of(ClientConfig) | settings_of(CoordinatorConfig)
    for kind in of_protocols:
        known |= settings_of(kind)
    parsed = parse_settings(value, where, known)
    try:
        configured(ClientConfig, parsed, group_id="checked")
        for kind in of_protocols:
            configured(kind, parsed)
    except InputError as error:
        raise InputError(inside(where, error.where), error.found, error.expected) from None
    return parsed


def parse_settings(value: Any, where: str, known: Mapping[str, msgspec.structs.FieldInfo]) -> dict[str, Any]:
    """Return the values of known settings by their dotted names. Milliseconds may be written as durations.

    Raises:
        InputError: if a name is unknown or a value is wrong.
    """
    parsed: dict[str, Any] = {}
    for name, setting in ({} if value is None else doc.mapping(value, where)).items():
        if name not in known:
            expected = one_of(name, sorted(known))
            raise InputError(inside(where, name), f"the unknown setting {name!r}", expected)
        parsed[name] = _value(setting, known[name], inside(where, name))
    return parsed


def _value(value: Any, setting: msgspec.structs.FieldInfo, where: str) -> Any:
    if setting.type is bool:
        if not isinstance(value, bool):
            raise unexpected(where, value, "true or false")
        return value
    if setting.type is int:
        if setting.encode_name.endswith(".ms"):
            return parse_duration(value, where)
        return doc.whole(value, where, low=0, high=2**31 - 1)
    return doc.text(value, where)


def configured(kind: type[_Config], config: Mapping[str, Any], **identity: Any) -> _Config:
    """Return a configuration of that kind, with those settings of a scenario that it has."""
    known = settings_of(kind)
    chosen = {**_OTHER_DEFAULTS, **config}
    settings = {known[name].name: value for name, value in chosen.items() if name in known}
    return kind(**identity, **settings)
