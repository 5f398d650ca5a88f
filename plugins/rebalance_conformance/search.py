"""The bench on which a check tries the assignor, and the search for the smallest group it fails on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from coordinator_core.assigning.assignor import Assignor
from rebalance_conformance.answers import Given, NoAnswerError, answer
from rebalance_conformance.cases import Case, copy_of
from rebalance_conformance.subject import Subject

T = TypeVar("T")


class FaultError(Exception):
    """A check failed: what went wrong, and on which group, where it was one."""

    def __init__(self, reason: str, case: Case | None = None) -> None:
        super().__init__(reason, case)
        self.reason, self.case = reason, case


class NotRunError(Exception):
    """A check could not be carried out, and why."""


class Listener:
    """Hears what a check is at, for whoever has to say what it hung on."""

    def trying(self, case: Case) -> None:
        """The assignor is about to be given this group."""

    def found(self, fault: FaultError) -> None:
        """A group was found that it fails on; a smaller one may follow."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The assignor under test, and how hard to try it."""

    subject: Subject
    examples: int
    clock: Callable[[], float]
    listener: Listener

    def given(self, case: Case, assignor: Assignor | None = None) -> Given:
        """What an assignor, a fresh one if none is given, makes of a copy of the group.

        Raises FaultError where it raises or returns no assignment.
        """
        return self.lend(copy_of(case), case, assignor)

    def lend(self, lent: Case, case: Case, assignor: Assignor | None = None) -> Given:
        """The same, of a copy that the caller looks at afterwards."""
        self.listener.trying(case)
        try:
            return answer(assignor or self.subject.make(), lent)
        except NoAnswerError as wrong:
            raise FaultError(str(wrong), case) from wrong

    def try_all(self, drawn: SearchStrategy[T], examine: Callable[[T], None]) -> None:
        """Let `examine` look at so many drawn things. Raises its Fault for the smallest that it finds.

        What is drawn depends on nothing but the strategy: the same every time.
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
        except Flaky:  # the assignor did not do it again
            raise FaultError(f"{last[0].reason} (but not every time)", last[0].case) from None
