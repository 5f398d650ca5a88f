"""The Assignor interface, and the one door through which assignors are run.

An author writes `assign` over plain mappings; the built-ins write `solve` over arrays. Names are those of
Kafka's ConsumerPartitionAssignor. Whatever an assignor returns is validated in `compute_assignment`.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np

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
    RebalanceProtocol,
    TopicPartition,
)

PlainAssignment: TypeAlias = Mapping[str, Iterable[tuple[str, int]]]

MOST_VIOLATIONS = 10
"""So many are told of an assignment that is wrong all over."""


class Capability(StrEnum):
    """What an assignor may declare that it does; the conformance suite then holds it to that."""

    STICKY = "sticky"
    """Keeps what members own where nothing changed, and moves only what it must when one leaves."""
    BALANCED = "balanced"
    """Members that subscribe alike get the same number of partitions, or one more."""
    WEIGHTED = "weighted"
    """Goes by the weights of partitions and the capacities of members, where they are known."""
    RACK_AWARE = "rack-aware"
    """Prefers owners in the rack of a replica."""


@runtime_checkable
class Assignor(Protocol):
    """What an author writes: a name and one pure function.

    Optional attributes, with what counts when they are absent: ``version`` (0), ``supported_protocols``
    ((EAGER,)), ``capabilities`` (none), ``subscription_user_data(topics) -> bytes | None`` (None),
    ``on_assignment(partitions, generation) -> None``.
    """

    name: str

    def assign(self, cluster: Cluster, group: GroupSubscription) -> PlainAssignment | GroupAssignment:
        """Give every partition of a subscribed topic to one of the topic's subscribers."""
        ...


@runtime_checkable
class ArrayAssignor(Protocol):
    """An assignor over arrays: `solve` is called instead of `assign`.

    Optional besides what `Assignor` has: ``prepare(group) -> GroupSubscription``, called before the
    problem is built, for assignors that carry ownership in their user data.
    """

    name: str

    def solve(self, problem: Problem) -> GroupAssignment:
        """The assignment of a problem; most easily `GroupAssignment.from_owners`."""
        ...


AnyAssignor: TypeAlias = Assignor | ArrayAssignor


def supported_protocols(assignor: AnyAssignor) -> Sequence[RebalanceProtocol]:
    """The protocols the assignor can run under; eager when it does not say.

    Raises AssignmentError for what is no list of protocols.
    """
    declared: Any = getattr(assignor, "supported_protocols", (RebalanceProtocol.EAGER,))
    if not isinstance(declared, Iterable) or not all(isinstance(p, RebalanceProtocol) for p in declared):
        said = f"declares supported_protocols {declared!r}, not a list of RebalanceProtocol"
        raise AssignmentError(assignor.name, [said])
    return tuple(declared)


def capabilities(assignor: AnyAssignor) -> frozenset[Capability]:
    """What the assignor declares. Raises AssignmentError for what is no capability."""
    declared: Any = getattr(assignor, "capabilities", ())
    if not isinstance(declared, Iterable):
        raise AssignmentError(assignor.name, [f"declares capabilities {declared!r}, not a list of them"])
    known = [str(each) for each in Capability]
    strange = [str(each) for each in declared if each not in known]
    if strange:
        raise AssignmentError(
            assignor.name, [f"declares the unknown capability {strange[0]!r}; there are {', '.join(known)}"]
        )
    return frozenset(map(Capability, declared))


def subscription_user_data(assignor: AnyAssignor, topics: tuple[str, ...]) -> bytes | None:
    """What the assignor wants to send along with a member's subscription. Raises TypeError for no bytes."""
    encode = getattr(assignor, "subscription_user_data", None)
    data: Any = None if encode is None else encode(topics)
    if data is not None and not isinstance(data, bytes):
        raise TypeError(f"{type(data).__name__}, not bytes or None")
    return data


def tell_assignment(assignor: AnyAssignor, partitions: Partitions, generation: int) -> None:
    """Tell the assignor of a member what the member got, if it wants to know."""
    listen = getattr(assignor, "on_assignment", None)
    if listen is not None:
        listen(partitions, generation)


