"""Rebalances in a notebook: show every round, step through it, change the scenario, run again, compare.

    from rebalance_jupyter import Lab, advise, compare_view, examples, explain, run, show

    show(run(examples()["bounce"], "cooperative-sticky"))
    compare_view([run("scenario.yaml", s) for s in ("range", "sticky")])
    explain([run("scenario.yaml", s) for s in ("range", "sticky")])
    advise("scenario.yaml", "range")
    Lab(strategies=[MyAssignor, "sticky"])

In IPython, the import registers the display of traces, comparisons, explanations, advice, assignments
and groups. ``%load_ext rebalance_jupyter`` adds ``%%rebalance``.
"""

from typing import TYPE_CHECKING

from IPython.core.getipython import get_ipython

from rebalance_jupyter.display import register_formatters, words
from rebalance_jupyter.examples import examples
from rebalance_jupyter.lab import Lab
from rebalance_jupyter.views import RebalanceView, advise, compare_view, run, show
from rebalance_lab.verdicts.differences import differences
from rebalance_lab.verdicts.explaining import explain

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = [
    "Lab",
    "RebalanceView",
    "advise",
    "compare_view",
    "differences",
    "examples",
    "explain",
    "run",
    "show",
    "words",
]


def load_ipython_extension(ipython: "InteractiveShell") -> None:
    """Register the magic. IPython calls this for ``%load_ext rebalance_jupyter``."""
    from rebalance_jupyter.magics import RebalanceMagics, strategy_matcher

    register_formatters(ipython)
    ipython.register_magics(RebalanceMagics)
    matchers = ipython.Completer.custom_matchers
    if strategy_matcher not in matchers:
        matchers.append(strategy_matcher)


if (shell := get_ipython()) is not None:
    register_formatters(shell)
