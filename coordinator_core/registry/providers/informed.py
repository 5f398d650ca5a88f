"""An assignor with a provider around it.

The reports of the members travel in the user data of their subscriptions, in an `envelope` behind the
assignor's own user data.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from coordinator_core.assigning.assignor import Assignor, Wrapper
from coordinator_core.assigning.computing import run, user_data_of
from coordinator_core.assigning.envelope import attach, detach
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import Cluster, GroupAssignment, GroupSubscription, Partitions, Subscription
from coordinator_core.registry.host import Provider

REPORT = b"RBREPRT"
"""The kind of the envelope."""
NOTHING_KNOWN = "nothing known yet"
"""The source of weights in the report of an assignment without weights."""


class Informed(Wrapper):
    """An assignor that receives weights and capacities from a provider, under the assignor's own name."""

    def __init__(self, inner: Assignor, provider: Provider, source: str) -> None:
        """``source`` is the name of the provider in the report of the assignment."""
        super().__init__(inner)
        self.repeats = False
        self._provider, self._source = provider, source
        self._last: _Known | None = None

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        """Return the user data of the assignor with the provider's report."""
        own, report = user_data_of(self.inner, topics), self._provider.report()
        return own if report is None else attach(own, REPORT, report)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Pass the assignment on to the provider and the assignor."""
        self._provider.assigned(partitions)
        super().on_assignment(partitions, generation)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of the group with the provider's weights and capacities.

        They are kept as long as the group stays the same, because all rounds of a cooperative rebalance must
        have one goal. The report gets ``weights``: their source, or "nothing known yet".
        """
        reports: dict[str, bytes] = {}
        plain: dict[str, Subscription] = {}
        for member, subscription in problem.group.items():
            own, report = detach(subscription.user_data, REPORT)
            if report is not None:
                reports[member] = report
                subscription = msgspec.structs.replace(subscription, user_data=own)
            plain[member] = subscription
        informed = self._provider.inform(problem.cluster, GroupSubscription(plain), reports)
        known, group = self._settled(*informed)
        assignment = run(self.inner, build_problem(known, group))
        weights = self._source if _has_weights(known) else NOTHING_KNOWN
        assignment.report = {**assignment.report, "weights": weights}
        return assignment

    def _settled(self, known: Cluster, group: GroupSubscription) -> tuple[Cluster, GroupSubscription]:
        """Return the earlier knowledge of the same members and partitions, or else this."""
        counts = tuple((topic, info.partitions) for topic, info in sorted(known.topics.items()))
        members = tuple((member, group[member].topics) for member in sorted(group))
        if self._last is None or (self._last.counts, self._last.members) != (counts, members):
            capacities = {member: s.capacity for member, s in group.items()}
            self._last = _Known(counts, members, known, capacities) if _has_weights(known) else None
            return known, group
        before = self._last.capacities
        kept = {m: msgspec.structs.replace(s, capacity=before[m]) for m, s in group.items()}
        return self._last.cluster, GroupSubscription(kept)


class _Known(NamedTuple):
    """The knowledge of a provider on a group."""

    counts: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, tuple[str, ...]], ...]
    cluster: Cluster
    capacities: Mapping[str, float | None]


def _has_weights(cluster: Cluster) -> bool:
    return any(info.weights is not None for info in cluster.topics.values())
