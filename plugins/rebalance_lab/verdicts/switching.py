"""What it takes to switch a group to another assignor."""

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

_TOGETHER = (
    "range gives the partitions of one number of several topics to one member, which other assignors do not"
    " promise: members that join topics, or keep state of several by partition, must stay with it."
)


def keeps_owners(strategy: str, registry: Registry) -> bool:
    """Return whether an assignment depends on the owners before it, False of an unknown strategy.

    The loads of such a group are those of its history.
    """
    try:
        return Capability.STICKY in registry.build(registry.strategy(strategy)).capabilities
    except RebalanceLabError:
        return False


def steps_of_a_switch(now: str, to: str, registry: Registry) -> list[str]:
    """Return the steps of a switch and of the way back, and nothing for assignors that are not Kafka's.

    A coordinator selects among the assignors that all members
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
        *([_TOGETHER] if old == "range" else []),
    ]


def _assignor(strategy: str) -> str:
    return strategy.partition("+")[0]
