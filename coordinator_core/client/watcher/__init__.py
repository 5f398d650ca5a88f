"""The part of a consumer whose group is in a registry: everybody is told of changes and rebalances alone."""

from coordinator_core.client.watcher.member import WatcherMember

__all__ = ["WatcherMember"]
