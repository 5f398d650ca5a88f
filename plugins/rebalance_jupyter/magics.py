"""``%%rebalance`` runs the scenario in a cell; ``%rebalance_plugins`` lists what is installed."""

from argparse import SUPPRESS
from collections.abc import Sequence
from inspect import isclass
from typing import Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import HTML, display

from coordinator_core.cli.plugins import listed
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from coordinator_core.reports.tables import Cell, html_table
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.display import alert
from rebalance_jupyter.views import compare_view, opened, run_each, show

DEFAULT_STRATEGIES = ("range", "cooperative-sticky")


@magics_class
class RebalanceMagics(Magics):
    """The magics of the extension."""

    @magic_arguments()
    @argument("-s", "--strategy", action="append", help="A strategy, or a class or function of the notebook.")
    @argument("-o", "--out", default=SUPPRESS, help="Also put the list of traces into this variable.")
    @cell_magic
    def rebalance(self, line: str, cell: str) -> None:
        """Run strategies on the scenario in the cell, and show them one above another."""
        try:
            arguments = parse_argstring(self.rebalance, line)
            traces, errors = self._run(arguments.strategy or DEFAULT_STRATEGIES, cell)
        except RebalanceLabError as error:
            display(HTML(alert(error)))
            return
        if hasattr(arguments, "out"):
            self._names()[arguments.out] = traces
        view = show(traces[0]) if len(traces) == 1 and not errors else compare_view(traces, errors=errors)
        display(view)

    def _run(self, names: Sequence[str], cell: str) -> tuple[list[Trace], list[str]]:
        registry = default_registry()
        strategies = [self._strategy(name, registry) for name in dict.fromkeys(names)]
        scenario = opened(cell if "\n" in cell else f"{cell}\n", registry)
        return run_each(scenario, strategies, registry)

    def _strategy(self, text: str, registry: Registry) -> Strategy:
        """Return a strategy by its name, or by the name of a class or function of the notebook."""
        first = text.partition("+")[0]
        is_known = first in registry.assignors() or first in registry.aliases()
        if not is_known and first.isidentifier() and callable(self._names().get(first)):
            return registry.strategy(f"__main__:{text}").with_changes(name=text)
        return registry.strategy(text)

    def _names(self) -> dict[str, Any]:
        """Return the names that the notebook has defined."""
        return self.shell.user_ns if self.shell is not None else {}

    @line_magic
    def rebalance_plugins(self, line: str) -> None:  # noqa: ARG002
        """List what plugins contribute."""
        rows = [
            [Cell(kind), Cell(name, "bold"), Cell(doc)]
            for plugin in listed(default_registry())["plugins"]
            for kind, records in plugin["contributes"].items()
            for name, doc in records.items()
        ]
        display(HTML(html_table((), rows)))


def strategy_completer(shell: Any, event: Any) -> list[str]:
    """Complete strategies and classes of the notebook after ``-s``, and what may follow a plus after it."""
    *before, typed = event.text_until_cursor.split(" ")
    if [word for word in before if word][-1:] not in (["-s"], ["--strategy"]):
        return ["-s"]
    registry = default_registry()
    first, plus, _ = typed.partition("+")
    if plus:
        spec = registry.assignors().get(first)
        return [*(spec.options if spec else ()), *registry.modifiers(), *registry.protocols()]
    classes = [name for name, thing in shell.user_ns.items() if isclass(thing) and hasattr(thing, "assign")]
    return [*registry.assignors(), *registry.aliases(), *classes]
