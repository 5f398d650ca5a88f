"""The suite in pytest: a class to subclass, a decorator, and a fixture.

Loaded in every run of pytest beside which rebalance-lab is installed, so it imports nothing but pytest
until it is used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from rebalance_conformance.results import Report

ExpectedFailures = Mapping[str, str]


class AssignorConformance:
    """Subclass it under a name that begins with Test: one test for each check.

    ``assignor``: a name, a reference, a class, a function or a factory (what `check_assignor` takes).
    ``expected_failed_checks``: name -> reason; those are strict xfails. ``examples``: groups a check.
    """

    assignor: ClassVar[Any] = None
    expected_failed_checks: ClassVar[ExpectedFailures] = {}
    examples: ClassVar[int | None] = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test for each check."""
        if "conformance_check" in metafunc.fixturenames:
            metafunc.parametrize("conformance_check", _checks(self.expected_failed_checks))

    def test_conforms(self, conformance_check: str) -> None:
        """The assignor passes the check."""
        assignor = getattr_static(type(self), "assignor")  # not bound, where it is a function
        if isinstance(assignor, staticmethod):
            assignor = assignor.__func__
        if assignor is None:
            pytest.fail(
                f"{type(self).__name__}.assignor is not set: name the assignor to check", pytrace=False
            )
        _demand(assignor, conformance_check, self.examples)


def parametrize_with_checks(
    assignors: Sequence[Any],
    expected_failed_checks: ExpectedFailures | None = None,
    *,
    examples: int | None = None,
) -> pytest.MarkDecorator:
    """A test for each assignor and check: ``def test_conforms(assignor, check): check(assignor)``.

    ``expected_failed_checks``: name -> reason, for all of the assignors; those are strict xfails.
    """
    cases = [
        pytest.param(
            each, Demand(str(check.values[0]), examples), marks=check.marks, id=f"{_id(each)}-{check.id}"
        )
        for each in assignors
        for check in _checks(expected_failed_checks or {})
    ]
    return pytest.mark.parametrize(("assignor", "check"), cases)


@dataclass(frozen=True)
class Demand:
    """One check: call it with an assignor. The test fails, or is skipped where the check does not apply."""

    name: str
    examples: int | None = None

    def __call__(self, assignor: Any) -> None:
        """Demand it of the assignor."""
        _demand(assignor, self.name, self.examples)


@pytest.fixture
def check_assignor() -> "Callable[..., Report]":
    """`conformance.suite.check_assignor`, that raises AssertionError for what fails."""
    from rebalance_conformance import suite

    def check(assignor: Any, **options: Any) -> "Report":
        report = suite.check_assignor(assignor, **options)
        report.raise_for_failures()
        return report

    return check


def _checks(expected: ExpectedFailures) -> list[Any]:
    """The names of the checks, as pytest's parameters. Raises UsageError for a name that is none."""
    from coordinator_core.errors import InputError
    from rebalance_conformance.requirements import require_hypothesis

    try:
        require_hypothesis()
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
    from rebalance_conformance.checks import CHECKS
    from rebalance_conformance.suite import checks_named

    try:
        checks_named(expected)
    except InputError as wrong:
        raise pytest.UsageError(f"expected_failed_checks: {wrong}") from None
    return [
        pytest.param(
            check.name,
            id=check.name,
            marks=pytest.mark.xfail(reason=expected[check.name], strict=True)
            if check.name in expected
            else (),
        )
        for check in CHECKS
    ]


def _demand(assignor: Any, name: str, examples: int | None) -> None:
    from rebalance_conformance.results import DEFAULT_EXAMPLES, Outcome, told
    from rebalance_conformance.suite import check_assignor as checked

    (result,) = checked(assignor, checks=[name], examples=examples or DEFAULT_EXAMPLES).results
    if result.outcome in (Outcome.NOT_APPLICABLE, Outcome.NOT_RUN):
        pytest.skip(f"{result.outcome}: {result.reason}")
    if result.outcome is Outcome.FAILED:
        pytest.fail(told(result), pytrace=False)


def _id(assignor: Any) -> str:
    name: str = (
        assignor if isinstance(assignor, str) else getattr(assignor, "__name__", type(assignor).__name__)
    )
    return name
