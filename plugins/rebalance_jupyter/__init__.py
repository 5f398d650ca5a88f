"""Rebalances in a notebook: show every round, step through it, change the scenario, run again, compare.

    from rebalance_jupyter import Lab, compare_view, run, show

    show(run("scenario.yaml", "cooperative-sticky"))
    compare_view([run("scenario.yaml", s) for s in ("range", "sticky")])
    Lab()

In IPython, the import registers pictures and tables for traces, comparisons, assignments and groups.
``%load_ext rebalance_jupyter`` adds ``%%rebalance`` and ``%rebalance_plugins``.
"""

from typing import TYPE_CHECKING

from IPython.core.getipython import get_ipython

from rebalance_jupyter.display import register_formatters, words
from rebalance_jupyter.lab import Lab
from rebalance_jupyter.views import RebalanceView, compare_view, run, show, to_html

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["Lab", "RebalanceView", "compare_view", "run", "show", "to_html", "words"]


def load_ipython_extension(ipython: "InteractiveShell") -> None:
    """Register the magics. IPython calls this for ``%load_ext rebalance_jupyter``."""
    from rebalance_jupyter.magics import RebalanceMagics, strategy_completer

    register_formatters(ipython)
    ipython.register_magics(RebalanceMagics)
    ipython.set_hook("complete_command", strategy_completer, str_key="%%rebalance")


if (shell := get_ipython()) is not None:
    register_formatters(shell)
