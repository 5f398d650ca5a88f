"""What came of the suite: a result for each check, and what to tell of those that failed."""

from dataclasses import dataclass
from enum import StrEnum

SUITE_VERSION = "1.0"
"""Goes up whenever a check comes in or demands more, so that a report says what an assignor was held to."""

DEFAULT_EXAMPLES = 50
"""Groups that a check tries."""

GROUP_FOLLOWS = "the group, for rebalance-lab assign:"


class Outcome(StrEnum):
    """What came of one check."""

    PASSED = "passed"
    FAILED = "failed"
    EXPECTED = "expected failure"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Result:
    """One check: ``reason`` says why, for every outcome but passed.

    ``line``: the smallest group it fails on, as ``rebalance-lab assign`` takes it, or nothing.
    """

    check: str
    doc: str
    outcome: Outcome
    reason: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of all checks, in order."""

    assignor: str
    results: tuple[Result, ...]
    suite_version: str = SUITE_VERSION

    @property
    def passed(self) -> bool:
        """Whether nothing failed that was not expected to."""
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        """What failed, expected failures left out."""
        return tuple(each for each in self.results if each.outcome is Outcome.FAILED)

    def raise_for_failures(self) -> None:
        """Raises AssertionError that tells every failure, with its group; nothing where all passed."""
        if not self.passed:
            raise AssertionError("\n".join([f"assignor {self.assignor!r}:", *map(told, self.failures)]))


def told(failure: Result) -> str:
    """A failure in one line, and its group in another."""
    lines = [f"{failure.check}: {failure.reason}"]
    if failure.line:
        lines.append(f"{GROUP_FOLLOWS}\n{failure.line}")
    return "\n".join(lines)
