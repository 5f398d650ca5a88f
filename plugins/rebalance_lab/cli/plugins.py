"""``rebalance-lab plugins``: the installed plugins, their contributions, and failures."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from coordinator_core.registry.registry import LoadedPlugin, Registry, default_registry
from rebalance_lab.cli.output import ExitStatus, complain, print_document, print_table, stdout
from rebalance_lab.verdicts.tables import json_text


def plugins(
    output: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
) -> None:
    """List what plugins contribute: assignors, protocols, modifiers, metrics, events, commands and more.

    A plugin that failed to load is listed with the reason, and the exit status is 1.
    """
    registry = default_registry()
    if output == "json":
        print_document(json_text(listed(registry)))
    else:
        _print_tables(registry)
    if registry.failures:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


class PluginDocument(msgspec.Struct, frozen=True):
    """A plugin in `PluginsDocument`: for each kind of contribution, names with descriptions."""

    name: str
    distribution: str
    version: str
    module: str
    contributes: Mapping[str, Mapping[str, str]]


class FailureDocument(msgspec.Struct, frozen=True):
    """A plugin that failed to load."""

    name: str
    distribution: str
    version: str
    problem: str


class PluginsDocument(msgspec.Struct, frozen=True):
    """What ``plugins --format json`` prints."""

    plugins: Sequence[PluginDocument]
    failures: Sequence[FailureDocument]
    switched_off: Sequence[str]


def listed(registry: Registry) -> PluginsDocument:
    """Return plugins, their contributions, and failures."""
    plugins = [
        PluginDocument(p.name, p.distribution, p.version, p.module, _contributions(registry, p))
        for p in registry.plugins
    ]
    failures = [FailureDocument(f.name, f.distribution, f.version, f.reason) for f in registry.failures]
    return PluginsDocument(plugins, failures, registry.switched_off)


def _contributions(registry: Registry, plugin: LoadedPlugin) -> dict[str, dict[str, str]]:
    kinds = plugin.contributes.items()
    return {kind: {name: _doc(registry, kind, name, plugin) for name in names} for kind, names in kinds}


def _doc(registry: Registry, kind: str, name: str, plugin: LoadedPlugin) -> str:
    records = getattr(registry, kind)()
    record = records.get(plugin.qualified(name)) or records.get(name)
    if record is None and kind == "protocols":  # one that no strategy names
        record = registry.protocol(name)
    options = [f"+{option}" for option in record.options] if kind == "assignors" else []
    aliases = [f"{alias} for {text}" for alias, text in getattr(record, "aliases", {}).items()]
    listed = [("Options", options), ("Aliases", aliases)]
    return " ".join([record.doc, *(f"{label}: {', '.join(names)}." for label, names in listed if names)])


def _print_tables(registry: Registry) -> None:
    for p in registry.plugins:
        kinds = [kind for kind in p.contributes if p.contributes[kind]]
        for kind in kinds:
            origin = f" from {p.distribution} {p.version} ({p.module})"
            stdout().print(Text.assemble((kind.replace("_", " "), "bold"), (origin, "dim")))
            table = Table(box=None, pad_edge=False, show_header=False)
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            for name in p.contributes[kind]:
                table.add_row(Text(f"  {name}"), Text(_doc(registry, kind, name, p)))
            print_table(table, stdout())
    for failed in registry.failures:
        text = f"plugin {failed.name!r} of {failed.distribution} {failed.version}: {failed.reason}"
        complain(text, traceback=failed.traceback)
    if registry.switched_off:
        stdout().print(f"switched off: {', '.join(registry.switched_off)}", markup=False)
