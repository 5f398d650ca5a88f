"""The kinds of requests: their names, and what follows from the type of a request."""

from functools import cache
from typing import NamedTuple

from coordinator_core.client.periodic import PERIODIC_REQUESTS
from coordinator_core.protocol.messages import (
    FamilyRequest,
    FamilyResponse,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatResponse,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitResponse,
    OffsetForLeaderEpochRequest,
    Request,
    Response,
)

_OF_NO_GROUP = (
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)
"""The requests that do not go over the connection to the coordinator."""


class Kind(NamedTuple):
    """The name of a kind of requests, whether they go to the coordinator, and may change anything there."""

    api: str
    of_group: bool
    may_change: bool


@cache
def kind_of(requests: type[Request]) -> Kind:
    """Return the kind of the requests of a type."""
    name = requests.__name__.removesuffix("Request")
    of_family = issubclass(requests, FamilyRequest) and requests.is_periodic
    return Kind(name, requests not in _OF_NO_GROUP, not of_family and requests not in PERIODIC_REQUESTS)


def is_success(response: Response) -> bool:
    """Return whether the response to a periodic request changes nothing at its receiver."""
    if isinstance(response, HeartbeatResponse):
        return not response.error
    if isinstance(response, OffsetCommitResponse):
        return not [partition for partition in response.partitions if partition.error]
    if isinstance(response, FamilyResponse):
        return response.changes_nothing
    return isinstance(response, MetadataResponse)
