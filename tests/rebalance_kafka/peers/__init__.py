"""Real clients in separate processes, with one line protocol."""

from tests.rebalance_kafka.peers.process import Peer, PeerError, available, missing
from tests.rebalance_kafka.peers.waiting import Described, Owned, described, stable, wait_until

__all__ = [
    "Described",
    "Owned",
    "Peer",
    "PeerError",
    "available",
    "described",
    "missing",
    "stable",
    "wait_until",
]
