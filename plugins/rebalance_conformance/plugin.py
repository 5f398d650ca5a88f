"""The subcommands for authors of assignors. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec(
            "check",
            "rebalance_conformance.commands.check:check",
            "Run the conformance suite against an assignor.",
            "rebalance_conformance.commands.check:ReportDocument",
        ),
        CommandSpec(
            "new-assignor",
            "rebalance_conformance.commands.new_assignor:new_assignor",
            "Write an installable plugin project with an assignor.",
        ),
    ]
