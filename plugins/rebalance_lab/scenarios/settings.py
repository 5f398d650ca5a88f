"""The ``config`` of a scenario: settings of consumers, coordinator and protocols by their dotted names."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, TypeAlias

import msgspec

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.kafka_versions import VERSIONS
from coordinator_core.coordinator.reconcile.settings import HEARTBEAT, ReconcileSettings
from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.settings import configured, settings_of
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import Registry

MOST = 2**31 - 1
KAFKA = "kafka"
"""The setting that is the version of the brokers: a field of a scenario of its own."""

Setting: TypeAlias = msgspec.structs.FieldInfo

OF_EVERY_STRATEGY: Mapping[str, Setting] = {**settings_of(ClientConfig), **settings_of(CoordinatorConfig)}
"""The settings that every strategy reads: of consumers and of the coordinator."""

PERIODIC: Mapping[str, int] = {
    name: setting.default
    for kind in (ClientConfig, ReconcileSettings)
    for name, setting in settings_of(kind).items()
    if name in ("heartbeat.interval.ms", HEARTBEAT, "auto.commit.interval.ms")
}
"""The intervals of what members do again and again as long as nothing happens, with their defaults."""

OTHER_DEFAULTS = {"auto.offset.reset": "earliest"}
"""A simulated group reads its topics from the beginning. Otherwise it would skip records and their lag."""


def parse_config(
    value: Any, where: str, registry: Registry, *, kafka: str = VERSIONS[-1]
) -> Mapping[str, Any]:
    """Return checked values by dotted names. Milliseconds may be written as durations.

    ``kafka`` is the version of the brokers, which is a setting beside the others if it is not the newest.

    Raises:
        InputError: if a name is unknown, a value is wrong, the version does not have a setting, or values do
            not go together.
    """
    if isinstance(value, Mapping) and KAFKA in value:
        raise InputError(
            inside(where, KAFKA), "the version of the brokers", f"it as `{KAFKA}` of the scenario"
        )
    return _checked(value, where, registry, {} if kafka == VERSIONS[-1] else {KAFKA: kafka})


def _checked(value: Any, where: str, registry: Registry, beside: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return checked values by dotted names, with those of ``beside``."""
    parsed = {**parse_settings(value, where, known_settings(registry)), **beside}
    try:
        configured(ClientConfig, parsed, group_id="checked")
        version = configured(CoordinatorConfig, parsed)
        for name, found in parsed.items():
            version.check_setting(name, found)
        for spec in registry.protocols().values():
            if spec.settings is not None:
                configured(spec.settings, parsed)
    except InputError as error:
        default = "" if error.where in parsed else " (the default)"
        raise InputError(inside(where, error.where), error.found + default, error.expected) from None
    return parsed


def setting_in(config: Mapping[str, Any], name: str, registry: Registry) -> Any:
    """Return the value of a known setting in a configuration, which is the default if it is not in it."""
    return config.get(name, OTHER_DEFAULTS.get(name, known_settings(registry)[name].default))


def own_settings(spec: ProtocolSpec) -> dict[str, Setting]:
    """Return the settings of a protocol by their dotted names."""
    return {} if spec.settings is None else dict(settings_of(spec.settings))


def known_settings(registry: Registry) -> dict[str, Setting]:
    """Return the settings that any strategy reads, by their dotted names."""
    known = dict(OF_EVERY_STRATEGY)
    for spec in registry.protocols().values():
        known |= own_settings(spec)
    return known


def is_time(setting: Setting) -> bool:
    """Return whether a setting is a time: the name of its field, or its own, ends with the unit."""
    return setting.type is int and (setting.name.endswith("_ms") or setting.encode_name.endswith(".ms"))


def parse_settings(value: Any, where: str, known: Mapping[str, Setting]) -> dict[str, Any]:
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


def grid(
    texts: Iterable[str], config: Mapping[str, Any], where: str, registry: Registry
) -> list[tuple[dict[str, str], Mapping[str, Any]]]:
    """Return a configuration for each combination of the values in texts ``NAME=VALUE,VALUE``.

    Each has its values as text, and the settings of ``config`` with these values in their places.

    Raises:
        InputError: if a text has another form, or if `parse_config` refuses a combination.
    """
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        given = [value.strip() for value in listed.split(",")]
        if not equals or not name.strip() or not all(given):
            raise InputError(where, repr(text), "NAME=VALUE,VALUE, such as session.timeout.ms=6s,45s")
        if name.strip() in values or len(set(given)) < len(given):
            raise InputError(where, f"{name.strip() if name.strip() in values else text} twice", "it once")
        values[name.strip()] = given
    combined = []
    for chosen in product(*values.values()):
        labels = dict(zip(values, chosen, strict=True))
        read = {name: _scalar(value) for name, value in labels.items()}
        combined.append((labels, _checked({**config, **read}, f"{where}: ", registry, {})))
    return combined


def _scalar(text: str) -> Any:
    """Return a value as it would be read in a document: a whole number, true, false, or text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else text


def _value(value: Any, setting: Setting, where: str) -> Any:
    if setting.type is bool:
        if not isinstance(value, bool):
            raise unexpected(where, value, "true or false")
        return value
    if is_time(setting):
        return parse_duration(value, where)
    if setting.type is int:
        return doc.whole(value, where, low=0, high=MOST)
    return doc.text(value, where)
