"""The built-in assignors, one file each. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from assignors.average import AverageAssignor, AverageByCircleAssignor
from assignors.cooperative_sticky import CooperativeStickyAssignor, cooperative_owners
from assignors.kip848 import Range848Assignor, Uniform848Assignor
from assignors.lag_aware import LagAwareAssignor
from assignors.optimal import OPTIONS, OptimalAssignor
from assignors.range import RangeAssignor, range_owners
from assignors.rendezvous import RendezvousAssignor
from assignors.roundrobin import RoundRobinAssignor, roundrobin_owners
from assignors.sticky import StickyAssignor, sticky_owners
from assignors.sticky_balanced import StickyBalancedAssignor
from assignors.weighted.options import read_share
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl

_OF_COORDINATORS = ("reconcile", "server-side")
"""The protocols whose coordinator runs the assignor. Members of the others would stop for each round."""


@hookimpl
def assignors() -> Iterable[AssignorSpec]:
    """Return the assignors of this package."""
    return [
        AssignorSpec(
            "range",
            RangeAssignor,
            "Each topic in consecutive runs; Kafka's RangeAssignor.",
            owners=range_owners,
        ),
        AssignorSpec(
            "roundrobin",
            RoundRobinAssignor,
            "All partitions in a circle; Kafka's RoundRobinAssignor.",
            owners=roundrobin_owners,
        ),
        AssignorSpec(
            "sticky",
            StickyAssignor,
            "Keeps owners, and evens out loads move by move; Kafka's StickyAssignor, eager.",
            owners=sticky_owners,
            by_names=True,
        ),
        AssignorSpec(
            "cooperative-sticky",
            CooperativeStickyAssignor,
            "The same without stopping what stays; Kafka's CooperativeStickyAssignor.",
            owners=cooperative_owners,
            by_names=True,
        ),
        AssignorSpec(
            "sticky-balanced",
            StickyBalancedAssignor,
            "Best balance, then racks, then fewest moves; eager.",
            owners=balanced_owners,
        ),
        AssignorSpec(
            "optimal",
            OptimalAssignor,
            "The best there is, by weights and capacities where they are known; OR-Tools.",
            options=OPTIONS,
            provider="reported-rates",
        ),
        AssignorSpec(
            "lag-aware",
            LagAwareAssignor,
            "The heaviest first, sticky within a tolerance; fast at any size.",
            options={"tolerance": read_share},
            provider="reported-work",
        ),
        AssignorSpec(
            "rendezvous", RendezvousAssignor, "Highest random weight with bounded load; nothing remembered."
        ),
        AssignorSpec("average", AverageAssignor, "Consecutive slices of each topic; RocketMQ's default."),
        AssignorSpec("average-by-circle", AverageByCircleAssignor, "Each topic in a circle; RocketMQ's."),
        AssignorSpec(
            "range-848",
            Range848Assignor,
            "Range without racks; Kafka's for KIP-848.",
            protocols=_OF_COORDINATORS,
        ),
        AssignorSpec(
            "uniform-848",
            Uniform848Assignor,
            "Equally many for each, which keep theirs; Kafka's default for KIP-848.",
            protocols=_OF_COORDINATORS,
        ),
    ]
