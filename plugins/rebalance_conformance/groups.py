"""Ordinary groups, drawn by Hypothesis: every member has topics, and every topic exists and has subscribers.

They shrink to one member and one partition. `unusual` has checks with other groups.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from coordinator_core.model import (
    NO_GENERATION,
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicInfo,
)
from rebalance_conformance.cases import Case

T = TypeVar("T")

TOPICS = ("orders", "payments", "logs-2", "logs-10")
MEMBERS = ("c1", "c2", "c10", "C3", "b")
RACKS = ("r1", "r2", "r3")
MOST_PARTITIONS = 5
NEWEST_GENERATION = 3


@st.composite
def ordinary_groups(
    draw: st.DrawFn, *, alike: bool = False, plain: bool = False, least_members: int = 1
) -> Case:
    """Draw a group. ``alike``: equal subscriptions; ``plain``: no racks, weights and capacities."""
    topics = _some(draw, TOPICS)
    racks, weights = (not plain and draw(st.booleans()) for _ in range(2))
    names = _some(draw, MEMBERS, least=least_members)
    chosen = {name: topics if alike else _some(draw, topics) for name in names}
    wanted = [topic for topic in topics if any(topic in subscribed for subscribed in chosen.values())]
    cluster = Cluster({topic: _topic(draw, racks=racks, weights=weights) for topic in wanted})
    members = {n: _member(draw, n, cluster, chosen[n], racks=racks, weights=weights) for n in names}
    return Case(cluster, GroupSubscription(members))


def _some(draw: st.DrawFn, items: Sequence[T], least: int = 1) -> list[T]:
    """Draw some of the items as the bits of one number, which is much faster than a list."""
    bits = draw(st.integers(least, 2 ** len(items) - 1))
    if bits.bit_count() < least:
        bits |= 2**least - 1
    return [item for place, item in enumerate(items) if bits >> place & 1]


def _topic(draw: st.DrawFn, *, racks: bool, weights: bool) -> TopicInfo:
    count = draw(st.integers(1, MOST_PARTITIONS))
    return TopicInfo(
        count,
        tuple(tuple(_some(draw, RACKS, least=0)) for _ in range(count)) if racks else None,
        tuple(float(draw(st.integers(0, 9))) for _ in range(count)) if weights else None,
    )


def _member(
    draw: st.DrawFn, name: str, cluster: Cluster, topics: list[str], *, racks: bool, weights: bool
) -> Subscription:
    """Draw a member. It claims existing partitions, also those of other members and of other topics."""
    existing = [(t, n) for t, info in cluster.topics.items() for n in range(info.partitions)]
    half = _some(draw, existing, least=0)
    owned = _some(draw, half, least=0) if half else []
    optional: dict[str, Any] = {}
    if racks:
        optional["rack"] = draw(st.sampled_from((None, *RACKS)))
    if weights:
        optional["capacity"] = draw(st.sampled_from((None, 1.0, 2.0, 5.0)))
    if draw(st.booleans()):
        optional["instance_id"] = f"i{draw(st.integers(0, 9))}-{name}"
    generation = draw(st.integers(0, NEWEST_GENERATION)) if owned else NO_GENERATION
    return Subscription(tuple(topics), Partitions.of(owned), generation, **optional)
