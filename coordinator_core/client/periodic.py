"""What a consumer at rest sends again and again. A simulator may leave such messages out."""

from coordinator_core.client.beats import Beats, Heartbeats
from coordinator_core.client.coordinator_finder import CoordinatorFinder
from coordinator_core.client.core import Core
from coordinator_core.client.member import MemberPart
from coordinator_core.client.offsets import Offsets
from coordinator_core.client.positions import Positions
from coordinator_core.client.requests import FOREVER_MS
from coordinator_core.protocol.messages import HeartbeatRequest, MetadataRequest, OffsetCommitRequest

PERIODIC_REQUESTS = (HeartbeatRequest, OffsetCommitRequest, MetadataRequest)
"""The types of the requests that a consumer at rest sends, besides those of one family."""


class Periodic:
    """The heartbeats, auto-commits and refreshes of metadata of one consumer.

    Whoever leaves some of them out changes the parts as if they had been answered: `Beats.leave_out`,
    `Offsets.leave_out`, `Metadata.leave_out`. `Client.look_ahead` afterwards.
    """

    def __init__(
        self,
        core: Core,
        coordinator: CoordinatorFinder,
        member: MemberPart,
        offsets: Offsets,
        positions: Positions,
    ) -> None:
        self._core, self._coordinator, self._member = core, coordinator, member
        self._positions = positions
        self.offsets, self.metadata = offsets, core.metadata

    @property
    def beats(self) -> Beats:
        """The timers of the member."""
        return self._member.beats

    @property
    def node(self) -> int:
        """The coordinator of a consumer at rest."""
        node = self._coordinator.node
        assert node is not None
        return node

    @property
    def commits(self) -> bool:
        """Whether there are partitions, so that auto-commits are sent."""
        return self.offsets.due_ms is not None and bool(self._core.subscriptions.partitions)

    @property
    def waits_since_ms(self) -> int | None:
        """The time of the first periodic request that has no response yet, or None."""
        deadline_ms = self._core.requests.deadline_ms
        return None if deadline_ms >= FOREVER_MS else deadline_ms - self._core.config.request_timeout_ms

    def heartbeats(self) -> Heartbeats | None:
        """Return the heartbeats of a consumer that sends nothing else but commits and refreshes, else None.

        Requests of the periodic kinds may be in flight.
        """
        core = self._core
        if not (core.is_open and core.subscriptions.is_group_managed and core.source is not None):
            return None
        heartbeats = self._member.heartbeats()
        if heartbeats is None or self._coordinator.node is None or not self._member.is_at_rest:
            return None
        if not (self.offsets.is_quiet and self.metadata.is_quiet and self._positions.all_known()):
            return None
        return heartbeats if core.requests.holds_only(*PERIODIC_REQUESTS) else None
