"""The result of an assignor as it was returned, and its faults.

The result is not validated when it is read: every kind of fault has a function of its own, and a name.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.problem import build_problem
from coordinator_core.errors import AssignmentError
from coordinator_core.model import NO_OWNER, GroupAssignment, TopicPartition
from coordinator_core.reading.raised import raised
from rebalance_conformance.cases import Case, claims, subscribed, valid_owner

Given: TypeAlias = Mapping[str, list[TopicPartition]]

MAX_LISTED = 3


class NoAnswerError(Exception):
    """The assignor raised an exception, or its result is not an assignment."""


class RaisedError(NoAnswerError):
    """The assignor raised an exception."""


def answer(assignor: Assignor, case: Case) -> Given:
    """Return the partitions of each member, in the order of its list.

    Raises:
        NoAnswerError: if the assignor raises an exception, or returns something else.
    """
    try:
        return _read(assignor.solve(build_problem(case.cluster, case.group)), case)
    except NoAnswerError:
        raise
    except AssignmentError as error:  # of an inner assignor
        raise RaisedError("; ".join(error.violations)) from error
    except (Exception, SystemExit) as error:
        raise RaisedError(f"raised {raised(error)}") from error


def as_sets(given: Given) -> dict[str, frozenset[TopicPartition]]:
    """Return the result without order, and without members that have no partitions."""
    return {member: frozenset(got) for member, got in given.items() if got}


def difference(first: Given, second: Given) -> str:
    """Describe the first partition with different owners in two results; empty if none."""
    owners = [_owners(given) for given in (first, second)]
    for tp in sorted(set(owners[0]) | set(owners[1])):
        here, there = owners[0].get(tp), owners[1].get(tp)
        if here != there:
            return f"{named(tp)} {_went(here)} and then {_went(there)}"
    return ""


def named(tp: TopicPartition) -> str:
    """``orders-0``."""
    return f"{tp.topic}-{tp.partition}"


def fault_in(case: Case, given: Given, *, cooperative: bool) -> str:
    """Describe a fault of a result; empty for a valid one."""
    return (
        unknown_members(case, given)
        or unknown_partitions(case, given)
        or non_subscribers(case, given)
        or given_twice(case, given)
        or left_out(case, given, cooperative=cooperative)
    )


def given_twice(_: Case, given: Given) -> str:
    """Describe partitions that are assigned more than once."""
    holders: dict[TopicPartition, list[str]] = {}
    for member, got in given.items():
        for tp in got:
            holders.setdefault(tp, []).append(member)
    twice = {tp: members for tp, members in holders.items() if len(members) > 1}
    return _joined(f"{named(tp)} went to {' and to '.join(map(repr, m))}" for tp, m in twice.items())


def unknown_members(case: Case, given: Given) -> str:
    """Describe members that are not in the group, even without partitions."""
    return _joined(f"{member!r} is no member of the group" for member in given if member not in case.group)


def unknown_partitions(case: Case, given: Given) -> str:
    """Describe partitions that do not exist."""
    return _joined(
        f"{named(tp)}, which {member!r} was given, does not exist"
        for member, got in given.items()
        for tp in got
        if not _exists(case, tp)
    )


def non_subscribers(case: Case, given: Given) -> str:
    """Describe partitions whose owner does not subscribe to their topic."""
    return _joined(
        f"{named(tp)} went to {member!r}, which does not subscribe to it"
        for member, got in given.items()
        if member in case.group
        for tp in got
        if _exists(case, tp) and tp.topic not in case.group[member].topics
    )


def left_out(case: Case, given: Given, *, cooperative: bool) -> str:
    """Describe partitions of subscribed topics that have no owner.

    A cooperative assignor may leave out a partition that one member claims and another may receive.
    """
    got = {tp for partitions in given.values() for tp in partitions}
    claimed = claims(case) if cooperative else {}
    missing = [tp for tp in subscribed(case) if tp not in got]
    return _joined(
        f"nobody got {named(tp)}" + (", which no other member has to give up" if cooperative else "")
        for tp in missing
        if not _may_be_held_back(case, tp, claimed.get(tp, {}))
    )


def taken_too_early(case: Case, given: Given) -> str:
    """Describe partitions that move while another member claims them, unless the valid owner gets them."""
    claimed = claims(case)
    return _joined(
        f"{named(tp)} went to {member!r} while {others[0]!r} still owns it"
        for member, got in given.items()
        for tp in got
        if (others := [m for m in claimed.get(tp, {}) if m != member])
        and valid_owner(case, tp, claimed[tp]) != member
    )


def _may_be_held_back(case: Case, tp: TopicPartition, claimants: Mapping[str, int]) -> bool:
    able = [m for m, subscription in case.group.items() if tp.topic in subscription.topics]
    return any(claimant != member for claimant in claimants for member in able)


def _exists(case: Case, tp: TopicPartition) -> bool:
    return 0 <= tp.partition < case.cluster.partition_count(tp.topic)


def _owners(given: Given) -> dict[TopicPartition, str]:
    return {tp: member for member, got in given.items() for tp in got}


def _went(member: str | None) -> str:
    return "was left out" if member is None else f"went to {member!r}"


def _joined(faults: Iterable[str]) -> str:
    """Join the first few in one line."""
    listed = list(faults)
    more = [f"and {len(listed) - MAX_LISTED:,} more"] if len(listed) > MAX_LISTED else []
    return "; ".join(listed[:MAX_LISTED] + more)


def _read(result: Any, case: Case) -> Given:
    if not isinstance(result, Mapping):
        raise NoAnswerError(f"returned {_article(result)}, not a mapping of members to partitions")
    if isinstance(result, GroupAssignment):
        _check_owners(result, case)
    return {member: [_pair(pair, member) for pair in _listed(got, member)] for member, got in result.items()}


def _check_owners(result: GroupAssignment, case: Case) -> None:
    """Check the shape of an owner array, which would otherwise be read as another assignment."""
    index, members = case.cluster.index, case.group.sorted_members()
    owner = result.owner_array(index, members)
    if owner is None:
        return
    if owner.shape != (index.size,) or owner.dtype.kind != "i":
        raise NoAnswerError(
            f"returned an owner array {owner.dtype}{list(owner.shape)}, not int32[{index.size}]"
        )
    unknown = owner[(owner < NO_OWNER) | (owner >= len(members))]
    if len(unknown):
        raise NoAnswerError(
            f"returned member number {unknown[0]} in its owner array, of {len(members)} members"
        )


def _listed(got: Any, member: Any) -> list[Any]:
    if not isinstance(got, Iterable) or isinstance(got, (str, bytes)):
        raise NoAnswerError(f"gave {member!r} {_article(got)}, not a list of (topic, partition) pairs")
    return list(got)


def _pair(pair: Any, member: Any) -> TopicPartition:
    if isinstance(pair, tuple | list) and len(pair) == 2:
        topic, number = pair
        if isinstance(topic, str) and isinstance(number, int | np.integer) and not isinstance(number, bool):
            return TopicPartition(topic, int(number))
    raise NoAnswerError(f"gave {member!r} {pair!r}, not a (topic, partition) pair")


def _article(thing: Any) -> str:
    return "nothing (None)" if thing is None else f"a {type(thing).__name__}"
