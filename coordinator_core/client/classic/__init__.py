"""The classic family's part of a consumer. `ClassicMember` is all that the rest of the program needs."""

from coordinator_core.client.classic.member import ClassicMember

__all__ = ["ClassicMember"]
