"""Members without a coordinator, as in Apache RocketMQ: each reads who is there and takes its own share."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from coordinator_core.families.family import UNREAD
from coordinator_core.protocol.events import MemberStarted, MemberStopped, SubscriptionChanged
from rebalance_uncoordinated.events import Notified
from rebalance_uncoordinated.family import LONGER, UNCOORDINATED
from rebalance_uncoordinated.peers.member import PeersMember
from rebalance_uncoordinated.peers.member_lists import MemberLists
from rebalance_uncoordinated.settings import PeersSettings


def _unowned(events: Iterable[Any]) -> Mapping[str, tuple[str, str]]:
    """Return why partitions have no owner: subscriptions that differ, if they do."""
    topics: dict[str, frozenset[str]] = {}
    for event in events:
        if isinstance(event, (MemberStarted, SubscriptionChanged)):
            topics[event.client] = frozenset(event.topics)
        elif isinstance(event, MemberStopped):
            topics.pop(event.client, None)
    found = {
        "detection": (
            "brokers still listed a member that had ended",
            f"{LONGER}, or channel.expired.timeout shorter",
        ),
        "standing": (
            "brokers still listed a member that stood still or was cut off",
            f"{LONGER}, or channel.expired.timeout shorter for freezes and cuts",
        ),
        "waiting": ("a member had yet to see a change of the members", LONGER),
    }
    if len(set(topics.values())) > 1:
        found["unassigned"] = (
            "each topic is divided between all members of the group, and the shares of those that do not"
            " subscribe to it belong to nobody",
            "let all members subscribe to the same topics",
        )
    return found


PEERS = replace(
    UNCOORDINATED,
    name="peers",
    servers=MemberLists,
    member=lambda settings, nodes: partial(PeersMember, settings),  # noqa: ARG005 - brokers have the lists
    settings=PeersSettings,
    sentences={Notified: lambda _: "a broker reported a change of the members"},
    unowned=_unowned,
    stops={
        **UNCOORDINATED.stops,
        "detection": (
            "brokers still listed members that had ended, or the shares of members that do not subscribe to a"
            " topic belonged to nobody"
        ),
        "standing": "brokers still listed members that stood still or were cut off",
        "waiting": "members had yet to see a change of the members, each for itself",
    },
    shorter={
        "SHORT_SESSION": {"channel.expired.timeout": 30_000},
        "HEARTBEAT": {"rocketmq.client.rebalance.waitInterval": 5_000},
    },
    meaningless={
        **UNCOORDINATED.meaningless,
        "remove_member": "no broker removes a member at an administrator's request",
        "owned": "members read the lists of brokers, which begin empty",
        "static": "a broker drops a member with its connection",
        "cooperative": "no member knows what the others own",
        "delay": "no member knows what the others own",
        "owners": "there is no registry with owner nodes",
    },
    unread={
        **UNREAD,
        "session.timeout.ms": "channel.expired.timeout",
        "heartbeat.interval.ms": "heartbeat.broker.interval",
    },
    aliases={"rocketmq": "average+peers"},
    doc="No coordinator: each member reads who is there and takes its own share (Apache RocketMQ).",
)
