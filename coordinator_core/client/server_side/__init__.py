"""The part of a consumer whose coordinator computes the assignments."""

from coordinator_core.client.server_side.member import ServerSideMember

__all__ = ["ServerSideMember"]
