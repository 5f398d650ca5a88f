"""Run one check of the suite, and find the checks of given names."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.reading.raised import traceback_of
from coordinator_core.reading.suggestions import one_of
from rebalance_conformance.cases import Case, size_of
from rebalance_conformance.checks import CHECKS
from rebalance_conformance.lines import group_line
from rebalance_conformance.results import Outcome, Result
from rebalance_conformance.search import Bench, Check, FaultError, NotRunError
from rebalance_conformance.subject import Subject

LONGEST_LINE = 20_000
"""Longer lines are replaced by the size of the group."""


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


def as_expected(results: Iterable[Result], expected: Mapping[str, str]) -> Iterator[Result]:
    """Yield results. Those of checks that are expected to fail are changed."""
    for result in results:
        why = expected.get(result.check)
        if why is not None and result.outcome is Outcome.FAILED:
            yield replace(result, outcome=Outcome.EXPECTED, reason=f"{why} ({result.reason})")
        elif why is not None and result.outcome is Outcome.PASSED:
            reason = f"it passes, and was expected to fail: {why}"
            yield replace(result, outcome=Outcome.FAILED, reason=reason)
        else:
            yield result


def checks_named(names: Collection[str]) -> list[Check]:
    """Return the checks of these names in the order of the suite.

    Raises:
        InputError: if a name is unknown.
    """
    known = [check.name for check in CHECKS]
    for name in names:
        if name not in known:
            raise InputError("check", repr(name), one_of(name, known))
    return [check for check in CHECKS if check.name in names]
