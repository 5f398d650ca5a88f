"""Members without a coordinator, as in Apache RocketMQ: each reads who is there and takes its own share.

An entry point of the plugin group ``rebalance_lab``.
"""

from collections.abc import Iterable
from functools import partial

from coordinator_core.client.peers import PeersMember
from coordinator_core.client.peers.member import PeerState
from coordinator_core.client.peers.settings import PeersSettings
from coordinator_core.protocol.events import Notified
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl

EMPTY, REBALANCING, SETTLED = "Empty", "Rebalancing", "Settled"

PEERS = ProtocolSpec(
    "peers",
    states={
        EMPTY: {REBALANCING},
        REBALANCING: {SETTLED, EMPTY},
        SETTLED: {REBALANCING, EMPTY},
    },
    at_rest=frozenset({SETTLED}),
    round_begins=frozenset({REBALANCING}),
    vacant=frozenset({EMPTY}),
    servers="member lists",
    members_at_rest=frozenset({PeerState.RESTING.value}),
    member=lambda settings, nodes: partial(PeersMember, settings),  # noqa: ARG005 - brokers have the lists
    settings=PeersSettings,
    sentences={Notified: lambda _: "a broker told of other members"},
    meaningless={
        "assignors": "members do not agree on an assignor",
        "remove_member": "no broker removes a member at an administrator's request",
        "owned": "members read the lists of brokers, which begin empty",
        "static": "a broker drops a member with its connection",
        "cooperative": "no member knows what the others own",
        "delay": "no member knows what the others own",
        "owners": "there is no registry with owner nodes",
    },
    aliases={"rocketmq": "average+peers"},
    doc="No coordinator: each member reads who is there and takes its own share (Apache RocketMQ).",
)


@hookimpl
def protocols() -> Iterable[ProtocolSpec]:
    """Return the protocols of this module."""
    return [PEERS]
