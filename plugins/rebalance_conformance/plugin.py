"""The subcommands for authors of assignors. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl
from rebalance_conformance.commands.check import check
from rebalance_conformance.commands.new_assignor import new_assignor


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec("check", check, "Run the conformance suite against an assignor."),
        CommandSpec("new-assignor", new_assignor, "Write an installable plugin project with an assignor."),
    ]
