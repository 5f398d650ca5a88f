"""Checks of a single assignment of an ordinary group."""

from functools import partial

from rebalance_conformance.answers import (
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
from rebalance_conformance.search import Bench, FaultError, check
from rebalance_conformance.subject import COOPERATIVE


@check("An ordinary group is no reason to raise.", ordinary_groups())
def raises(bench: Bench, case: Case) -> None:
    """Fail on an exception. Any result passes."""
    bench.listener.trying(case)
    try:
        answer(bench.subject.make(), copy_of(case))
    except RaisedError as error:
        raise FaultError(str(error), case) from error
    except NoAnswerError:
        return


@check("What comes back maps members to partitions.", ordinary_groups())
def malformed_result(bench: Bench, case: Case) -> None:
    """Fail on a result that cannot be read as members and partitions."""
    bench.given(case)


@check("No partition is given twice.", ordinary_groups())
def assigned_twice(bench: Bench, case: Case) -> None:
    """Fail on a partition with two owners, or twice in one list."""
    bench.reject(case, given_twice)


@check("Partitions go to who subscribes to them.", ordinary_groups())
def assigned_to_non_subscriber(bench: Bench, case: Case) -> None:
    """Fail on a partition whose owner does not subscribe to its topic."""
    bench.reject(case, non_subscribers)


@check("Partitions go to members of the group.", ordinary_groups())
def assigned_to_unknown_member(bench: Bench, case: Case) -> None:
    """Fail on a member that is not in the group."""
    bench.reject(case, unknown_members)


@check("Only partitions that exist are given.", ordinary_groups())
def unknown_partition(bench: Bench, case: Case) -> None:
    """Fail on a partition that does not exist."""
    bench.reject(case, unknown_partitions)


@check("Every subscribed partition has an owner.", ordinary_groups())
def partition_left_out(bench: Bench, case: Case) -> None:
    """Fail on a subscribed partition without an owner, unless it is held back cooperatively."""
    bench.reject(case, partial(left_out, cooperative=bench.subject.cooperative))


@check("Nothing moves before its owner gave it up.", ordinary_groups(), only=COOPERATIVE)
def takes_from_owner(bench: Bench, case: Case) -> None:
    """Fail on a partition that moves before its owner has revoked it."""
    bench.reject(case, taken_too_early)
