"""The built-in assignors, one file each. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from assignors.cooperative_sticky import CooperativeStickyAssignor
from assignors.range import RangeAssignor
from assignors.roundrobin import RoundRobinAssignor
from assignors.sticky import StickyAssignor
from coordinator_core.hookspecs import AssignorSpec, hookimpl


@hookimpl
def assignors() -> Iterable[AssignorSpec]:
    """Assignors of this package."""
    return [
        AssignorSpec("range", RangeAssignor, "Each topic in consecutive runs; Kafka's RangeAssignor."),
        AssignorSpec(
            "roundrobin", RoundRobinAssignor, "All partitions in a circle; Kafka's RoundRobinAssignor."
        ),
        AssignorSpec("sticky", StickyAssignor, "Best balance, then racks, then fewest moves; eager."),
        AssignorSpec(
            "cooperative-sticky", CooperativeStickyAssignor, "Sticky's answer without stopping what stays."
        ),
    ]
