"""The suite in pytest: a base class, a decorator and a fixture.

pytest loads this module in every run if rebalance-lab is installed. Therefore it imports nothing but pytest
until it is used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from rebalance_conformance.report import Report

ExpectedFailures = Mapping[str, str]


class AssignorConformance:
    """Base class of test classes with one test per check. Their names start with ``Test``.

    ``assignor``: a name, a reference, a class, a function or a factory (what `check_assignor` takes).
    ``expected_failed_checks``: name -> reason; they are strict xfails. ``examples``: groups per check.
    """

    assignor: ClassVar[Any] = None
    expected_failed_checks: ClassVar[ExpectedFailures] = {}
    examples: ClassVar[int | None] = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Generate a test for each check."""
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
    """Generate tests for assignors and checks: ``def test_conforms(assignor, check): check(assignor)``.

    ``expected_failed_checks``: name -> reason, for all assignors; they are strict xfails.
    """
    cases = [
        pytest.param(
            assignor,
            Demand(str(check.values[0]), examples),
            marks=check.marks,
            id=f"{_id(assignor)}-{check.id}",
        )
        for assignor in assignors
        for check in _checks(expected_failed_checks or {})
    ]
    return pytest.mark.parametrize(("assignor", "check"), cases)


@dataclass(frozen=True)
class Demand:
    """A check: call it with an assignor. The test fails, or is skipped if the check does not apply."""

    name: str
    examples: int | None = None

    def __call__(self, assignor: Any) -> None:
        """Run the check."""
        _demand(assignor, self.name, self.examples)


@pytest.fixture
def check_assignor() -> "Callable[..., Report]":
    """Return `check_assignor`, which raises AssertionError if a check fails."""
    from rebalance_conformance import suite

    def check(assignor: Any, **options: Any) -> "Report":
        report = suite.check_assignor(assignor, **options)
        report.raise_for_failures()
        return report

    return check


def _checks(expected: ExpectedFailures) -> list[Any]:
    """Return the names of the checks as parameters of pytest.

    Raises:
        UsageError: if an expected failure is not the name of a check.
    """
    from coordinator_core.errors import InputError
    from rebalance_conformance.requirements import require_hypothesis

    try:
        require_hypothesis()
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
    from rebalance_conformance.checking import checks_named
    from rebalance_conformance.checks import CHECKS

    try:
        checks_named(expected)
    except InputError as error:
        raise pytest.UsageError(f"expected_failed_checks: {error}") from None
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
        pytest.fail("\n".join(filter(None, [told(result), result.traceback])), pytrace=False)


def _id(assignor: Any) -> str:
    name: str = (
        assignor if isinstance(assignor, str) else getattr(assignor, "__name__", type(assignor).__name__)
    )
    return name
