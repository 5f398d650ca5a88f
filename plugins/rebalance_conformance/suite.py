"""Run the checks of the suite and return their results."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from coordinator_core.assigning.limits import CAN_COPY
from rebalance_conformance.checking import as_expected, checks_named, result_of
from rebalance_conformance.checks import CHECKS
from rebalance_conformance.notebook import in_kernel, shown
from rebalance_conformance.report import Report
from rebalance_conformance.results import DEFAULT_EXAMPLES, Result
from rebalance_conformance.search import Bench, Listener
from rebalance_conformance.subject import subject_of
from rebalance_conformance.watched import results_in_time

NOTEBOOK_LIMIT_S = 30.0


def check_assignor(
    assignor: Any,
    *,
    checks: Sequence[str] | None = None,
    expected_failed_checks: Mapping[str, str] | None = None,
    examples: int = DEFAULT_EXAMPLES,
    clock: Callable[[], float] = time.process_time,
    limit_s: float | None = None,
) -> Report:
    """Run the suite on an assignor. The result is deterministic, except for the check of growth.

    ``assignor``: an installed name, a reference (``file.py:Name``, ``module:Name``), a strategy's text, a
    class, a function of (cluster, group), a factory without arguments, or an object. ``checks``: only these.
    ``expected_failed_checks``: name -> reason; if such a check passes, its result is a failure.
    ``examples``: groups per check. ``clock`` measures the growth. Processor time does not count other work of
    a busy machine. ``limit_s``: a check that takes longer fails; in a check of scenarios the limit applies to
    each run. The checks run in a copy of this process then, where the platform has copies. In a notebook the
    limit is `NOTEBOOK_LIMIT_S` by default, and a line shows the progress.

    Raises:
        InputError: if the name of a check or of the assignor is unknown.
        PluginError: if it is not an assignor.
    """
    subject = subject_of(assignor)
    expected = expected_failed_checks or {}
    chosen = CHECKS if checks is None else checks_named(checks)
    checks_named(expected)
    kernel = in_kernel()
    limit_s = NOTEBOOK_LIMIT_S if limit_s is None and kernel else limit_s
    if limit_s is None or not CAN_COPY:
        bench = Bench(subject, examples, clock, Listener())
        found: Iterable[Result] = (result_of(bench, check) for check in chosen)
    else:
        found = results_in_time(subject, chosen, examples=examples, seconds=limit_s, copied=True)
    results = as_expected(found, expected)
    return Report(subject.name, tuple(shown(results, chosen) if kernel else results))
