"""The plugin of this package. An entry point of the group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec(
            "generate",
            "rebalance_spark.commands.generate:generate",
            "Write a workload of generated scenarios.",
        ),
        CommandSpec(
            "score",
            "rebalance_spark.commands.score:score",
            "Run strategies on every scenario of a workload, on Spark.",
        ),
        CommandSpec(
            "report",
            "rebalance_spark.commands.report:report",
            "Summarize scores as a table, CSV, or a page with plots.",
        ),
    ]
