"""``rebalance-lab schema``: the JSON schema of scenarios."""

import json

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.output import print_document
from rebalance_lab.scenarios.schema import scenario_schema


def schema() -> None:
    """Write the JSON schema of scenarios, for editors.

    It has all fields, the settings with their defaults, and the events and settings of installed plugins.
    """
    print_document(json.dumps(scenario_schema(default_registry()), indent=2, ensure_ascii=False))
