"""A protocol family, as one strategy uses it on one scenario."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.delaying import DEFAULT_DELAY_MS
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.facade import Client
from coordinator_core.client.member import MakeMember
from coordinator_core.client.outcome import ClientOutcome
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.coordinator.records import Record
from coordinator_core.documents.scenario import Member, Scenario
from coordinator_core.documents.settings import configured, settings_of
from coordinator_core.errors import InputError, PluginError
from coordinator_core.model import Cluster
from coordinator_core.protocol.messages import DescribedMember, LeaveGroupRequest, MemberIdentity
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, ProtocolSpec, Strategy
from coordinator_core.registry.registry import Registry

NONE: Mapping[str, Any] = MappingProxyType({})
DELAY = "scheduled.rebalance.max.delay.ms"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the coordinator's part of a family may use besides its step.

    ``settings`` are the family's own, None if it has none. ``make_assignor`` returns a fresh assignor, for a
    family whose coordinator computes the assignments. ``cluster`` returns the topics as they are now.
    ``assignors`` are the factories of assignors that members can choose from, by the names that they use, the
    default first; without any, that of ``make_assignor`` is the only one. ``may_describe`` returns whether a
    principal may describe a topic.
    """

    settings: Any
    make_assignor: Callable[[], Assignor]
    cluster: Callable[[], Cluster]
    assignors: Mapping[str, Callable[[], Assignor]] = field(default_factory=dict)
    may_describe: Callable[[str, str], bool] = lambda _principal, _topic: True


class RunningGroup(Protocol):
    """A group that runs already at time 0, as a family makes it."""

    def records(self, make: Callable[[Member], Assignor]) -> Iterator[Record]:
        """Yield the records of the group in the log. ``make`` returns an assignor for a member."""
        ...

    def resume(self, client: Client, name: str, *, last_response_ms: int, now_ms: int) -> ClientOutcome:
        """Let the client of a member continue its membership."""
        ...


@dataclass(frozen=True, slots=True)
class Family:
    """The record of a protocol with the settings of a scenario and a strategy."""

    spec: ProtocolSpec
    config: Mapping[str, Any]

    def coordinator_config(self) -> CoordinatorConfig:
        """Return the settings of the coordinator."""
        return configured(CoordinatorConfig, self.config)

    def client_config(self, own: Mapping[str, Any] = NONE, **identity: Any) -> ClientConfig:
        """Return the settings of a consumer. ``own`` are those in place of the scenario's."""
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
        self, make_assignor: Callable[[], Assignor], cluster: Callable[[], Cluster]
    ) -> tuple[CoordinatorPart, ...]:
        """Return the coordinator's part; nothing if the members need no coordinator."""
        if self.spec.servers is not None:
            return ()
        if self.spec.coordinator is None:
            raise PluginError(self.spec.name, "protocols", "the protocol has no part for the coordinator")
        part: CoordinatorPart = self.spec.coordinator(Surroundings(self.settings(), make_assignor, cluster))
        return (part,)

    def member(self, servers: Sequence[int] = ()) -> MakeMember:
        """Return the factory of the member's part. ``servers``: the nodes of the family's own servers."""
        if self.spec.member is None:
            raise PluginError(self.spec.name, "protocols", "the protocol has no part for members")
        own = () if self.spec.servers is None else (servers,)
        make: MakeMember = self.spec.member(self.settings(), *own)
        return make


def _meaningless(kind: str, spec: ProtocolSpec, protocols: Sequence[str]) -> str:
    """Return the reason for which an event has no meaning under a protocol, or ""."""
    if protocols and spec.name not in protocols:
        return spec.meaningless.get(kind, f"it is an event of {' and '.join(protocols)}")
    if kind == "remove_member" and spec.remove_members is None:
        return spec.meaningless.get(kind, "an administrator cannot remove its members")
    return spec.meaningless.get(kind, "")


def family_for(scenario: Scenario, strategy: Strategy, registry: Registry) -> Family:
    """Return the family of a strategy, with the settings of the scenario and those of the strategy.

    Raises:
        InputError: if the protocol is unknown, if it has no meaning for an event, for a running group, for
            assignors or instance ids of members of the scenario, or if nothing reads a setting of the
            strategy.
    """
    spec = registry.protocol(strategy.protocol)
    where = f"scenario {scenario.name!r}"
    for event in scenario.events:
        reason = _meaningless(event.kind, spec, registry.scenario_events()[event.kind].protocols)
        if reason:
            at = f"{where}: {event.kind} at {format_duration(event.at_ms)}"
            found = f"an event without a meaning under the protocol {spec.name!r} ({reason})"
            raise InputError(at, found, "another event, or another protocol")
    if scenario.running and spec.running_group is None:
        reason = spec.meaningless.get("owned", "it has no groups that run already")
        found = f"members with owned under the protocol {spec.name!r} ({reason})"
        raise InputError(f"{where}: members", found, "members that join, or another protocol")
    if scenario.has_assignors and "assignors" in spec.meaningless:
        found = f"assignors of members under the protocol {spec.name!r} ({spec.meaningless['assignors']})"
        raise InputError(where, found, "members without assignors, or another protocol")
    static = next((member.id for member in scenario.members if member.instance_id is not None), None)
    if static is not None and "static" not in spec.modifiers:
        reason = spec.meaningless.get("static", "it has no static members")
        found = f"an instance_id under the protocol {spec.name!r} ({reason})"
        raise InputError(f"{where}: member {static!r}", found, "members without one, or another protocol")
    for name in strategy.settings:
        known = settings_of(ClientConfig) | settings_of(CoordinatorConfig)
        known |= settings_of(spec.settings) if spec.settings is not None else {}
        if name not in known:
            raise unknown_name(f"setting of strategy {strategy.name!r}", name, known)
    return Family(spec, {**scenario.config, **strategy.settings})


def check_settings(config: Iterable[str], texts: Sequence[str], where: str, registry: Registry) -> None:
    """Check that each setting of a protocol is read by one of the strategies at least.

    Raises:
        InputError: if none reads it.
    """
    of_consumers = settings_of(ClientConfig) | settings_of(CoordinatorConfig)
    own = [name for name in config if name not in of_consumers]
    strategies = [registry.strategy(text) for text in texts] if own else []
    for name in own:
        if any(reads(strategy, name, registry) for strategy in strategies):
            continue
        protocols = registry.protocols().items()
        readers = [
            f"+{key}" for key, spec in protocols if spec.settings and name in settings_of(spec.settings)
        ]
        expected = f"a strategy with {'+delay' if name == DELAY else ' or '.join(readers)}"
        found = f"a setting that no strategy reads ({', '.join(texts)})"
        raise InputError(inside(where, name), found, expected)


def reads(strategy: Strategy, name: str, registry: Registry) -> bool:
    """Return whether a strategy reads a setting: of consumers, of the coordinator, or of its protocol.

    A setting of its protocol that it sets itself it does not read.
    """
    if name in settings_of(ClientConfig) | settings_of(CoordinatorConfig):
        return True
    kind = registry.protocol(strategy.protocol).settings
    if name == DELAY and strategy.delay_ms != DELAY_OF_SETTINGS:
        return False
    return kind is not None and name in settings_of(kind) and name not in strategy.settings


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
