"""The plugin of this package. An entry point of the group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl
from rebalance_spark.commands.generate import generate
from rebalance_spark.commands.report import report
from rebalance_spark.commands.score import score


@hookimpl
def commands() -> Iterable[CommandSpec]:
    """Return the subcommands of this package."""
    return [
        CommandSpec("generate", generate, "Write a workload of generated scenarios."),
        CommandSpec("score", score, "Run strategies on every scenario of a workload, on Spark."),
        CommandSpec("report", report, "Summarize scores as a table, CSV, or a page with plots."),
    ]
