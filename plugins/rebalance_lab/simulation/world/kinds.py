"""The kinds of requests: their names, and what follows from the type of a request."""

from functools import cache
from typing import NamedTuple

from coordinator_core.client.periodic import PERIODIC_REQUESTS
from coordinator_core.protocol import messages as m

_OF_NO_GROUP = (
    m.FetchRequest,
    m.FindCoordinatorRequest,
    m.ListOffsetsRequest,
    m.MetadataRequest,
    m.OffsetForLeaderEpochRequest,
)
"""The requests that do not go over the connection to the coordinator."""


class Kind(NamedTuple):
    """The name of a kind of requests, whether they go to the coordinator, and may change anything there."""

    api: str
    of_group: bool
    may_change: bool


@cache
def kind_of(requests: type[m.Request]) -> Kind:
    """Return the kind of the requests of a type."""
    name = requests.__name__.removesuffix("Request")
    of_family = issubclass(requests, m.FamilyRequest) and requests.is_periodic
    return Kind(name, requests not in _OF_NO_GROUP, not of_family and requests not in PERIODIC_REQUESTS)


def is_success(response: m.Response) -> bool:
    """Return whether the response to a periodic request changes nothing at its receiver."""
    if isinstance(response, m.HeartbeatResponse):
        return not response.error
    if isinstance(response, m.OffsetCommitResponse):
        return not [partition for partition in response.partitions if partition.error]
    if isinstance(response, m.FamilyResponse):
        return response.changes_nothing
    return isinstance(response, m.MetadataResponse)
