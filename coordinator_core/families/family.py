"""A protocol family with its settings, as one strategy uses it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.delaying import DEFAULT_DELAY_MS
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.member import MakeMember
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.errors import PluginError
from coordinator_core.model import Cluster
from coordinator_core.protocol.messages import DescribedMember, LeaveGroupRequest, MemberIdentity
from coordinator_core.reading.settings import configured
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, ProtocolSpec, Strategy

NONE: Mapping[str, Any] = MappingProxyType({})
DELAY = "scheduled.rebalance.max.delay.ms"
_OF_ROUNDS = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.initial.rebalance.delay.ms",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.new.member.join.timeout.ms",
    "group.notice.static.subscription",
)
UNREAD: Mapping[str, str] = MappingProxyType(dict.fromkeys(_OF_ROUNDS, ""))
"""The settings of groups that join in rounds: `ProtocolSpec.unread` of other protocols has others in their
places."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the coordinator's part of a family may use besides its step.

    ``settings`` are the family's own, None if it has none. ``make_assignor`` returns a fresh assignor, for a
    family whose coordinator computes the assignments. ``cluster`` returns the topics as they are now.
    ``assignors`` are the factories of assignors that members can choose from, by the names that they use, the
    default first; without any, that of ``make_assignor`` is the only one. ``may_describe`` returns whether a
    principal may describe a topic, and ``own_settings`` the settings that a group has for itself.
    """

    settings: Any
    make_assignor: Callable[[], Assignor]
    cluster: Callable[[], Cluster]
    assignors: Mapping[str, Callable[[], Assignor]] = field(default_factory=dict)
    may_describe: Callable[[str, str], bool] = lambda _principal, _topic: True
    own_settings: Callable[[str], Mapping[str, int]] = lambda _group: NONE

    def partitions_of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the numbers of partitions of those of the topics that exist."""
        known = self.cluster().topics
        return {name: known[name].partitions for name in names if name in known}

    def cluster_of(self, names: Iterable[str]) -> Cluster:
        """Return those of the topics that exist, in sorted order."""
        cluster = self.cluster()
        known = cluster.topics
        wanted = [name for name in sorted(dict.fromkeys(names)) if name in known]
        return Cluster({name: known[name] for name in wanted}, cluster.ids)


@dataclass(frozen=True, slots=True)
class Family:
    """The record of a protocol with the settings of a group."""

    spec: ProtocolSpec
    config: Mapping[str, Any]

    def coordinator_config(self) -> CoordinatorConfig:
        """Return the settings of the coordinator."""
        return configured(CoordinatorConfig, self.config)

    def client_config(self, own: Mapping[str, Any] = NONE, **identity: Any) -> ClientConfig:
        """Return the settings of a consumer. ``own`` are those in place of the group's."""
        return configured(ClientConfig, {**self.config, **own}, **identity)

    def settings(self) -> Any:
        """Return the protocol's own settings, or None."""
        return None if self.spec.settings is None else configured(self.spec.settings, self.config)

    def timed(self, strategy: Strategy) -> Strategy:
        """Return the strategy with the delay of the settings, if it has one without a time."""
        if strategy.delay_ms != DELAY_OF_SETTINGS:
            return strategy
        return strategy.with_changes(delay_ms=self.config.get(DELAY, DEFAULT_DELAY_MS))

    def coordinator(
        self,
        make_assignor: Callable[[], Assignor],
        cluster: Callable[[], Cluster],
        assignors: Mapping[str, Callable[[], Assignor]] = NONE,
    ) -> tuple[CoordinatorPart, ...]:
        """Return the coordinator's part; nothing if the members need no coordinator.

        The arguments are those of `Surroundings`.
        """
        if self.spec.servers is not None:
            return ()
        if self.spec.coordinator is None:
            raise PluginError(self.spec.name, "protocols", "the protocol has no part for the coordinator")
        made = self.spec.coordinator(Surroundings(self.settings(), make_assignor, cluster, assignors))
        parts: tuple[CoordinatorPart, ...] = made if self.spec.of_scenarios else (made,)
        return parts

    def member(self, servers: Sequence[int] = (), protocol: str = "") -> MakeMember:
        """Return the factory of the member's part.

        ``servers``: the nodes of the family's own servers. ``protocol``: that of the member, in a family
        whose members speak several.
        """
        if self.spec.member is None:
            raise PluginError(self.spec.name, "protocols", "the protocol has no part for members")
        own: tuple[Any, ...] = () if self.spec.servers is None else (servers,)
        if self.spec.of_scenarios:
            own = (protocol,)
        make: MakeMember = self.spec.member(self.settings(), *own)
        return make


def remove_members(group_id: str, members: Iterable[DescribedMember]) -> LeaveGroupRequest:
    """Return the request of an administrator: static members by instance id, others by id (KIP-345)."""
    reason = "removed by an administrator"
    return LeaveGroupRequest(
        group_id=group_id,
        members=tuple(
            MemberIdentity("" if m.group_instance_id else m.member_id, m.group_instance_id, reason)
            for m in members
        ),
    )
