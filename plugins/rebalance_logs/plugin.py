"""The subcommands and the formats of this package. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable
from pathlib import Path

from coordinator_core.registry.hookspecs import CommandSpec, LogFormatSpec, hookimpl

WORDINGS = Path(__file__).parent / "wordings"
"""A TOML file for each program, ``NUMBER-NAME.toml``. The numbers are the order in which they are asked."""


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec(
            "diagnose",
            "rebalance_logs.commands.diagnose:diagnose",
            "Why a group rebalanced, from logs.",
            "rebalance_logs.document:DiagnosisDocument",
        ),
    ]


@hookimpl
def log_formats() -> Iterable[LogFormatSpec]:
    """Return the programs whose logs this package reads. A line is of the first that has a wording for it."""
    for path in sorted(WORDINGS.glob("*.toml")):
        name = path.stem.partition("-")[2]
        yield LogFormatSpec(name, path, f"The lines of {name}.")
