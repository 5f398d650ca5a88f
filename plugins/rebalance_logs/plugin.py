"""The subcommands of this package. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec(
            "diagnose",
            "rebalance_logs.commands.diagnose:diagnose",
            "Why a group rebalanced, from logs.",
        ),
    ]
