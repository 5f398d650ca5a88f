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


def kind_of_request(request: m.Request) -> Kind:
    """Return the kind of a request. One that a member at rest sends again and again changes nothing."""
    kind = kind_of(type(request))
    if kind.may_change and isinstance(request, m.FamilyRequest) and request.repeats:
        return kind._replace(may_change=False)
    return kind


@cache
def kind_of(requests: type[m.Request]) -> Kind:
    """Return the kind of the requests of a type."""
    name = requests.__name__.removesuffix("Request")
    of_family = issubclass(requests, m.FamilyRequest) and requests.is_periodic
    return Kind(name, requests not in _OF_NO_GROUP, not of_family and requests not in PERIODIC_REQUESTS)
