"""Assignors made of assignors. In a strategy's name: ``range+cooperative``, ``optimal+budget=2s:sticky``."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coordinator_core.assigning.assignor import Assignor, Wrapper, is_cooperative
from coordinator_core.assigning.computing import run
from coordinator_core.assigning.limits import within
from coordinator_core.assigning.loading import assignor_from
from coordinator_core.assigning.problem import Problem
from coordinator_core.errors import AssignmentError
from coordinator_core.model import NO_OWNER, GroupAssignment, Int32Array, Partitions, RebalanceProtocol


@dataclass(frozen=True, slots=True)
class Pairs:
    """A budget as a number of pairs of a partition and an eligible member: the same on every machine."""

    count: int


def hold_back(problem: Problem, target: Int32Array) -> None:
    """Remove partitions from an owner array, in place, that another member still claims (KIP-429).

    Every claim counts, whatever its generation: a member that has lost its generation without noticing may
    still consume the partition. A valid owner keeps its partition despite the claims of others.
    """
    partition, claimant = problem.claim_partition, problem.claim_member
    if len(partition):
        new = target[partition]
        taken = partition[(new != claimant) & (new != problem.owner[partition])]
        target[taken] = NO_OWNER


def with_cooperative(assignor: Any) -> Assignor:
    """Return a cooperative version of any assignor.

    Partitions that move are left out until their owner has revoked them.
    """
    return _Cooperative(assignor_from(assignor))


def with_budget(assignor: Any, limit: float | Pairs, fallback: Any) -> Assignor:
    """Return an assignor that uses the fallback if the first one exceeds the limit.

    The limit is in seconds of wall-clock time, for live groups, or in `Pairs`, which is deterministic. An
    eager fallback of a cooperative assignor is made cooperative.

    Raises:
        ValueError: if the limit is not above 0.
    """
    if not (limit.count if isinstance(limit, Pairs) else limit) > 0:
        raise ValueError(f"a limit above 0, not {limit}")
    preferred, fallback = assignor_from(assignor), assignor_from(fallback)
    if is_cooperative(preferred) and not is_cooperative(fallback):
        fallback = with_cooperative(fallback)  # members may still consume the partitions that it moves
    return _Budget(preferred, limit, fallback)


def with_deadline(assignor: Any, seconds: float) -> Assignor:
    """Return an assignor that raises AssignmentError after so many seconds of wall-clock time."""
    return _Deadline(assignor_from(assignor), seconds)


class _Cooperative(Wrapper):
    def __init__(self, inner: Assignor) -> None:
        super().__init__(inner, name=f"{inner.name}-cooperative")
        self.supported_protocols = RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER

    def solve(self, problem: Problem) -> GroupAssignment:
        wanted = run(self.inner, problem)
        target = np.array(wanted.owners(problem.index, problem.members))
        hold_back(problem, target)
        return GroupAssignment.from_owners(
            problem.index, problem.members, target, user_data=wanted.user_data, report=wanted.report
        )


class _Budget(Wrapper):
    def __init__(self, inner: Assignor, limit: float | Pairs, fallback: Assignor) -> None:
        super().__init__(inner)
        self._limit, self._fallback = limit, fallback

    def solve(self, problem: Problem) -> GroupAssignment:
        if isinstance(self._limit, Pairs):
            fits = _pairs(problem) <= self._limit.count
            return run(self.inner if fits else self._fallback, problem)
        try:
            return within(self._limit, lambda: run(self.inner, problem))
        except TimeoutError:
            return run(self._fallback, problem)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Pass the assignment on to both assignors."""
        super().on_assignment(partitions, generation)
        self._fallback.on_assignment(partitions, generation)


class _Deadline(Wrapper):
    def __init__(self, inner: Assignor, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    def solve(self, problem: Problem) -> GroupAssignment:
        try:
            return within(self._seconds, lambda: run(self.inner, problem))
        except TimeoutError as error:
            raise AssignmentError(self.inner.name, [str(error)]) from None


def _pairs(problem: Problem) -> int:
    sizes = np.diff(problem.index.offsets).astype(np.int64)
    members = np.bincount(problem.member_class, minlength=problem.class_count)
    return int(members @ problem.class_subscribes.astype(np.int64) @ sizes)
