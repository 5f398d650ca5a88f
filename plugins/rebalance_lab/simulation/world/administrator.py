"""An administrator of the group: it removes members with requests to the coordinator, as Kafka's tools do."""

from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import DescribedMember, DescribeGroupsRequest, Request, Response
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.network import Connection, Network

NAME = "administrator"
RETRY_MS = 100
REQUEST_TIMEOUT_MS = 30_000

_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class Administrator:
    """Finds the members of a consumer in the group, and removes them.

    ``make_request`` returns the request of the protocol family from the group and its members to remove;
    None if the family has no such request.
    """

    def __init__(
        self,
        group: str,
        make_request: Callable[[str, list[DescribedMember]], Request] | None,
        *,
        clock: VirtualClock,
        network: Network,
        brokers: Brokers,
        messages: dict[str, int],
    ) -> None:
        self._group, self._make_request = group, make_request
        self._clock, self._network, self._brokers, self._messages = clock, network, brokers, messages
        self._connections = 0
        self._waiting: list[tuple[int, Connection, Callable[[], None]]] = []
        brokers.disconnect.append(self._disconnected)

    def remove(self, name: str) -> None:
        """Remove the members whose client id is ``name``. Do nothing if the group has none."""
        make_request, again = self._make_request, partial(self.remove, name)
        assert make_request is not None

        def described(response: Any) -> None:
            group = response.groups[0]
            members = [member for member in group.members if member.client_id == name]
            if group.error in _AGAIN:
                self._clock.after(RETRY_MS, again)
            elif members:
                self._send(make_request(self._group, members), removed, again)

        def removed(response: Any) -> None:
            if response.error in _AGAIN:
                self._clock.after(RETRY_MS, again)

        request = DescribeGroupsRequest(group_ids=(self._group,))
        self._send(request, described, again)

    def _send(self, request: Request, then: Callable[[Any], None], again: Callable[[], None]) -> None:
        """Send a request to the coordinator, or begin again later if there is none or no response comes."""
        node = self._brokers.coordinator_node()
        if node < 0:
            self._clock.after(RETRY_MS, again)
            return
        api = type(request).__name__.removesuffix("Request")
        self._messages[api] = self._messages.get(api, 0) + 1
        self._connections += 1
        connection = self._network.connect(NAME, f"{NAME} {self._connections}", node=node)

        self._waiting.append((node, connection, again))

        def received(response: Any) -> None:
            if self._close(connection):
                then(response)

        def timed_out() -> None:
            if self._close(connection):
                again()

        def reply(response: Response) -> None:
            connection.to_client(received, (response,))

        connection.to_broker(self._brokers.arrived, (request, node, NAME, reply))
        self._clock.after(REQUEST_TIMEOUT_MS, timed_out)

    def _close(self, connection: Connection) -> bool:
        """Close a connection. Return whether it was open."""
        was_open = connection.is_open
        connection.close()
        self._waiting = [entry for entry in self._waiting if entry[1] is not connection]
        return was_open

    def _disconnected(self, node: int) -> None:
        """Begin again with the requests to a broker that has failed."""
        for failed, connection, again in list(self._waiting):
            if failed == node and self._close(connection):
                self._clock.after(RETRY_MS, again)
