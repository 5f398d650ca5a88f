"""Checks of a single assignment of an ordinary group."""

from collections.abc import Callable

from rebalance_conformance.answers import (
    Given,
    NoAnswerError,
    RaisedError,
    answer,
    given_twice,
    left_out,
    non_subscribers,
    taken_too_early,
    unknown_members,
    unknown_partitions,
)
from rebalance_conformance.cases import Case, copy_of
from rebalance_conformance.groups import ordinary_groups
from rebalance_conformance.search import Bench, FaultError


def raises(bench: Bench) -> None:
    """Fail on an exception. Any result passes."""

    def examine(case: Case) -> None:
        bench.listener.trying(case)
        try:
            answer(bench.subject.make(), copy_of(case))
        except RaisedError as error:
            raise FaultError(str(error), case) from error
        except NoAnswerError:
            return

    bench.try_all(ordinary_groups(), examine)


def malformed_result(bench: Bench) -> None:
    """Fail on a result that cannot be read as members and partitions."""
    bench.try_all(ordinary_groups(), lambda case: _nothing(bench.given(case)))


def assigned_twice(bench: Bench) -> None:
    """Fail on a partition with two owners, or twice in one list."""
    _no_result_with(bench, given_twice)


def assigned_to_non_subscriber(bench: Bench) -> None:
    """Fail on a partition whose owner does not subscribe to its topic."""
    _no_result_with(bench, non_subscribers)


def assigned_to_unknown_member(bench: Bench) -> None:
    """Fail on a member that is not in the group."""
    _no_result_with(bench, unknown_members)


def unknown_partition(bench: Bench) -> None:
    """Fail on a partition that does not exist."""
    _no_result_with(bench, unknown_partitions)


def partition_left_out(bench: Bench) -> None:
    """Fail on a subscribed partition without an owner, unless it is held back cooperatively."""
    cooperative = bench.subject.cooperative
    _no_result_with(bench, lambda case, given: left_out(case, given, cooperative=cooperative))


def takes_from_owner(bench: Bench) -> None:
    """Fail on a partition that moves before its owner has revoked it."""
    _no_result_with(bench, taken_too_early)


def _no_result_with(bench: Bench, fault_of: Callable[[Case, Given], str]) -> None:
    def examine(case: Case) -> None:
        given = bench.given(case)
        fault = fault_of(case, given)
        if fault:
            raise FaultError(fault, case, given=given)

    bench.try_all(ordinary_groups(), examine)


def _nothing(_: Given) -> None:
    return None
