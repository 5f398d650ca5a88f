"""The protocol family of a strategy on a scenario: refused where the scenario has no meaning under it."""

from collections.abc import Iterable, Sequence

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.errors import InputError
from coordinator_core.families.family import DELAY, Family
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration
from coordinator_core.reading.settings import settings_of
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, ProtocolSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import OTHER_DEFAULTS


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
    return Family(spec, {**OTHER_DEFAULTS, **scenario.config, **strategy.settings})


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
