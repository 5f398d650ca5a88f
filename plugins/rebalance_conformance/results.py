"""The results of the suite."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from coordinator_core.model import TopicPartition

SUITE_VERSION = "1.1"
"""Increases with every new or stricter check, so that a report names the suite that was run."""

DEFAULT_EXAMPLES = 50
"""The number of groups per check."""

GROUP_FOLLOWS = "the group, for rebalance-lab assign:"
SCENARIO_FOLLOWS = "the scenario, for rebalance-lab simulate -:"


class Outcome(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    EXPECTED = "expected failure"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check, with a reason for every outcome but `PASSED`.

    ``line`` is the smallest group on which the assignor fails, as a line for ``rebalance-lab assign``;
    ``scenario`` the smallest scenario, as a document for ``rebalance-lab simulate``. ``given`` is the wrong
    assignment of that group, if one was returned. ``traceback`` is that of an exception that the assignor
    raised.
    """

    check: str
    doc: str
    outcome: Outcome
    reason: str = ""
    line: str = ""
    scenario: str = ""
    traceback: str = ""
    given: Mapping[str, list[TopicPartition]] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all checks, in order."""

    assignor: str
    results: tuple[Result, ...]
    suite_version: str = SUITE_VERSION

    @property
    def passed(self) -> bool:
        """Whether there are no unexpected failures."""
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        """Return the failures without the expected ones."""
        return tuple(result for result in self.results if result.outcome is Outcome.FAILED)

    @property
    def faults(self) -> dict[str, list[Result]]:
        """Return the failures by their reasons: several checks may find the same fault."""
        together: dict[str, list[Result]] = {}
        for failure in self.failures:
            together.setdefault(failure.reason, []).append(failure)
        return together

    def __str__(self) -> str:
        """Return a line for each check, and the failures with their groups."""
        width = max((len(result.outcome) for result in self.results), default=0)
        lines = [f"{result.outcome:{width}}  {result.check}" for result in self.results]
        return "\n".join([f"assignor {self.assignor!r}:", *lines, *map(told, self.failures)])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Write the report as plain text in IPython."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it."""
        from rebalance_conformance.report_html import report_html

        return report_html(self)

    def raise_for_failures(self) -> None:
        """Raise an error if a check failed.

        Raises:
            AssertionError: with every failure and its group.
        """
        if not self.passed:
            raise AssertionError("\n".join([f"assignor {self.assignor!r}:", *map(told, self.failures)]))


def told(failure: Result) -> str:
    """Return a failure as one line, and its group or its scenario as another."""
    lines = [f"{failure.check}: {failure.reason}"]
    if failure.line:
        lines += [GROUP_FOLLOWS, failure.line]
    if failure.scenario:
        lines += [SCENARIO_FOLLOWS, failure.scenario]
    return "\n".join(lines)
