"""Checks, their bench, and the search for the smallest group on which the assignor fails."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from coordinator_core.assigning.assignor import Assignor
from rebalance_conformance.answers import Given, NoAnswerError, answer
from rebalance_conformance.cases import Case, copy_of
from rebalance_conformance.subject import COOPERATIVE, SUBSCRIBERS_ONLY, Subject

T = TypeVar("T")


class FaultError(Exception):
    """A check failed: on a group, in the run of a scenario, or without one.

    ``given`` is the assignment of the group, if it is wrong.
    """

    def __init__(
        self,
        reason: str,
        case: Case | None = None,
        *,
        given: Given | None = None,
        scenario: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(reason, case)
        self.reason, self.case, self.given, self.scenario = reason, case, given, scenario


class NotRunError(Exception):
    """A check could not be run."""


class Listener:
    """Receives the progress of a check, to report a group on which it hangs."""

    def running(self) -> None:
        """A run of a scenario is about to begin. A limit of time applies to each of them."""

    def trying(self, case: Case) -> None:
        """The assignor is about to receive this group."""

    def found(self, fault: FaultError) -> None:
        """The assignor fails on a group. A smaller one may follow."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The assignor under test, and the number of groups to try."""

    subject: Subject
    examples: int
    clock: Callable[[], float]
    listener: Listener

    def given(self, case: Case, assignor: Assignor | None = None) -> Given:
        """Return the assignment of a copy of the group. Without an assignor, a new one is used.

        Raises:
            FaultError: if the assignor raises an exception, or returns something else.
        """
        return self.lend(copy_of(case), case, assignor)

    def lend(self, lent: Case, case: Case, assignor: Assignor | None = None) -> Given:
        """Return the assignment of a copy that the caller examines afterwards."""
        self.listener.trying(case)
        try:
            return answer(assignor or self.subject.make(), lent)
        except NoAnswerError as error:
            raise FaultError(str(error), case) from error

    def reject(self, case: Case, fault_in: Callable[[Case, Given], str]) -> None:
        """Fail if the assignment of a group has a fault, which a function describes by a text.

        Raises:
            FaultError: if there is a fault, or no assignment.
        """
        given = self.given(case)
        if fault := fault_in(case, given):
            raise FaultError(fault, case, given=given)

    def try_all(self, drawn: SearchStrategy[T], examine: Callable[[T], None]) -> None:
        """Call `examine` with drawn values. The values are the same in every run.

        Raises:
            FaultError: for the smallest value that `examine` raises it for.
        """
        last: list[FaultError] = []

        @settings(
            max_examples=self.examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(drawn)
        def attempt(each: T) -> None:
            try:
                examine(each)
            except FaultError as fault:
                last[:] = [fault]
                self.listener.found(fault)
                raise

        try:
            attempt()
        except Flaky:  # the assignor did not fail again
            reason = f"{last[0].reason} (but not every time)"
            raise FaultError(reason, last[0].case, given=last[0].given, scenario=last[0].scenario) from None


@dataclass(frozen=True, slots=True)
class Check:
    """A check, named after the fault that it finds. ``doc`` is the property of assignors without the fault.

    ``run`` raises FaultError or NotRunError. ``only`` is the trait of the assignors that it applies to.
    """

    name: str
    run: Callable[[Bench], None]
    doc: str
    only: str = ""

    def not_applicable_to(self, subject: Subject) -> str:
        """Return the reason why the check does not apply; empty if it does."""
        if not self.only or self.only in subject.traits:
            return ""
        if self.only == COOPERATIVE:
            return "it is not cooperative"
        if self.only == SUBSCRIBERS_ONLY:
            return "it may assign topics to members that do not subscribe to them"
        return f"it does not declare {self.only!r}"


def check(
    doc: str, drawn: SearchStrategy[T], *, only: str = "", most: int | None = None
) -> Callable[[Callable[[Bench, T], None]], Check]:
    """Make a check of a function that examines a drawn value, with the name of the function.

    ``most`` limits the number of values. For the others see `Check`.
    """

    def of(examine: Callable[[Bench, T], None]) -> Check:
        def run(bench: Bench) -> None:
            limited = bench if most is None else replace(bench, examples=min(bench.examples, most))
            limited.try_all(drawn, partial(examine, bench))

        return Check(examine.__name__.replace("_", "-"), run, doc, only)

    return of
