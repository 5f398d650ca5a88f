"""Running an assignor and validating its result."""

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.assignor import Assignor, Wrapper, is_cooperative
from coordinator_core.assigning.loading import assignor_from
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.errors import AssignmentError, RebalanceLabError
from coordinator_core.model import (
    NO_OWNER,
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Int32Array,
    Partitions,
    TopicPartition,
)
from coordinator_core.reading.raised import raised

MAX_VIOLATIONS = 10
"""The number of violations that an error lists."""


def compute_assignment(assignor: Any, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
    """Run an assignor, given in any form that `assignor_from` accepts, and validate its result.

    Members without an entry in the result get no partitions. Partitions without an owner are allowed, because
    a cooperative assignor holds back partitions that move.

    Raises:
        AssignmentError: if the assignor raises an exception; if it assigns a partition twice, to an unknown
            member, or to a member that does not subscribe to its topic; if it assigns a partition that does
            not exist; or if its user data are not bytes or its report is not serializable.
        InputError: if weights, racks or capacities of the group are invalid.
    """
    return run(assignor_from(assignor), build_problem(cluster, group))


def run(assignor: Assignor, problem: Problem) -> GroupAssignment:
    """Run an assignor on a problem and validate its result, as `compute_assignment` does."""
    try:
        result = assignor.solve(problem)
    except RebalanceLabError:
        raise
    except (Exception, SystemExit) as error:
        raise AssignmentError(assignor.name, [f"raised {raised(error)}"]) from error
    if isinstance(assignor, Wrapper) and isinstance(result, GroupAssignment):
        return result
    return _validated(assignor, problem, result)


def settled(assignor: Assignor, problem: Problem) -> GroupAssignment:
    """Return the assignment in which a group comes to rest: that of a second round of a cooperative assignor.

    Raises:
        AssignmentError: as `compute_assignment`.
    """
    found = run(assignor, problem)
    if not is_cooperative(assignor):
        return found
    owning = {
        member: msgspec.structs.replace(subscription, owned=Partitions.of(found[member]))
        for member, subscription in problem.group.items()
    }
    return run(assignor, problem.with_claims(GroupSubscription(owning)))


def user_data_of(assignor: Assignor, topics: tuple[str, ...]) -> bytes | None:
    """Return the user data that a member sends with its subscription to the topics.

    Raises:
        AssignmentError: if the assignor raises an exception, or returns something else than bytes or None.
    """
    try:
        data: Any = assignor.subscription_user_data(topics)
    except RebalanceLabError:
        raise
    except (Exception, SystemExit) as error:
        violation = f"subscription_user_data raised {raised(error)}"
        raise AssignmentError(assignor.name, [violation]) from error
    if data is not None and not isinstance(data, bytes):
        violation = f"subscription_user_data returned {reprlib.repr(data)}, expected bytes or None"
        raise AssignmentError(assignor.name, [violation])
    return data


def unassigned(cluster: Cluster, group: GroupSubscription, assignment: GroupAssignment) -> Partitions:
    """Return the partitions of subscribed topics that have no owner."""
    problem = build_problem(cluster, group)
    owner = assignment.owners(problem.index, problem.members)
    return Partitions.dense(problem.index, problem.subscribed[owner[problem.subscribed] == NO_OWNER])


def _validated(assignor: Assignor, problem: Problem, result: Any) -> GroupAssignment:
    """Return a valid result, or raise AssignmentError. Owner arrays are checked without a loop."""
    name = assignor.name
    if not isinstance(result, GroupAssignment):
        return _validated_mapping(name, problem, result)
    owner = result.owner_array(problem.index, problem.members)
    if owner is None:
        return _validated_mapping(name, problem, result)
    if owner.shape != (problem.index.size,) or owner.dtype.kind != "i":
        found = f"an owner array {owner.dtype}{list(owner.shape)}"
        raise AssignmentError(name, [f"returned {found}, not int32[{problem.index.size}]"])
    if faults := _faults_in(problem, owner, assignor.subscribers_only):
        raise AssignmentError(name, faults)
    _check_extras(name, result)
    return result


def _faults_in(problem: Problem, owner: Int32Array, subscribers_only: bool) -> list[str]:
    """Describe the first owners that do not exist, or else those that do not subscribe."""
    unknown = np.flatnonzero((owner < NO_OWNER) | (owner >= len(problem.members)))
    if len(unknown):
        of = f"of {len(problem.members)}"
        return [f"{name} went to member number {m} {of}" for name, m in _given(problem, owner, unknown)]
    if problem.alike or not subscribers_only:
        return []
    held = np.flatnonzero(owner != NO_OWNER)
    holders = owner if len(held) == len(owner) else owner[held]
    allowed = problem.eligible(holders, held)
    if allowed.all():
        return []
    invalid = held[~allowed]
    return [_not_subscribed(name, problem.members[m]) for name, m in _given(problem, owner, invalid)]


def _given(problem: Problem, owner: Int32Array, at: NDArray[np.intp]) -> Iterator[tuple[str, int]]:
    """Return the names of the first of some partitions, with the numbers of their owners."""
    first = at[:MAX_VIOLATIONS].astype(np.int32)
    return zip(map(_named, problem.index.partitions(first)), owner[first].tolist(), strict=True)


def _not_subscribed(name: str, member: str) -> str:
    return f"{name} went to {member!r}, which does not subscribe to it"


def _validated_mapping(name: str, problem: Problem, result: Any) -> GroupAssignment:
    if not isinstance(result, Mapping):
        raise AssignmentError(name, [f"returned {type(result).__name__}, not a mapping of members"])
    group = problem.group
    violations: list[str] = []
    owners: dict[TopicPartition, str] = {}
    assigned = dict.fromkeys(group, NO_PARTITIONS)
    for member, partitions in result.items():
        if member not in group:
            violations.append(f"there is no member {member!r}")
            continue
        topics = frozenset(group[member].topics)
        pairs = _pairs(member, partitions, violations)
        for tp in pairs:
            violation = _violation(problem.cluster, topics, owners, member, tp)
            if violation:
                violations.append(violation)
            else:
                owners[tp] = member
        if not violations:
            assigned[member] = Partitions.of(pairs)
        if len(violations) > MAX_VIOLATIONS:
            break
    if violations:
        more = ["and more"] if len(violations) > MAX_VIOLATIONS else []
        raise AssignmentError(name, violations[:MAX_VIOLATIONS] + more)
    assignment = GroupAssignment(assigned, user_data=getattr(result, "user_data", None))
    assignment.report = getattr(result, "report", None) or {}
    _check_extras(name, assignment)
    return assignment


def _check_extras(name: str, assignment: GroupAssignment) -> None:
    """Check the user data and the report of an assignment."""
    user_data: Any = assignment.user_data
    if not isinstance(user_data, Mapping) or not all(isinstance(data, bytes) for data in user_data.values()):
        raise AssignmentError(name, ["returned user data that are no mapping of members to bytes"])
    report: Any = assignment.report
    if not isinstance(report, Mapping):
        raise AssignmentError(name, [f"returned a report that is {type(report).__name__}, not a mapping"])
    try:
        msgspec.json.encode(report)
    except Exception as error:
        raise AssignmentError(name, [f"returned a report that is not plain values: {error}"]) from error


def _pairs(member: str, partitions: Any, violations: list[str]) -> Iterable[TopicPartition]:
    try:
        return [TopicPartition(topic, partition) for topic, partition in partitions]
    except (TypeError, ValueError):
        violations.append(f"what {member!r} gets is no list of (topic, partition) pairs")
    except Exception as error:  # raised by a generator of the author
        violations.append(f"what {member!r} gets raised {raised(error)}")
    return []


def _violation(
    cluster: Cluster,
    topics: frozenset[str],
    owners: Mapping[TopicPartition, str],
    member: str,
    tp: TopicPartition,
) -> str:
    count = cluster.partition_count(tp.topic) if isinstance(tp.topic, str) else 0
    if not isinstance(tp.partition, (int, np.integer)) or not 0 <= tp.partition < count:
        return f"{_named(tp)} does not exist"
    if tp.topic not in topics:
        return _not_subscribed(_named(tp), member)
    if tp in owners:
        return f"{_named(tp)} went to both {owners[tp]!r} and {member!r}"
    return ""


def _named(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"
