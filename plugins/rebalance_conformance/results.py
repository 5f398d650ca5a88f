"""The results of the suite."""

from dataclasses import dataclass
from enum import StrEnum

SUITE_VERSION = "1.0"
"""Increases with every new or stricter check, so that a report names the suite that was run."""

DEFAULT_EXAMPLES = 50
"""The number of groups per check."""

GROUP_FOLLOWS = "the group, for rebalance-lab assign:"


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

    ``line`` is the smallest group on which the assignor fails, as a line for ``rebalance-lab assign``.
    """

    check: str
    doc: str
    outcome: Outcome
    reason: str = ""
    line: str = ""


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

    def raise_for_failures(self) -> None:
        """Raise an error if a check failed.

        Raises:
            AssertionError: with every failure and its group.
        """
        if not self.passed:
            raise AssertionError("\n".join([f"assignor {self.assignor!r}:", *map(told, self.failures)]))


def told(failure: Result) -> str:
    """Return a failure as one line, and its group as another."""
    lines = [f"{failure.check}: {failure.reason}"]
    if failure.line:
        lines.append(f"{GROUP_FOLLOWS}\n{failure.line}")
    return "\n".join(lines)
