"""Members that watch a registry and rebalance alone, as Kafka's consumer before 0.9 did."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from coordinator_core.families.family import UNREAD
from coordinator_core.protocol.events import Assigned
from coordinator_core.reading.partitions import listed
from coordinator_core.registry.hookspecs import ModifierSpec, Strategy
from rebalance_uncoordinated.events import ClaimFailed, Notified
from rebalance_uncoordinated.family import LONGER, UNCOORDINATED
from rebalance_uncoordinated.settings import WatcherSettings
from rebalance_uncoordinated.watcher.claims import BACKOFF, needs
from rebalance_uncoordinated.watcher.ensemble import Ensemble
from rebalance_uncoordinated.watcher.member import WatcherMember
from rebalance_uncoordinated.watcher.messages import BROKERS, TOPICS

_MOST_NAMES = 4


def _notified(event: Notified) -> str:
    watched = {BROKERS: "the brokers", TOPICS: "the topics"}.get(event.cause, "the members")
    return f"the watch on {watched} fired"


def _claim_failed(event: ClaimFailed) -> str:
    count = sum(map(len, event.held.values()))
    shown = dict(list(event.held.items())[:_MOST_NAMES])
    more = f" and of {len(event.held) - _MOST_NAMES} more topics" if len(event.held) > _MOST_NAMES else ""
    exists = "the node of {} exists" if count == 1 else "the nodes of {} exist"
    what = f"claim failed, {exists.format(listed(shown) + more)}"
    return f"{what}: retry {event.retry} of {event.retries}" if event.retry else f"{what}: no more retries"


def _unowned(events: Iterable[Any]) -> Mapping[str, tuple[str, str]]:
    """Return why partitions have no owner: the members that have no retries left are named."""
    gave_up: dict[str, int] = {}
    for event in events:
        if isinstance(event, ClaimFailed) and not event.retry:
            gave_up[event.client] = event.retries
        elif isinstance(event, Assigned) and event.owned:
            gave_up.pop(event.client, None)
    found = {
        "detection": (
            "the registry still had the session of a member that had ended",
            f"{LONGER}, or zookeeper.session.timeout.ms shorter",
        ),
        "standing": (
            "the registry still had the session of a member that stood still or was cut off",
            f"{LONGER}, or zookeeper.session.timeout.ms shorter for freezes and cuts",
        ),
        "waiting": ("a member had yet to see a change, or to claim its share", LONGER),
    }
    if gave_up:
        names = sorted(gave_up)
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        have = "has" if len(names) == 1 else "have"
        found["unassigned"] = (
            f"others still had claims to them, and {', '.join(names[:_MOST_NAMES])}{more} {have} no retries"
            " left, and no share until the next notice",
            f"set rebalance.max.retries (now {gave_up[names[0]]}) or rebalance.backoff.ms higher",
        )
    return found


def _owners(strategy: Strategy, value: str | None) -> Strategy:
    if value != "off":
        raise ValueError("owners=off")
    return strategy.with_changes(settings={**strategy.settings, "owner.nodes": False})


WATCHER = replace(
    UNCOORDINATED,
    name="watcher",
    servers=Ensemble,
    events=(*UNCOORDINATED.events, ClaimFailed),
    sentences={Notified: _notified, ClaimFailed: _claim_failed},
    member=lambda settings, nodes: partial(WatcherMember, settings, nodes),
    settings=WatcherSettings,
    modifiers=frozenset({"owners"}),
    unowned=_unowned,
    stops={
        **UNCOORDINATED.stops,
        "detection": "the registry still had the sessions of members that had ended, or members had no"
        " retries left",
        "standing": "the registry still had the sessions of members that stood still or were cut off",
        "waiting": "at each change all members gave up their partitions, and claimed theirs when others"
        " had done so",
    },
    shorter={"SHORT_SESSION": {"zookeeper.session.timeout.ms": 2_000}, "BACKOFF": {BACKOFF: 500}},
    needs=needs,
    meaningless={
        **UNCOORDINATED.meaningless,
        "remove_member": "the registry removes no member at an administrator's request",
        "owned": "members begin with sessions of their own",
        "static": "a member lasts as long as its session",
        "cooperative": "members give up all partitions before they read who is there",
        "delay": "members give up all partitions before they read who is there",
    },
    unread={**UNREAD, "session.timeout.ms": "zookeeper.session.timeout.ms"},
    aliases={"watcher": "range+watcher"},
    doc="No coordinator: a registry tells all members of each change, and each claims its share (Kafka 0.8).",
)

OWNERS = ModifierSpec(
    "owners",
    _owners,
    of_protocol=True,
    elsewhere="generations keep members apart: there are no owner nodes",
    doc="owners=off: members of a registry claim nothing before they work on their partitions.",
)
