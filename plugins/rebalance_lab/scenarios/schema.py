"""The JSON schema of scenarios, for editors. It is made of the tables of fields that the parsers use."""

from typing import Any

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.reading.schemas import DEFINITIONS, DURATION, Schema, described, fields_of, optional
from coordinator_core.registry.hookspecs import ScenarioEventSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.fields import (
    MEMBER_FIELDS,
    ONE_KIND_OF_RATES,
    ONE_SUBSCRIPTION,
    REQUIRED,
    ROWS_WITH_INTERVAL,
    SCENARIO_FIELDS,
    TOPIC_FIELDS,
)
from rebalance_lab.scenarios.ownership import OWNERSHIP_FIELDS
from rebalance_lab.scenarios.settings import settings_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def scenario_schema(registry: Registry) -> dict[str, Any]:
    """Return the schema of scenarios, with the events and settings of the plugins in a registry."""
    protocols = [spec.settings for spec in registry.protocols().values() if spec.settings is not None]
    return {
        "$schema": DIALECT,
        "title": "A scenario of rebalance-lab",
        **fields_of(SCENARIO_FIELDS, REQUIRED),
        "$defs": {
            **DEFINITIONS,
            "topic": fields_of(
                TOPIC_FIELDS,
                ("partitions",),
                allOf=ONE_KIND_OF_RATES,
                dependentSchemas=ROWS_WITH_INTERVAL,
            ),
            "member": fields_of(MEMBER_FIELDS | OWNERSHIP_FIELDS, ("id",), oneOf=ONE_SUBSCRIPTION),
            "new_member": fields_of(MEMBER_FIELDS, ("id",), oneOf=ONE_SUBSCRIPTION),
            "event": _event(registry),
            "settings": optional(settings_schema((ClientConfig, CoordinatorConfig, *protocols))),
            "consumer_settings": optional(settings_schema((ClientConfig,))),
        },
    }


def _event(registry: Registry) -> Schema:
    """Return the schema of an event: one kind, with the fields of that kind beside it."""
    specs = registry.scenario_events()
    return {
        "type": "object",
        "properties": {
            "at": described("When the event happens.", DURATION),
            **{name: described(spec.doc, spec.fields.get(name, {})) for name, spec in specs.items()},
        },
        "required": ["at"],
        "oneOf": [{"required": [name]} for name in specs],
        "dependentSchemas": {name: _beside(name, spec) for name, spec in specs.items() if spec.fields},
    }


def _beside(name: str, spec: ScenarioEventSpec) -> Schema:
    """Return the schema of the fields beside the key of an event."""
    fields = {key: schema for key, schema in spec.fields.items() if key != name}
    return fields_of({"at": {}, name: {}, **fields}, spec.required)
