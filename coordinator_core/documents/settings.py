"""The ``config`` of a scenario: Kafka's dotted names, held against the settings of coordinator and client."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, wrong
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import one_of

_Config = TypeVar("_Config", ClientConfig, CoordinatorConfig)

_NOT_FOR_SCENARIOS = frozenset({"group.id", "client.id", "group.instance.id", "client.rack"})
"""Who a consumer is comes from its member entry; these would give all consumers one identity."""

_OTHER_DEFAULTS = {"auto.offset.reset": "earliest"}
"""A simulated group reads its topics from the beginning, as a lag that nobody works off would not show."""


def settings_of(kind: type[Any]) -> dict[str, msgspec.structs.FieldInfo]:
    """The settings of a configuration by their dotted names."""
    return {f.encode_name: f for f in msgspec.structs.fields(kind) if f.encode_name not in _NOT_FOR_SCENARIOS}


_SETTINGS = settings_of(ClientConfig) | settings_of(CoordinatorConfig)


def parse_config(value: Any, where: str) -> Mapping[str, Any]:
    """Dotted names with checked values: milliseconds may be written as durations. Raises InputError."""
    given = {} if value is None else doc.mapping(value, where)
    parsed: dict[str, Any] = {}
    for name, setting in given.items():
        if name not in _SETTINGS:
            expected = one_of(name, sorted(_SETTINGS))
            raise InputError(inside(where, name), f"the unknown setting {name!r}", expected)
        parsed[name] = _value(setting, _SETTINGS[name], inside(where, name))
    try:
        configured(ClientConfig, parsed, group_id="checked")
    except InputError as problem:
        raise InputError(inside(where, problem.where), problem.found, problem.expected) from None
    return parsed


def _value(value: Any, setting: msgspec.structs.FieldInfo, where: str) -> Any:
    if setting.type is bool:
        if not isinstance(value, bool):
            raise wrong(where, value, "true or false")
        return value
    if setting.type is int:
        if setting.encode_name.endswith(".ms"):
            return parse_duration(value, where)
        return doc.whole(value, where, low=0, high=2**31 - 1)
    return doc.text(value, where)


def configured(kind: type[_Config], config: Mapping[str, Any], **identity: Any) -> _Config:
    """A configuration of that kind with the scenario's settings that concern it."""
    known = settings_of(kind)
    chosen = {**_OTHER_DEFAULTS, **config}
    settings = {known[name].name: value for name, value in chosen.items() if name in known}
    return kind(**identity, **settings)
