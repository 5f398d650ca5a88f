"""The families of this package, with their event and metrics. An entry point of ``rebalance_lab``."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from coordinator_core.reading.checks import inside
from coordinator_core.reading.durations import format_duration
from coordinator_core.registry import hookspecs as hooks
from rebalance_lab.scenarios.documents import Document, Duration, Text, about
from rebalance_lab.scenarios.events import event_kind
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.stage import Stage
from rebalance_uncoordinated.events import ClaimFailed, Notified, Rebalanced
from rebalance_uncoordinated.peers.family import PEERS
from rebalance_uncoordinated.watcher.family import OWNERS, WATCHER

if TYPE_CHECKING:
    from rebalance_lab.traces.history import History


class LagView(Document, frozen=True):
    """What the servers of the protocol show to a member is late by a time from now on; 0 ends that."""

    member: Annotated[
        Text, about("The member whose view is late.", expected="a member's id", missing="a member's id")
    ]
    by_ms: Annotated[Duration, about("By how much; 0s ends it.", missing="a duration, for example 10s")] = (
        msgspec.field(name="by")
    )

    def check(self, roster: Roster, where: str, at_ms: int) -> None:  # noqa: ARG002 - the interface's
        roster.has_joined(self.member, inside(inside(where, "lag_view"), "member"))

    def apply(self, stage: Stage) -> None:
        stage.changed("lag_view", self.member, f"by {format_duration(self.by_ms)}")
        stage.tell_servers(lambda servers: servers.lag_view(self.member, self.by_ms))


_COUNTS = (
    ("notifications", "notices", Notified, "notices of changes that servers sent to members"),
    (
        "superfluous_rebalances",
        "rebalances",
        Rebalanced,
        "rebalances of single members, each by itself, after which its share was the same",
    ),
    ("failed_claims", "claims", ClaimFailed, "attempts of members to claim their share that failed"),
)
"""The metrics: names, units, events that are counted, and what these are."""


@hooks.hookimpl
def protocols() -> Iterable[hooks.ProtocolSpec]:
    """Return the families of this package."""
    return [PEERS, WATCHER]


@hooks.hookimpl
def modifiers() -> Iterable[hooks.ModifierSpec]:
    """Return the modifier of members with a registry."""
    return [OWNERS]


@hooks.hookimpl
def scenario_events() -> Iterable[hooks.ScenarioEventSpec]:
    """Return the kinds of scenario events of this package."""
    return [
        event_kind(
            "lag_view",
            "What servers show a member is late: lag_view: {member: c-2, by: 10s}.",
            LagView,
            protocols=("watcher", "peers"),
            elsewhere="all members learn of the group from one coordinator",
        )
    ]


@hooks.hookimpl
def metrics() -> Iterable[hooks.MetricSpec]:
    """Return the metrics of both families, from the counts of their events."""
    return [
        hooks.MetricSpec(name, unit, partial(_counted, kind), group="cost", doc=f"The number of {what}.")
        for name, unit, kind, what in _COUNTS
    ]


def _counted(kind: type[Any], history: "History") -> float:
    return history.counted.get(kind, 0)
