"""The subcommands of this package. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec("serve", "rebalance_kafka.commands.serve:serve", "An embedded broker for real clients."),
        CommandSpec(
            "consume",
            "rebalance_kafka.commands.consume:consume",
            "A member of a group on any broker, with any strategy.",
        ),
        CommandSpec("snapshot", "rebalance_kafka.commands.snapshot:snapshot", "A live group as a scenario."),
        CommandSpec(
            "watch", "rebalance_kafka.commands.watch:watch", "The rounds of live groups as they happen."
        ),
    ]
