"""Run the checks of the suite and return their results."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from coordinator_core.assigning.limits import CAN_COPY
from coordinator_core.errors import InputError
from coordinator_core.reading.raised import traceback_of
from coordinator_core.reading.suggestions import one_of
from rebalance_conformance.cases import Case, size_of
from rebalance_conformance.checks import CHECKS, Check
from rebalance_conformance.lines import group_line
from rebalance_conformance.notebook import in_kernel, shown
from rebalance_conformance.results import DEFAULT_EXAMPLES, Outcome, Report, Result
from rebalance_conformance.search import Bench, FaultError, Listener, NotRunError
from rebalance_conformance.subject import Subject, subject_of

NOTEBOOK_LIMIT_S = 30.0
LONGEST_LINE = 20_000
"""Longer lines are replaced by the size of the group."""


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
    a busy machine. ``limit_s``: a check that takes longer fails. The checks run in a copy of this process
    then, where the platform has copies. In a notebook the limit is `NOTEBOOK_LIMIT_S` by default, and a line
    shows the progress.

    Raises:
        InputError: if the name of a check or of the assignor is unknown.
        PluginError: if it is not an assignor.
    """
    subject = subject_of(assignor)
    expected = expected_failed_checks or {}
    bench = Bench(subject, examples, clock, Listener())
    chosen = chosen_checks(checks)
    checks_named(expected)
    kernel = in_kernel()
    limit_s = NOTEBOOK_LIMIT_S if limit_s is None and kernel else limit_s
    if limit_s is None or not CAN_COPY:
        return Report(subject.name, tuple(results_of(bench, chosen, expected)))
    from rebalance_conformance.watched import results_in_time  # which imports this module

    results = results_in_time(subject, chosen, expected, examples=examples, seconds=limit_s, copied=True)
    return Report(subject.name, tuple(shown(results, chosen) if kernel else results))


def results_of(bench: Bench, checks: Sequence[Check], expected: Mapping[str, str]) -> Iterator[Result]:
    """Yield the result of each check."""
    for check in checks:
        yield as_expected(result_of(bench, check), expected)


def result_of(bench: Bench, check: Check) -> Result:
    """Return the result of a check."""
    reason = check.not_applicable_to(bench.subject)
    if reason:
        return Result(check.name, check.doc, Outcome.NOT_APPLICABLE, reason)
    try:
        check.run(bench)
    except NotRunError as error:
        return Result(check.name, check.doc, Outcome.NOT_RUN, str(error))
    except FaultError as fault:
        return failed(bench.subject, check, fault)
    return Result(check.name, check.doc, Outcome.PASSED)


def failed(subject: Subject, check: Check, fault: FaultError) -> Result:
    """Return the result of a fault."""
    reason, traceback = " ".join(fault.reason.split()), traceback_of(fault)
    if fault.case is None:
        scenario = msgspec.json.encode(fault.scenario).decode() if fault.scenario else ""
        return Result(check.name, check.doc, Outcome.FAILED, reason, scenario=scenario, traceback=traceback)
    line = line_of(subject, fault.case)
    if not line:
        reason += f" (a group of {size_of(fault.case)})"
    elif any(subscription.user_data for subscription in fault.case.group.values()):
        reason += " (its members send user data too, which the line below cannot hold)"
    return Result(check.name, check.doc, Outcome.FAILED, reason, line, traceback=traceback, given=fault.given)


def line_of(subject: Subject, case: Case) -> str:
    """Return the group as a line for ``rebalance-lab assign``; empty if it is too long."""
    line = group_line(case.cluster, case.group, subject.name)
    return line if len(line) <= LONGEST_LINE else ""


def as_expected(result: Result, expected: Mapping[str, str]) -> Result:
    """Return the result, changed if the check is expected to fail."""
    why = expected.get(result.check)
    if why is None:
        return result
    if result.outcome is Outcome.FAILED:
        return replace(result, outcome=Outcome.EXPECTED, reason=f"{why} ({result.reason})")
    if result.outcome is Outcome.PASSED:
        return replace(result, outcome=Outcome.FAILED, reason=f"it passes, and was expected to fail: {why}")
    return result


def chosen_checks(names: Sequence[str] | None) -> list[Check]:
    """Return the checks of these names in the order of the suite; all for None."""
    if names is None:
        return list(CHECKS)
    checks_named(names)
    return [check for check in CHECKS if check.name in names]


def checks_named(names: Sequence[str] | Mapping[str, str]) -> None:
    """Check the names of checks.

    Raises:
        InputError: if a name is unknown.
    """
    known = [check.name for check in CHECKS]
    for name in names:
        if name not in known:
            raise InputError("check", repr(name), one_of(name, known))
