"""The protocol family of a strategy on a scenario: refused where the scenario has no meaning under it."""

from collections.abc import Iterable, Sequence

from coordinator_core.errors import InputError
from coordinator_core.families.family import DELAY, Family
from coordinator_core.families.migration import MIGRATION, NAME_OF
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, ProtocolSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import OF_EVERY_STRATEGY, OTHER_DEFAULTS, own_settings


def _meaningless(kind: str, spec: ProtocolSpec, protocols: Sequence[str]) -> str:
    """Return the reason for which an event has no meaning under a protocol, or ""."""
    default = ""
    if protocols and spec.name not in protocols:
        default = f"it is an event of {' and '.join(protocols)}"
    elif kind == "remove_member" and spec.remove_members is None:
        default = "an administrator cannot remove its members"
    return spec.meaningless.get(kind, default)


def spec_for(scenario: Scenario, strategy: Strategy, registry: Registry) -> ProtocolSpec:
    """Return the protocol of a run: both of Kafka's where the scenario goes from one to the other.

    Raises:
        InputError: if members are restarted with a protocol under a strategy that has none of Kafka's.
    """
    if not scenario.migrates:
        return registry.protocol(strategy.protocol)
    if strategy.protocol not in NAME_OF:
        known = " or ".join(NAME_OF)
        found = f"a restart with another protocol under the protocol {strategy.protocol!r}"
        raise InputError(f"scenario {scenario.name!r}: rolling_restart", found, f"a strategy of {known}")
    return registry.protocol(MIGRATION.name)


def family_for(scenario: Scenario, strategy: Strategy, registry: Registry) -> Family:
    """Return the family of a strategy, with the settings of the scenario and those of the strategy.

    Raises:
        InputError: if the protocol is unknown, if it has no meaning for an event, for a running group, for
            assignors or instance ids of members of the scenario, or if nothing reads a setting of the
            strategy.
    """
    spec = spec_for(scenario, strategy, registry)
    where = f"scenario {scenario.name!r}"

    def refused(at: str, what: str, reason: str, instead: str) -> InputError:
        found = f"{what} under the protocol {spec.name!r} ({reason})"
        return InputError(at, found, f"{instead}, or another protocol")

    for event in scenario.events:
        reason = _meaningless(event.kind, spec, registry.scenario_events()[event.kind].protocols)
        if reason:
            at = f"{where}: {event.kind} at {format_duration(event.at_ms)}"
            raise refused(at, "an event without a meaning", reason, "another event")
    if scenario.running and spec.running_group is None:
        reason = spec.meaningless.get("owned", "it has no groups that run already")
        raise refused(f"{where}: members", "members with owned", reason, "members that join")
    if strategy.delay_ms is not None and "delay" in spec.meaningless:
        raise refused(where, "a delay", spec.meaningless["delay"], "a strategy without one")
    for texts in scenario.assignors_of_members:
        unsuitable = spec.meaningless.get("assignors") or _unsuitable(texts, spec, registry)
        if unsuitable:
            raise refused(where, "assignors of members", unsuitable, "members without assignors")
    static = next((member.id for member in scenario.members if member.instance_id is not None), None)
    if static is not None and "static" not in spec.modifiers:
        reason = spec.meaningless.get("static", "it has no static members")
        raise refused(f"{where}: member {static!r}", "an instance_id", reason, "members without one")
    for name in strategy.settings:
        known = {**OF_EVERY_STRATEGY, **own_settings(spec)}
        if name not in known:
            raise unknown_name(f"setting of strategy {strategy.name!r}", name, known)
    return Family(spec, {**OTHER_DEFAULTS, **scenario.config, **strategy.settings})


def _unsuitable(texts: Sequence[str], spec: ProtocolSpec, registry: Registry) -> str:
    """Return why a member cannot have these assignors under a protocol, or ""."""
    if spec.own_epochs and len(texts) > 1:
        return f"a member names one: found {', '.join(texts)}"
    for text in texts:
        known = registry.assignors().get(registry.strategy(text, what="assignor").assignor)
        if known is not None and known.protocols and spec.name not in known.protocols:
            return f"{text!r} is an assignor of the protocol {' or '.join(known.protocols)}"
    return ""


def check_settings(
    config: Iterable[str], texts: Sequence[str], where: str, registry: Registry, *, migrates: bool = False
) -> None:
    """Check that each setting of a protocol is read by one of the strategies at least.

    ``migrates``: the scenario goes from one of Kafka's protocols to the other.

    Raises:
        InputError: if none reads it.
    """
    own = [name for name in config if name not in OF_EVERY_STRATEGY]
    strategies = [registry.strategy(text) for text in texts] if own else []
    for name in own:
        if any(reads(strategy, name, registry, migrates=migrates) for strategy in strategies):
            continue
        readers = [f"+{key}" for key, spec in registry.protocols().items() if name in own_settings(spec)]
        expected = f"a strategy with {'+delay' if name == DELAY else ' or '.join(readers)}"
        found = f"a setting that no strategy reads ({', '.join(texts)})"
        raise InputError(inside(where, name), found, expected)


def reads(strategy: Strategy, name: str, registry: Registry, *, migrates: bool = False) -> bool:
    """Return whether a strategy reads a setting: of consumers, of the coordinator, or of its protocol.

    A setting of its protocol that it sets itself it does not read.
    """
    if name in OF_EVERY_STRATEGY:
        return True
    if name == DELAY and strategy.delay_ms != DELAY_OF_SETTINGS:
        return False
    own = own_settings(registry.protocol(strategy.protocol))
    if migrates and strategy.protocol in NAME_OF:
        own |= own_settings(MIGRATION)
    return name in own and name not in strategy.settings
