"""The requests to a registry of nodes with sessions, as Apache ZooKeeper is one, and the responses.

A node has a path and data. An ephemeral node ends with the session that created it. A request of a session
that has expired changes nothing, and is answered with ``expired``.
"""

from collections.abc import Mapping
from typing import ClassVar

from coordinator_core.protocol.messages import FamilyRequest, FamilyResponse

BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"
"""The nodes whose children are the live brokers, and the topics with their numbers of partitions."""


def members_path(group: str) -> str:
    """Return the node whose children are the members of a group."""
    return f"/consumers/{group}/ids"


def owners_path(group: str) -> str:
    """Return the node below which the members of a group claim partitions."""
    return f"/consumers/{group}/owners"


class RequestInSession(FamilyRequest, frozen=True):
    """A request of a session, which continues it."""

    session: int


class SessionAnswer(FamilyResponse, frozen=True):
    """The response to a request of a session."""

    expired: bool

    @property
    def refusal(self) -> str:
        """That the session has expired."""
        return "session expired" if self.expired else ""


class SessionRequest(FamilyRequest, frozen=True):
    """Begin a session. It lasts as long as its requests are less than the timeout apart."""

    is_notable: ClassVar[bool] = True
    timeout_ms: int


class SessionResponse(FamilyResponse, frozen=True):
    session: int


class PingRequest(RequestInSession, frozen=True):
    """Continue a session. ``parents``: the nodes whose versions are of interest."""

    is_periodic: ClassVar[bool] = True
    parents: tuple[str, ...] = ()


class PingResponse(SessionAnswer, frozen=True):
    """``versions`` are those of the nodes, as far as the server has them."""

    versions: Mapping[str, int] = {}


class CreateRequest(RequestInSession, frozen=True):
    """Create ephemeral nodes with their data, all or none.

    ``number`` is 1 or more, and greater than those before it in the session: a request that arrives again is
    not carried out.
    """

    nodes: Mapping[str, str]
    number: int


class CreateResponse(SessionAnswer, frozen=True):
    """``existing`` are the nodes that other sessions have created; then none was created."""

    existing: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """That the session has expired, or how many nodes exist."""
        count = len(self.existing)
        several = f"{count} nodes exist" if count else super().refusal
        return "1 node exists" if count == 1 else several


class DeleteRequest(RequestInSession, frozen=True):
    """Delete those of the nodes that the session has created."""

    nodes: tuple[str, ...]


class DeleteResponse(SessionAnswer, frozen=True):
    pass


class ReadRequest(RequestInSession, frozen=True):
    """Read the children of nodes."""

    parents: tuple[str, ...]


class ReadResponse(SessionAnswer, frozen=True):
    """The names and data of the children, and the version of each parent, as the server has them.

    A version grows with each change of the children.
    """

    children: Mapping[str, Mapping[str, str]] = {}
    versions: Mapping[str, int] = {}


class WatchRequest(RequestInSession, frozen=True):
    """Wait until the children of a node are newer than a version. The response is the only notice."""

    waits: ClassVar[bool] = True
    parent: str
    version: int


class WatchResponse(SessionAnswer, frozen=True):
    version: int = 0


class CloseSessionRequest(RequestInSession, frozen=True):
    """End a session. Its ephemeral nodes end at once."""

    is_notable: ClassVar[bool] = True


class CloseSessionResponse(FamilyResponse, frozen=True):
    pass
