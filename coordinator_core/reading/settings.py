"""Configurations whose settings have dotted names: structs of msgspec with names as Kafka's."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

_Config = TypeVar("_Config", bound=msgspec.Struct)

IDENTITY = frozenset({"group.id", "client.id", "group.instance.id", "client.rack"})
"""The identity of a consumer: no setting that consumers have in common."""


@cache
def settings_of(kind: type[msgspec.Struct]) -> MappingProxyType[str, msgspec.structs.FieldInfo]:
    """Return the settings of a configuration by their dotted names."""
    fields = msgspec.structs.fields(kind)
    return MappingProxyType({f.encode_name: f for f in fields if f.encode_name not in IDENTITY})


def configured(kind: type[_Config], config: Mapping[str, Any], **identity: Any) -> _Config:
    """Return a configuration of that kind with those of the settings that it has."""
    known = _fields_of(kind)
    return kind(**identity, **{known[name]: value for name, value in config.items() if name in known})


@cache
def _fields_of(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return the field of each setting of a configuration."""
    return {name: setting.name for name, setting in settings_of(kind).items()}
