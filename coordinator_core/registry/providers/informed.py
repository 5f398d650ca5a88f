"""An assignor with a provider around it: reports travel in the user data, beside the assignor's own.

The user data of a subscription is then ``RBL`` and a version byte, the length of the report as a big-endian
int32, the report, and after it the bytes of the assignor inside. Bytes that do not begin so are another
assignor's, and go to the one inside as they are.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from coordinator_core.assigning.assignor import (
    AnyAssignor,
    Capability,
    capabilities,
    compute_assignment,
    subscription_user_data,
    supported_protocols,
    tell_assignment,
)
from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
)
from coordinator_core.registry.host import Provider

_HEAD = struct.Struct(">3sBi")
_MAGIC, _VERSION = b"RBL", 1


def pack(report: bytes, user_data: bytes | None) -> bytes:
    """A report and the assignor's own user data, in one."""
    return _HEAD.pack(_MAGIC, _VERSION, len(report)) + report + (user_data or b"")


def unpack(user_data: bytes | None) -> tuple[bytes | None, bytes | None]:
    """The report, or None; and the assignor's own user data, or None."""
    if user_data is None or len(user_data) < _HEAD.size:
        return None, user_data
    magic, version, length = _HEAD.unpack_from(user_data)
    end = _HEAD.size + length
    if magic != _MAGIC or version != _VERSION or not _HEAD.size <= end <= len(user_data):
        return None, user_data
    return user_data[_HEAD.size : end], user_data[end:] or None


class Informed:
    """An assignor that a provider informs, under the assignor's own name."""

    def __init__(self, inner: AnyAssignor, provider: Provider, source: str) -> None:
        """``source`` is the provider's name, for the report."""
        self._inner, self._provider, self._source = inner, provider, source
        self.name = inner.name
        self.version: int = getattr(inner, "version", 0)
        self.supported_protocols: Sequence[RebalanceProtocol] = supported_protocols(inner)
        self.capabilities: frozenset[Capability] = capabilities(inner)
        self._last: _Told | None = None

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        """The provider's report and what the assignor sends along itself."""
        own, report = subscription_user_data(self._inner, topics), self._provider.report()
        return own if report is None else pack(report, own)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Both want to know."""
        self._provider.assigned(partitions)
        tell_assignment(self._inner, partitions, generation)

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The assignment of the group, with what the provider knows of it.

        What was known when the group became what it is counts as long as it stays so: the rounds of one
        cooperative rebalance have one goal. The report gets ``weights``: where they are from, or "nothing
        known yet".
        """
        reports: dict[str, bytes] = {}
        plain: dict[str, Subscription] = {}
        for member, subscription in group.items():
            report, own = unpack(subscription.user_data)
            if report is not None:
                reports[member] = report
                subscription = msgspec.structs.replace(subscription, user_data=own)
            plain[member] = subscription
        known, group = self._settled(*self._provider.inform(cluster, GroupSubscription(plain), reports))
        assignment = compute_assignment(self._inner, known, group)
        weighted = _has_weights(known)
        assignment.report = {
            **assignment.report,
            "weights": self._source if weighted else "nothing known yet",
        }
        return assignment

    def _settled(self, known: Cluster, group: GroupSubscription) -> tuple[Cluster, GroupSubscription]:
        """What was known before of the same members and partitions, or else this."""
        counts = tuple((topic, info.partitions) for topic, info in sorted(known.topics.items()))
        members = tuple((member, group[member].topics) for member in sorted(group))
        if self._last is None or (self._last.counts, self._last.members) != (counts, members):
            capacities = {member: s.capacity for member, s in group.items()}
            told = _Told(counts, members, known, capacities)
            self._last = told if _has_weights(known) else None
            return known, group
        before = self._last.capacities
        kept = {m: msgspec.structs.replace(s, capacity=before[m]) for m, s in group.items()}
        return self._last.cluster, GroupSubscription(kept)


class _Told(NamedTuple):
    """What a provider said of a group."""

    counts: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, tuple[str, ...]], ...]
    cluster: Cluster
    capacities: Mapping[str, float | None]


def _has_weights(cluster: Cluster) -> bool:
    return any(info.weights is not None for info in cluster.topics.values())
