"""What it takes to switch a group to another assignor."""

from collections.abc import Mapping, Sequence

from coordinator_core.assigning.assignor import Capability, is_cooperative
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry.registry import Registry

CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
"""The assignors of Kafka's Java client, with their classes. Those of other clients are among them."""

_PACKAGE = "org.apache.kafka.clients.consumer"

_RESTARTS = (
    "A switch takes a rolling restart, with the new assignor before the old one in the list of each member:"
    " the group uses it from the last one on."
)
_TWICE = (
    " To cooperative-sticky it takes another one, without the old one; Java clients from 3.0 on with the"
    " default list need a single one, without range."
)
_TOGETHER = (
    "range gives the partitions of one number of several topics to one member, which other assignors do not"
    " promise: members that join topics, or keep state of several by partition, must stay with it."
)


def what_switches_take(now: str, to: Sequence[str]) -> str:
    """Return what it takes to switch groups from an assignor to others."""
    twice = _TWICE * any("cooperative" in name for name in to)
    return f"{_RESTARTS}{twice}{f' {_TOGETHER}' * keeps_together(now)}"


def keeps_together(strategy: str) -> bool:
    """Return whether a strategy gives the partitions of one number of several topics to one member."""
    return _assignor(strategy) == "range"


def keeps_owners(strategy: str, registry: Registry) -> bool:
    """Return whether an assignment depends on the owners before it, False of an unknown strategy.

    The loads of such a group are those of its history.
    """
    try:
        return Capability.STICKY in registry.build(registry.strategy(strategy)).capabilities
    except RebalanceLabError:
        return False


def steps_of_a_switch(now: str, to: str, registry: Registry, *, joins: bool = True) -> list[str]:
    """Return the steps of a switch and of the way back, and nothing for assignors that are not Kafka's.

    ``joins``: whether members may join topics. A coordinator selects among the assignors that all members
    list the one that most of them prefer. Source of the two restarts for a cooperative one: KIP-429.
    """
    old, new = _assignor(now), _assignor(to)
    if not {old, new} <= CLASSES.keys():
        return []
    old_class, new_class = (f"{_PACKAGE}.{CLASSES[name]}" for name in (old, new))
    later = (
        "then restart them all again, one after the other, with the new class alone: only then do rounds"
        " become cooperative"
        if is_cooperative(registry.assignor(new)) and not is_cooperative(registry.assignor(old))
        else "the next deployment can leave out the old class"
    )
    first = (
        f"1. In all members set partition.assignment.strategy={new_class},{old_class} (librdkafka:"
        f" {new},{old}) and restart them one after the other: the group uses {new} from the last restart on."
        " Do not leave out the old class: members without one in common cannot be in one group."
    )
    back = (
        f"3. Until the last restart the group keeps {old}, so that a stop half-way is safe. The way back is"
        f" the same with {old} first: the group uses it once most members prefer it."
    )
    return [
        first,
        f"2. When all members run with it, {later}.",
        back,
        *([_TOGETHER] if joins and keeps_together(now) else []),
    ]


def _assignor(strategy: str) -> str:
    return strategy.partition("+")[0]


def not_scored(strategies: Sequence[str], baseline: str) -> list[str]:
    """Return the assignors of Kafka's clients that no strategy has, if the one that runs today is of them."""
    known = {strategy.partition("+")[0] for strategy in strategies}
    return [name for name in sorted(CLASSES) if name not in known] if baseline in CLASSES else []


def what_it_takes(strategies: Mapping[str, str], registry: Registry) -> str:
    """Return what clients need for strategies whose assignors are not Kafka's, or an empty text.

    ``strategies`` maps names as they are shown to strategies. Only clients of the classic protocol assign.
    """
    foreign = {}
    for name, strategy in strategies.items():
        assignor, *modifiers = registry.aliases().get(strategy, strategy).split("+")
        if assignor not in CLASSES and registry.protocols().keys().isdisjoint(modifiers):
            foreign[name] = assignor
    if not foreign:
        return ""
    specs = registry.assignors()
    by_load = [
        name
        for name, assignor in foreign.items()
        if (spec := specs.get(assignor)) and (spec.provider or getattr(spec.factory, "provider", ""))
    ]
    said = (
        f"Kafka's own clients do not have {' and '.join(foreign)}; kafka-python, aiokafka and the Consumer of"
        " rebalance_kafka do."
    )
    if by_load:
        under = f" Under {' and '.join(by_load)}, members must report their rates"
        said += f"{under}; otherwise partitions are counted."
    return said
