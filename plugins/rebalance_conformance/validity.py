"""Checks of a single assignment of an ordinary group."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

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
from rebalance_conformance.search import Bench, Check, FaultError, check
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


def _rejecting(name: str, doc: str, fault_in: Callable[[Case, Given], str], only: str = "") -> Check:
    """Return a check that fails on a fault in the assignment of an ordinary group."""
    made = check(doc, ordinary_groups(), only=only)(lambda bench, case: bench.reject(case, fault_in))
    return replace(made, name=name)


assigned_twice = _rejecting("assigned-twice", "No partition is given twice.", given_twice)
assigned_to_non_subscriber = _rejecting(
    "assigned-to-non-subscriber", "Partitions go to who subscribes to them.", non_subscribers
)
assigned_to_unknown_member = _rejecting(
    "assigned-to-unknown-member", "Partitions go to members of the group.", unknown_members
)
unknown_partition = _rejecting(
    "unknown-partition", "Only partitions that exist are given.", unknown_partitions
)


@check("Every subscribed partition has an owner.", ordinary_groups())
def partition_left_out(bench: Bench, case: Case) -> None:
    """Fail on a subscribed partition without an owner, unless it is held back cooperatively."""
    bench.reject(case, partial(left_out, cooperative=bench.subject.cooperative))


takes_from_owner = _rejecting(
    "takes-from-owner", "Nothing moves before its owner gave it up.", taken_too_early, COOPERATIVE
)
