"""Members that watch a registry and rebalance alone, as Kafka's consumer before 0.9 did.

An entry point of the plugin group ``rebalance_lab``.
"""

from collections.abc import Iterable
from functools import partial

from coordinator_core.client.watcher import WatcherMember
from coordinator_core.client.watcher.events import ClaimFailed
from coordinator_core.client.watcher.member import BROKERS, TOPICS, WatcherState
from coordinator_core.client.watcher.settings import WatcherSettings
from coordinator_core.protocol.events import Notified
from coordinator_core.registry.hookspecs import MetricSpec, ModifierSpec, ProtocolSpec, Strategy, hookimpl

EMPTY, REBALANCING, SETTLED = "Empty", "Rebalancing", "Settled"


def _notified(event: Notified) -> str:
    watched = {BROKERS: "the brokers", TOPICS: "the topics"}.get(event.cause, "the members")
    return f"the watch on {watched} fired"


def _claim_failed(event: ClaimFailed) -> str:
    nodes = [f"{topic} {number}" for topic, numbers in event.held.items() for number in numbers]
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    what = f"claim failed, the node of {', '.join(nodes[:3])}{more} exists"
    return f"{what}: retry {event.retry} of {event.retries}" if event.retry else f"{what}: no more retries"


def _owners(strategy: Strategy, value: str | None) -> Strategy:
    if value != "off":
        raise ValueError("owners=off")
    return strategy.with_changes(settings={**strategy.settings, "owner.nodes": False})


WATCHER = ProtocolSpec(
    "watcher",
    states={
        EMPTY: {REBALANCING},
        REBALANCING: {SETTLED, EMPTY},
        SETTLED: {REBALANCING, EMPTY},
    },
    at_rest=frozenset({SETTLED}),
    round_begins=frozenset({REBALANCING}),
    vacant=frozenset({EMPTY}),
    servers="zookeeper",
    members_at_rest=frozenset({WatcherState.RESTING.value, WatcherState.WITHOUT_SHARE.value}),
    events=(ClaimFailed,),
    sentences={Notified: _notified, ClaimFailed: _claim_failed},
    member=lambda settings, nodes: partial(WatcherMember, settings, nodes),
    settings=WatcherSettings,
    modifiers=frozenset({"owners"}),
    meaningless={
        "assignors": "members do not agree on an assignor",
        "remove_member": "the registry removes no member at an administrator's request",
        "owned": "members begin with sessions of their own",
        "static": "a member lasts as long as its session",
        "cooperative": "members give up all partitions before they read who is there",
        "delay": "members give up all partitions before they read who is there",
    },
    aliases={"watcher": "range+watcher"},
    doc="No coordinator: a registry tells all members of each change, and each claims its share (Kafka 0.8).",
)


@hookimpl
def protocols() -> Iterable[ProtocolSpec]:
    """Return the protocols of this module."""
    return [WATCHER]


@hookimpl
def metrics() -> Iterable[MetricSpec]:
    """Return the metrics of this module."""
    return [
        MetricSpec(
            "failed_claims",
            "claims",
            lambda history: history.counted.get(ClaimFailed, 0),
            group="cost",
            doc="The number of attempts of members to claim their share that failed.",
        )
    ]


@hookimpl
def modifiers() -> Iterable[ModifierSpec]:
    """Return the modifiers of this module."""
    return [
        ModifierSpec(
            "owners",
            _owners,
            of_protocol=True,
            doc="owners=off: members of a registry claim nothing before they work on their partitions.",
        )
    ]
