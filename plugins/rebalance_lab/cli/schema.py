"""``rebalance-lab schema``: the JSON schema of scenarios, and of what commands print."""

import json
from importlib import import_module
from typing import Annotated, Any

import msgspec
import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.output import print_document
from rebalance_lab.cli.plugins import PluginsDocument
from rebalance_lab.scenarios.schema import scenario_schema
from rebalance_lab.traces.entries import Round
from rebalance_lab.verdicts.explaining import ExplanationDocument
from rebalance_lab.verdicts.screen_formats import ScreenDocument

DOCUMENTS: dict[str, Any] = {
    "advise": ScreenDocument,
    "compare": ScreenDocument,
    "explain": ExplanationDocument,
    "plugins": PluginsDocument,
    "simulate": list[Round],
}
"""What the commands of this package print with ``--format json``."""


def schema(
    command: Annotated[
        str, typer.Argument(metavar="[COMMAND]", help="That of what this command prints with --format json.")
    ] = "",
) -> None:
    """Write the JSON schema of scenarios, for editors, or that of what a command prints.

    The schema of scenarios has all fields, the settings with their defaults, and the events and settings of
    installed plugins.
    """
    found = document_schema(command) if command else scenario_schema(default_registry())
    print_document(json.dumps(found, indent=2, ensure_ascii=False))


def document_schema(command: str) -> dict[str, Any]:
    """Return the JSON schema of what a command prints with ``--format json``.

    Raises:
        InputError: if there is no such command.
    """
    references = {
        name: spec.document for name, spec in default_registry().commands().items() if spec.document
    }
    if reference := references.get(command, ""):
        module, _, name = reference.partition(":")
        return msgspec.json.schema(getattr(import_module(module), name))
    if command not in DOCUMENTS:
        raise InputError("schema", repr(command), one_of(command, [*DOCUMENTS, *references]))
    return msgspec.json.schema(DOCUMENTS[command])
