"""The member's part of groups that the coordinator reconciles (``group.protocol=consumer``, KIP-848)."""

from coordinator_core.client.reconcile.member import ReconcileMember

__all__ = ["ReconcileMember"]