def compute_assignment(assignor: AnyAssignor, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
    """Run an assignor and check what it returns; members it left out get nothing.

    A partition that nobody got is allowed: a cooperative assignor holds back what moves.
    Raises AssignmentError when the assignor fails, or gives a partition twice, to a stranger, to a member
    that does not subscribe to its topic, or one that does not exist; or where its user data are no bytes or
    its report is none that can be written down.
    """
    try:
        if hasattr(assignor, "solve"):  # cheaper than isinstance with a protocol
            prepare = getattr(assignor, "prepare", None)
            problem = build_problem(cluster, group if prepare is None else prepare(group))
            return _checked(assignor.name, problem, assignor.solve(problem))
        result = assignor.assign(cluster, group)
    except RebalanceLabError:
        raise
    except (Exception, SystemExit) as wrong:
        raise AssignmentError(assignor.name, [f"raised {type(wrong).__name__}: {wrong}"]) from wrong
    if isinstance(result, GroupAssignment):
        return _checked(assignor.name, build_problem(cluster, group), result)
    return _checked_mapping(assignor.name, cluster, group, result)


def unassigned(cluster: Cluster, group: GroupSubscription, assignment: GroupAssignment) -> Partitions:
    """The partitions of subscribed topics that nobody got."""
    problem = build_problem(cluster, group)
    owner = assignment.owners(problem.index, problem.members)
    return Partitions.dense(problem.index, problem.subscribed[owner[problem.subscribed] == NO_OWNER])


def _checked(name: str, problem: Problem, assignment: GroupAssignment) -> GroupAssignment:
    """The array way: an owner array over the problem's own index and members needs two vector checks."""
    owner = assignment.owner_array(problem.index, problem.members)
    if owner is None:
        return _checked_mapping(name, problem.cluster, problem.group, assignment)
    if owner.shape != (problem.index.size,) or owner.dtype.kind != "i":
        found = f"an owner array {owner.dtype}{list(owner.shape)}"
        raise AssignmentError(name, [f"returned {found}, not int32[{problem.index.size}]"])
    wrong_members = (owner < NO_OWNER) | (owner >= len(problem.members))
    if wrong_members.any():
        at = np.flatnonzero(wrong_members).astype(np.int32)
        raise AssignmentError(
            name,
            [
                f"{_named(tp)} went to member number {owner[p]} of {len(problem.members)}"
                for tp, p in zip(problem.index.partitions(at[:MOST_VIOLATIONS]), at, strict=False)
            ],
        )
    _check_subscribed(name, problem, owner)
    _check_said(name, assignment)
    return assignment


def _check_subscribed(name: str, problem: Problem, owner: Int32Array) -> None:
    if problem.alike:
        return
    held = np.flatnonzero(owner != NO_OWNER)
    holders = owner if len(held) == len(owner) else owner[held]
    strange = held[~problem.eligible(holders, held)][:MOST_VIOLATIONS].astype(np.int32)
    if len(strange):
        raise AssignmentError(
            name,
            [
                f"{_named(tp)} went to {problem.members[owner[p]]!r}, which does not subscribe to it"
                for tp, p in zip(problem.index.partitions(strange), strange, strict=True)
            ],
        )


def _checked_mapping(name: str, cluster: Cluster, group: GroupSubscription, result: Any) -> GroupAssignment:
    if not isinstance(result, Mapping):
        raise AssignmentError(name, [f"returned {type(result).__name__}, not a mapping of members"])
    violations: list[str] = []
    owners: dict[TopicPartition, str] = {}
    assigned = dict.fromkeys(group, NO_PARTITIONS)
    for member, partitions in result.items():
        if member not in group:
            violations.append(f"there is no member {member!r}")
            continue
        topics = frozenset(group[member].topics)
        given = _pairs(member, partitions, violations)
        for tp in given:
            violation = _violation(cluster, topics, owners, member, tp)
            if violation:
                violations.append(violation)
            else:
                owners[tp] = member
        if not violations:
            assigned[member] = Partitions.of(given)
        if len(violations) > MOST_VIOLATIONS:
            break
    if violations:
        more = ["and more"] if len(violations) > MOST_VIOLATIONS else []
        raise AssignmentError(name, violations[:MOST_VIOLATIONS] + more)
    checked = GroupAssignment(assigned, user_data=getattr(result, "user_data", None))
    checked.report = getattr(result, "report", None) or {}
    _check_said(name, checked)
    return checked


def _check_said(name: str, assignment: GroupAssignment) -> None:
    """What an assignor says beside the assignment: bytes for members, and a report."""
    data: Any = assignment.user_data
    if not isinstance(data, Mapping) or not all(isinstance(each, bytes) for each in data.values()):
        raise AssignmentError(name, ["returned user data that are no mapping of members to bytes"])
    report: Any = assignment.report
    if not isinstance(report, Mapping):
        raise AssignmentError(name, [f"returned a report that is {type(report).__name__}, not a mapping"])
    try:
        msgspec.json.encode(report)
    except Exception as wrong:
        raise AssignmentError(name, [f"returned a report that is not plain values: {wrong}"]) from wrong


def _pairs(member: str, partitions: Any, violations: list[str]) -> Iterable[TopicPartition]:
    try:
        return [TopicPartition(topic, partition) for topic, partition in partitions]
    except (TypeError, ValueError):
        violations.append(f"what {member!r} gets is no list of (topic, partition) pairs")
    except Exception as wrong:  # a generator of the author's
        violations.append(f"what {member!r} gets raised {type(wrong).__name__}: {wrong}")
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
        return f"{_named(tp)} went to {member!r}, which does not subscribe to it"
    if tp in owners:
        return f"{_named(tp)} went to both {owners[tp]!r} and {member!r}"
    return ""


def _named(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"
