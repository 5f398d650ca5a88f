"""The JSON schema of scenarios, for editors. It is made of the types of fields that the parsers use."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from coordinator_core.client.config import OFFSET_RESETS, ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.families.migration import PROTOCOLS
from coordinator_core.reading.settings import settings_of
from coordinator_core.registry.hookspecs import ScenarioEventSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.application import Application
from rebalance_lab.scenarios.documents import DEFINITIONS, TEXT, Duration, Schema, schemas_of
from rebalance_lab.scenarios.fields import (
    ONE_KIND_OF_RATES,
    ONE_SUBSCRIPTION,
    ROWS_WITH_INTERVAL,
    MemberFields,
    NewMemberFields,
    NewTopicFields,
    ScenarioFields,
)
from rebalance_lab.scenarios.kafka_words import LISTED, PROTOCOL, REMOTE
from rebalance_lab.scenarios.settings import KAFKA, MOST, OTHER_DEFAULTS, is_time

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCHEMAS: Mapping[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0, "maximum": MOST},
}


def scenario_schema(registry: Registry) -> dict[str, Any]:
    """Return the schema of scenarios, with the events and settings of the plugins in a registry."""
    protocols = [spec.settings for spec in registry.protocols().values() if spec.settings is not None]
    _, known = schemas_of(ScenarioFields, NewTopicFields, NewMemberFields, MemberFields, Application)
    scenario, application = known.pop("ScenarioFields"), known.pop("Application")["properties"]
    for name in ("NewMemberFields", "MemberFields"):
        properties = {**known[name]["properties"], **application}
        known[name] = {**known[name], "properties": properties, "oneOf": ONE_SUBSCRIPTION}
    for name in ("NewTopicFields", "TopicFields"):
        known[name] = {**known[name], "allOf": ONE_KIND_OF_RATES}
    known["TopicFields"] = {**known["TopicFields"], "dependentSchemas": ROWS_WITH_INTERVAL}
    return {
        "$schema": DIALECT,
        **scenario,
        "title": "A scenario of rebalance-lab",
        "description": "Topics, members and events of a simulation.",
        "$defs": {
            **DEFINITIONS,
            **known,
            "event": _event(registry),
            "settings": _with_words(settings_schema((ClientConfig, CoordinatorConfig, *protocols))),
            "consumer_settings": _with_words(settings_schema((ClientConfig,))),
        },
    }


def settings_schema(kinds: Iterable[type[msgspec.Struct]]) -> Schema:
    """Return the schema of a mapping with the settings of these configurations, and their defaults."""
    known: dict[str, msgspec.structs.FieldInfo] = {}
    for kind in kinds:
        known |= settings_of(kind)
    properties = {name: _schema_of(setting) for name, setting in sorted(known.items()) if name != KAFKA}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _with_words(settings: Schema) -> Schema:
    """Return the schema of settings with those that choose a protocol and assignors."""
    listed = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
    words = {PROTOCOL: {"enum": list(PROTOCOLS)}, REMOTE: TEXT, LISTED: listed}
    return {**settings, "properties": dict(sorted({**settings["properties"], **words}.items()))}


def _schema_of(setting: msgspec.structs.FieldInfo) -> Schema:
    default = OTHER_DEFAULTS.get(setting.encode_name, setting.default)
    more = {} if default in (None, msgspec.NODEFAULT) else {"default": default}
    if setting.encode_name == "auto.offset.reset":
        return {"enum": list(OFFSET_RESETS), **more}
    if is_time(setting):
        return {**Duration.schema, **more}
    return {**_SCHEMAS.get(setting.type, TEXT), **more}


def _event(registry: Registry) -> Schema:
    """Return the schema of an event: one kind, with the fields of that kind beside it."""
    specs = registry.scenario_events()
    described = {name: {**spec.fields.get(name, {}), "description": spec.doc} for name, spec in specs.items()}
    return {
        "type": "object",
        "properties": {"at": {"description": "When the event happens.", **Duration.schema}, **described},
        "required": ["at"],
        "oneOf": [{"required": [name]} for name in specs],
        "dependentSchemas": {name: _beside(name, spec) for name, spec in specs.items() if spec.fields},
    }


def _beside(name: str, spec: ScenarioEventSpec) -> Schema:
    """Return the schema of the fields beside the key of an event."""
    fields = {key: schema for key, schema in spec.fields.items() if key != name}
    return {
        "type": "object",
        "properties": {"at": {}, name: {}, **fields},
        "required": list(spec.required),
        "additionalProperties": False,
    }
