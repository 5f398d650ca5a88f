"""The results of the suite."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from coordinator_core.model import TopicPartition

SUITE_VERSION = "1.2"
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


SIGNS = {
    Outcome.PASSED: ("✓+", "green"),
    Outcome.FAILED: ("✗!", "red"),
    Outcome.EXPECTED: ("xx", "yellow"),
    Outcome.NOT_APPLICABLE: ("--", ""),
    Outcome.NOT_RUN: ("??", "yellow"),
}
"""Signs and their styles. The second character of a sign is for terminals that do not have the first one."""


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


def told(failure: Result) -> str:
    """Return a failure as one line, and its group or its scenario as another."""
    lines = [f"{failure.check}: {failure.reason}"]
    if failure.line:
        lines += [GROUP_FOLLOWS, failure.line]
    if failure.scenario:
        lines += [SCENARIO_FOLLOWS, failure.scenario]
    return "\n".join(lines)
