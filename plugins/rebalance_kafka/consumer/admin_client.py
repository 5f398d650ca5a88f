"""Requests to a cluster from outside any group: topics, groups and offsets."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Self

from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from rebalance_kafka.addresses import Place
from rebalance_kafka.consumer.links import Links
from rebalance_kafka.consumer.security import OPEN, Security

RESPONSE_SECONDS = 30.0
RETRY_SECONDS = 0.5
EARLIEST, LATEST = -2, -1
_RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class AdminClient:
    """Sends each request to a broker that can answer it.

    Every request raises ProtocolError if it has no response within 30 s, or one with an error.
    """

    def __init__(
        self,
        bootstrap: Sequence[Place],
        *,
        client_id: str = "rebalance-lab",
        security: Security = OPEN,
    ) -> None:
        self._links = Links(bootstrap, client_id, received=self._received, lost=self._lost, security=security)
        self._bootstrap = list(self._links.bootstrap)
        self._nodes: tuple[int, ...] = ()
        self._pending: dict[int, tuple[int, asyncio.Future[m.Response]]] = {}
        self._last_id = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._links.close()

    @property
    def sent(self) -> int:
        """The number of requests that were sent so far."""
        return self._last_id

    # --- requests

    async def metadata(self, topics: Sequence[str] | None = None) -> m.MetadataResponse:
        """Return the brokers, and the named topics or all."""
        wanted = None if topics is None else tuple(topics)
        response = await self._send_to_any(m.MetadataRequest(topics=wanted))
        assert isinstance(response, m.MetadataResponse)
        self._nodes = response.nodes
        return response

    async def groups(self) -> list[m.ListedGroup]:
        """Return the groups of all brokers, sorted by name."""
        if not self._nodes:
            await self.metadata(())
        found: dict[str, m.ListedGroup] = {}
        for node in self._nodes:
            response = await self._send(node, m.ListGroupsRequest())
            assert isinstance(response, m.ListGroupsResponse)
            _check("ListGroups", response.error)
            found |= {group.group_id: group for group in response.groups}
        return [found[name] for name in sorted(found)]

    async def describe(self, group_id: str) -> m.DescribedGroup:
        """Return the state and the members of a group of the classic protocol. Others are Dead."""
        request = m.DescribeGroupsRequest(group_ids=(group_id,))
        response = await self._send_to_coordinator(group_id, request)
        assert isinstance(response, m.DescribeGroupsResponse)
        return response.groups[0]

    async def describe_consumer_group(self, group_id: str) -> ConsumerGroupDescribeResponse:
        """Return the state and the members of a group of the consumer protocol (KIP-848)."""
        request = ConsumerGroupDescribeRequest(group_id=group_id)
        response = await self._send_to_coordinator(group_id, request)
        assert isinstance(response, ConsumerGroupDescribeResponse)
        _check(f"group {group_id}", response.error)
        return response

    async def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """Return all committed offsets of a group."""
        response = await self._send_to_coordinator(group_id, m.OffsetFetchRequest(group_id=group_id))
        assert isinstance(response, m.OffsetFetchResponse)
        _check(f"offsets of {group_id}", response.error)
        return {
            TopicPartition(entry.topic, entry.partition): entry.offset
            for entry in response.offsets
            if entry.offset >= 0 and entry.error is ErrorCode.NONE
        }

    async def offsets(self, topics: Iterable[m.TopicMetadata], which: int) -> dict[TopicPartition, int]:
        """Return the EARLIEST or the LATEST offset of every partition that has a leader."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic in topics:
            for number, partition in enumerate(topic.partitions):
                if partition.leader >= 0:
                    by_leader.setdefault(partition.leader, []).append(TopicPartition(topic.name, number))
        found: dict[TopicPartition, int] = {}
        for leader, partitions in by_leader.items():
            request = m.ListOffsetsRequest(partitions=tuple(partitions), timestamp=which)
            response = await self._send(leader, request)
            assert isinstance(response, m.ListOffsetsResponse)
            found |= {
                TopicPartition(entry.topic, entry.partition): entry.offset
                for entry in response.offsets
                if entry.error is ErrorCode.NONE
            }
        return found

    # --- brokers

    async def _send_to_coordinator(self, group_id: str, request: m.Request) -> m.Response:
        """Return the response of a group's coordinator; retry while it is unknown or loads its log."""
        loop = asyncio.get_running_loop()
        until = loop.time() + RESPONSE_SECONDS
        while True:
            found = await self._send_to_any(m.FindCoordinatorRequest(key=group_id))
            assert isinstance(found, m.FindCoordinatorResponse)
            error = found.error
            if error is ErrorCode.NONE:
                response = await self._send(found.node, request)
                error = _error_of(response)
                if error not in _RETRIABLE:
                    return response
            if error not in _RETRIABLE or loop.time() >= until:
                raise ProtocolError("broker", f"coordinator of {group_id}: {error.name}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send_to_any(self, request: m.Request) -> m.Response:
        """Return the first response of the known brokers, which are tried one after another."""
        last: ProtocolError | None = None
        for node in [*self._nodes, *self._bootstrap]:
            try:
                return await self._send(node, request)
            except ProtocolError as error:
                last = error
        assert last is not None
        raise last

    async def _send(self, node: int, request: m.Request) -> m.Response:
        self._last_id += 1
        request_id = self._last_id
        future: asyncio.Future[m.Response] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = (node, future)
        self._links.send(node, request_id, request)
        try:
            return await asyncio.wait_for(future, RESPONSE_SECONDS)
        except TimeoutError:
            found = f"no response to {type(request).__name__} within {RESPONSE_SECONDS:g} s"
            raise ProtocolError(self._links.name_of(node), found) from None
        finally:
            self._pending.pop(request_id, None)

    def _received(self, request_id: int, response: m.Response) -> None:
        _, future = self._pending.get(request_id, (0, None))
        if future is not None and not future.done():
            future.set_result(response)

    def _lost(self, node: int, reason: str) -> None:
        for receiver, future in list(self._pending.values()):
            if receiver == node and not future.done():
                future.set_exception(ProtocolError(self._links.name_of(node), reason))


def _error_of(response: m.Response) -> ErrorCode:
    if isinstance(response, m.DescribeGroupsResponse):
        return response.groups[0].error
    error = getattr(response, "error", ErrorCode.NONE)
    assert isinstance(error, ErrorCode)
    return error


def _check(subject: str, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        raise ProtocolError("broker", f"{subject}: {error.name}")
