"""``%%rebalance`` runs the scenario in a cell."""

from argparse import SUPPRESS
from collections.abc import Sequence
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import HTML, display

from coordinator_core.assigning.loading import names_of_program, of_program
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_jupyter.display import alert
from rebalance_jupyter.progress import shown_progress
from rebalance_jupyter.running import LIMIT_S, run_each
from rebalance_jupyter.views import compare_view, opened, show
from rebalance_lab.traces.trace import Trace

DEFAULT_STRATEGIES = ("range", "cooperative-sticky")


@magics_class
class RebalanceMagics(Magics):
    """The magic of the extension."""

    @magic_arguments()
    @argument("-s", "--strategy", action="append", help="A strategy, or a class or function of the notebook.")
    @argument(
        "-l", "--limit", type=float, default=LIMIT_S, help="The seconds for which a run may stand still."
    )
    @argument("-o", "--out", default=SUPPRESS, help="Also put the list of traces into this variable.")
    @cell_magic
    def rebalance(self, line: str, cell: str) -> None:
        """Run strategies on the scenario in the cell, and show them one above another."""
        try:
            arguments = parse_argstring(self.rebalance, line)
            traces, errors = self._run(arguments.strategy or DEFAULT_STRATEGIES, cell, arguments.limit)
        except RebalanceLabError as error:
            display(HTML(alert(error)))
            return
        if hasattr(arguments, "out"):
            self._names()[arguments.out] = traces
        view = show(traces[0]) if len(traces) == 1 and not errors else compare_view(traces, errors=errors)
        display(view)

    def _run(self, names: Sequence[str], cell: str, limit_s: float) -> tuple[list[Trace], list[str]]:
        registry = default_registry()
        strategies = [registry.strategy(name) for name in dict.fromkeys(names)]
        scenario = opened(cell if "\n" in cell else f"{cell}\n", registry)
        with shown_progress([each.name for each in strategies], scenario.duration_ms) as move:
            return run_each(scenario, strategies, registry, move, limit_s=limit_s)

    def _names(self) -> dict[str, Any]:
        """Return the names that the notebook has defined."""
        return self.shell.user_ns if self.shell is not None else {}


@context_matcher()
def strategy_matcher(context: CompletionContext) -> SimpleMatcherResult:
    """Complete the line of ``%%rebalance``: options, strategies, and the parts after a plus.

    Nothing else is offered beside them: neither keywords nor files.
    """
    line = context.text_until_cursor
    if context.cursor_line or not line.startswith("%%rebalance "):
        return {"completions": []}
    *before, typed = line.split(" ")
    option = next((word for word in reversed(before) if word), "")
    head, plus, _ = typed.rpartition("+")
    if option not in ("-s", "--strategy"):
        offered = ["-s", "-l", "-o"]
    elif plus:
        offered = [f"{head}+{part}" for part in _parts_after(head.partition("+")[0], default_registry())]
    else:
        registry = default_registry()
        offered = [*registry.assignors(), *registry.aliases(), *names_of_program()]
    begins = len(typed) - len(context.token)
    found = [SimpleCompletion(each[begins:]) for each in offered if each.startswith(typed)]
    return {"completions": found, "suppress": True, "ordered": True}


def _parts_after(assignor: str, registry: Registry) -> list[str]:
    spec = registry.assignors().get(assignor) or of_program(assignor)
    return [*(spec.options if spec is not None else ()), *registry.modifiers(), *registry.protocols()]
