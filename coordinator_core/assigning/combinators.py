"""Assignors made of assignors. In a strategy's name: ``range+cooperative``, ``optimal+budget=2s:sticky``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coordinator_core.assigning.assignor import (
    AnyAssignor,
    Assignor,
    Capability,
    capabilities,
    compute_assignment,
    subscription_user_data,
    supported_protocols,
    tell_assignment,
)
from coordinator_core.assigning.limits import within
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    NO_OWNER,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Int32Array,
    Partitions,
    RebalanceProtocol,
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A budget in pairs of a partition and a member that may own it: the same on every machine."""

    count: int


def hold_back(problem: Problem, target: Int32Array) -> None:
    """Leave out of an owner array, in place, what another member than the new owner still claims (KIP-429).

    An owner is whoever claims a partition, in whatever generation: a member that lost its generation without
    knowing may still work on it. The claims of others do not keep the valid owner from what it has.
    """
    partition, claimant = problem.claim_partition, problem.claim_member
    if len(partition):
        new = target[partition]
        taken = partition[(new != claimant) & (new != problem.owner[partition])]
        target[taken] = NO_OWNER


def with_cooperative(assignor: AnyAssignor) -> Assignor:
    """Any strategy, made cooperative: what changes hands is left out until its owner has given it up."""

    def assign(cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        wanted = compute_assignment(assignor, cluster, group)
        problem = build_problem(cluster, group)
        target = np.array(wanted.owners(problem.index, problem.members))
        hold_back(problem, target)
        return GroupAssignment.from_owners(
            problem.index, problem.members, target, user_data=wanted.user_data, report=wanted.report
        )

    protocols = RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER
    return _Wrapped(assignor, assign, name=f"{assignor.name}-cooperative", protocols=protocols)


def with_budget(assignor: AnyAssignor, limit: float | Pairs, fallback: AnyAssignor) -> Assignor:
    """The assignor, or the fallback where it does not answer within the limit.

    The limit is in seconds of wall clock, for live groups, or in `Pairs`, which gives the same answer every
    time. An eager fallback of an assignor that can do without stopping everybody is made cooperative. Raises
    ValueError for a limit that is not above 0.
    """
    if not (limit.count if isinstance(limit, Pairs) else limit) > 0:
        raise ValueError(f"a limit above 0, not {limit}")
    if _is_cooperative(assignor) and not _is_cooperative(fallback):
        fallback = with_cooperative(fallback)  # what it moves may still be worked on

    def assign(cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        if isinstance(limit, Pairs):
            fits = _pairs(build_problem(cluster, group)) <= limit.count
            return compute_assignment(assignor if fits else fallback, cluster, group)
        try:
            return within(limit, lambda: compute_assignment(assignor, cluster, group))
        except TimeoutError:
            return compute_assignment(fallback, cluster, group)

    return _Wrapped(assignor, assign, also_told=(fallback,))


def with_deadline(assignor: AnyAssignor, seconds: float) -> Assignor:
    """The assignor; AssignmentError where it takes longer than so many seconds of wall clock."""

    def assign(cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        try:
            return within(seconds, lambda: compute_assignment(assignor, cluster, group))
        except TimeoutError as late:
            raise AssignmentError(assignor.name, [str(late)]) from None

    return _Wrapped(assignor, assign)


class _Wrapped:
    """An assignor around another, which hears and says everything that is not about assigning."""

    def __init__(
        self,
        inner: AnyAssignor,
        assign: Callable[[Cluster, GroupSubscription], GroupAssignment],
        *,
        name: str = "",
        protocols: Sequence[RebalanceProtocol] = (),
        also_told: Sequence[AnyAssignor] = (),
    ) -> None:
        self._inner, self._assign, self._also_told = inner, assign, also_told
        self.name = name or inner.name
        self.version: int = getattr(inner, "version", 0)
        self.supported_protocols = protocols or supported_protocols(inner)
        self.capabilities: frozenset[Capability] = capabilities(inner)

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        return self._assign(cluster, group)

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        return subscription_user_data(self._inner, topics)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        for assignor in (self._inner, *self._also_told):
            tell_assignment(assignor, partitions, generation)


def _is_cooperative(assignor: AnyAssignor) -> bool:
    return RebalanceProtocol.COOPERATIVE in supported_protocols(assignor)


def _pairs(problem: Problem) -> int:
    sizes = np.diff(problem.index.offsets).astype(np.int64)
    members = np.bincount(problem.member_class, minlength=problem.class_count)
    return int(members @ problem.class_subscribes.astype(np.int64) @ sizes)
