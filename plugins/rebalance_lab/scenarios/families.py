"""The protocol family of a strategy on a scenario: refused where the scenario has no meaning under it."""

from collections.abc import Iterable, Sequence

from coordinator_core.errors import InputError
from coordinator_core.families.family import DELAY, Family
from coordinator_core.families.migration import MIGRATION, NAME_OF, PROTOCOLS
from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, ProtocolSpec, ScenarioEventSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.settings import OF_EVERY_STRATEGY, OTHER_DEFAULTS, own_settings


def _meaningless(kind: ScenarioEventSpec, spec: ProtocolSpec) -> str:
    """Return the reason for which an event has no meaning under a protocol, or ""."""
    default = ""
    if kind.protocols and spec.name not in kind.protocols:
        default = kind.elsewhere or f"it is an event of {' and '.join(kind.protocols)}"
    elif kind.name == "remove_member" and spec.remove_members is None:
        default = "an administrator cannot remove its members"
    return spec.meaningless.get(kind.name, default)


def spec_for(scenario: Scenario, strategy: Strategy, registry: Registry) -> ProtocolSpec:
    """Return the protocol of a run: both of Kafka's where members speak another one than the strategy's.

    Raises:
        InputError: if members have a protocol of Kafka's under a strategy that has none of them.
    """
    own = NAME_OF.get(strategy.protocol, "")
    if all(member.protocol in ("", own) for member in scenario.overrides):
        return registry.protocol(strategy.protocol)
    if not own:
        known = " or ".join(NAME_OF)
        found = f"members with a group.protocol under the protocol {strategy.protocol!r}"
        raise InputError(f"scenario {scenario.name!r}", found, f"a strategy of {known}")
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
        reason = _meaningless(registry.scenario_events()[event.kind], spec)
        if reason:
            at = f"{where}: {event.kind} at {format_duration(event.at_ms)}"
            raise refused(at, "an event without a meaning", reason, "another event")
    if scenario.running and spec.running_group is None:
        reason = spec.meaningless.get("owned", "it has no groups that run already")
        raise refused(f"{where}: members", "members with owned", reason, "members that join")
    if strategy.delay_ms is not None and "delay" in spec.meaningless:
        raise refused(where, "a delay", spec.meaningless["delay"], "a strategy without one")
    for own in scenario.overrides:
        spoken = PROTOCOLS[own.protocol or NAME_OF[strategy.protocol]] if spec.of_scenarios else spec
        unsuitable = spoken.meaningless.get("assignors") or _unsuitable(own.assignors, spoken, registry)
        if own.assignors and unsuitable:
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

    ``migrates``: members have one of Kafka's protocols each.

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
        both = migrates and strategy.protocol in NAME_OF
        return both or name not in registry.protocol(strategy.protocol).unread
    if name == DELAY and strategy.delay_ms != DELAY_OF_SETTINGS:
        return False
    own = own_settings(registry.protocol(strategy.protocol))
    if migrates and strategy.protocol in NAME_OF:
        own |= own_settings(MIGRATION)
    return name in own and name not in strategy.settings


def idle(scenario: Scenario, config: Iterable[str], texts: Sequence[str], registry: Registry) -> list[str]:
    """Return a sentence for each of the settings that do nothing, for a run of these strategies.

    ``config`` names settings besides those of the scenario and its members. A setting does nothing if no
    strategy reads it, or if one has another in its place which is not given. The words that choose a strategy
    do nothing if another one was asked for.
    """
    given = dict.fromkeys([*scenario.config, *config])
    given |= dict.fromkeys(name for own in scenario.overrides for name in own.config)
    strategies = {text: registry.strategy(text) for text in texts} if given else {}
    found = []
    for name in given:
        unread = [
            text
            for text, strategy in strategies.items()
            if not reads(strategy, name, registry, migrates=scenario.migrates)
        ]
        instead = dict.fromkeys(
            registry.protocol(strategies[text].protocol).unread.get(name, "") for text in unread
        )
        counts = [other for other in instead if other and other not in given]
        if len(unread) == len(texts) or counts:
            why = f" ({' and '.join(counts)} counts)" if counts else ""
            found.append(f"{name} does nothing under {', '.join(unread)}{why}")
    if scenario.words.strategy not in ("", *texts):
        words = " and ".join(scenario.words.given)
        found.append(f"{words} would choose {scenario.words.strategy}, which is not among the strategies")
    return found
