"""Checks on a single answer to an ordinary group."""

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
    """Fails on an exception; whatever is returned will do."""

    def examine(case: Case) -> None:
        bench.listener.trying(case)
        try:
            answer(bench.subject.make(), copy_of(case))
        except RaisedError as wrong:
            raise FaultError(str(wrong), case) from wrong
        except NoAnswerError:
            return

    bench.try_all(ordinary_groups(), examine)


def malformed_result(bench: Bench) -> None:
    """Fails on what cannot be read as members and partitions."""
    bench.try_all(ordinary_groups(), lambda case: _nothing(bench.given(case)))


def assigned_twice(bench: Bench) -> None:
    """Fails on a partition with two owners, or twice in one list."""
    _no_answer_with(bench, given_twice)


def assigned_to_non_subscriber(bench: Bench) -> None:
    """Fails on a partition whose owner does not want its topic."""
    _no_answer_with(bench, non_subscribers)


def assigned_to_unknown_member(bench: Bench) -> None:
    """Fails on a name that is not in the group."""
    _no_answer_with(bench, unknown_members)


def unknown_partition(bench: Bench) -> None:
    """Fails on a partition that the cluster does not have."""
    _no_answer_with(bench, unknown_partitions)


def partition_left_out(bench: Bench) -> None:
    """Fails on a subscribed partition without an owner, but for what is held back cooperatively."""
    cooperative = bench.subject.cooperative
    _no_answer_with(bench, lambda case, given: left_out(case, given, cooperative=cooperative))


def takes_from_owner(bench: Bench) -> None:
    """Fails on a partition that moves before its owner has given it up."""
    _no_answer_with(bench, taken_too_early)


def _no_answer_with(bench: Bench, problem_of: Callable[[Case, Given], str]) -> None:
    def examine(case: Case) -> None:
        problem = problem_of(case, bench.given(case))
        if problem:
            raise FaultError(problem, case)

    bench.try_all(ordinary_groups(), examine)


def _nothing(_: Given) -> None:
    return None
