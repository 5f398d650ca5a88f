"""The part of a consumer without a coordinator: each member takes its own share (Apache RocketMQ)."""

from coordinator_core.client.peers.member import PeersMember

__all__ = ["PeersMember"]
