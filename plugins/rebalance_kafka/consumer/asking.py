"""Questions to a cluster from outside any group: one request, one answer."""

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.addresses import Place
from rebalance_kafka.consumer.links import Links
from rebalance_kafka.consumer.security import OPEN, Security

ANSWER_SECONDS = 30.0
EARLIEST, LATEST = -2, -1
RETRY_SECONDS = 0.5
_NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class Asking:
    """Asks brokers, and finds out whom to ask.

    Raises ProtocolError where there is no answer within 30 s, or one with an error.
    """

    def __init__(
        self,
        bootstrap: Sequence[Place],
        *,
        client_id: str = "rebalance-lab",
        security: Security = OPEN,
    ) -> None:
        self._links = Links(bootstrap, client_id, answered=self._answered, lost=self._lost, security=security)
        self._bootstrap = list(self._links.bootstrap)
        self._nodes: tuple[int, ...] = ()
        self._waiting: dict[int, tuple[int, asyncio.Future[m.Response]]] = {}
        self._requests = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._links.close()

    # --- questions

    async def metadata(self, topics: Sequence[str] | None = None) -> m.MetadataResponse:
        """Topics and brokers; all topics when none are named."""
        wanted = None if topics is None else tuple(topics)
        answer = await self._any(m.MetadataRequest(topics=wanted))
        assert isinstance(answer, m.MetadataResponse)
        self._nodes = answer.nodes
        return answer

    async def groups(self) -> list[m.ListedGroup]:
        """The groups of all brokers, by name."""
        if not self._nodes:
            await self.metadata(())
        found: dict[str, m.ListedGroup] = {}
        for node in self._nodes:
            answer = await self._ask(node, m.ListGroupsRequest())
            assert isinstance(answer, m.ListGroupsResponse)
            _check("ListGroups", answer.error)
            found |= {group.group_id: group for group in answer.groups}
        return [found[name] for name in sorted(found)]

    async def describe(self, group_id: str) -> m.DescribedGroup:
        """A group's state and members."""
        answer = await self._coordinator(group_id, m.DescribeGroupsRequest(group_ids=(group_id,)))
        assert isinstance(answer, m.DescribeGroupsResponse)
        return answer.groups[0]

    async def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """Every committed offset of a group."""
        answer = await self._coordinator(group_id, m.OffsetFetchRequest(group_id=group_id))
        assert isinstance(answer, m.OffsetFetchResponse)
        _check(f"offsets of {group_id}", answer.error)
        return {
            TopicPartition(each.topic, each.partition): each.offset
            for each in answer.offsets
            if each.offset >= 0 and each.error is ErrorCode.NONE
        }

    async def offsets(self, topics: Iterable[m.TopicMetadata], which: int) -> dict[TopicPartition, int]:
        """The EARLIEST or the LATEST offset of every partition that has a leader."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic in topics:
            for number, partition in enumerate(topic.partitions):
                if partition.leader >= 0:
                    by_leader.setdefault(partition.leader, []).append(TopicPartition(topic.name, number))
        found: dict[TopicPartition, int] = {}
        for leader, partitions in by_leader.items():
            request = m.ListOffsetsRequest(partitions=tuple(partitions), timestamp=which)
            answer = await self._ask(leader, request)
            assert isinstance(answer, m.ListOffsetsResponse)
            found |= {
                TopicPartition(each.topic, each.partition): each.offset
                for each in answer.offsets
                if each.error is ErrorCode.NONE
            }
        return found

    # --- whom to ask

    async def _coordinator(self, group_id: str, request: m.Request) -> m.Response:
        """The coordinator's answer; while it is being found or loads its log, asked again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + ANSWER_SECONDS
        while True:
            found = await self._any(m.FindCoordinatorRequest(key=group_id))
            assert isinstance(found, m.FindCoordinatorResponse)
            error = found.error
            if error is ErrorCode.NONE:
                answer = await self._ask(found.node, request)
                error = _error_of(answer)
                if error not in _NOT_YET:
                    return answer
            if error not in _NOT_YET or loop.time() >= until:
                raise ProtocolError("broker", f"coordinator of {group_id}: {error.name}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _any(self, request: m.Request) -> m.Response:
        problem: ProtocolError | None = None
        for node in [*self._nodes, *self._bootstrap]:
            try:
                return await self._ask(node, request)
            except ProtocolError as wrong:
                problem = wrong
        assert problem is not None
        raise problem

    async def _ask(self, node: int, request: m.Request) -> m.Response:
        self._requests += 1
        number = self._requests
        future: asyncio.Future[m.Response] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (node, future)
        self._links.send(node, number, request)
        try:
            return await asyncio.wait_for(future, ANSWER_SECONDS)
        except TimeoutError:
            said = f"no answer to {type(request).__name__} within {ANSWER_SECONDS:g} s"
            raise ProtocolError(self._links.name_of(node), said) from None
        finally:
            self._waiting.pop(number, None)

    def _answered(self, number: int, response: m.Response) -> None:
        _, future = self._waiting.get(number, (0, None))
        if future is not None and not future.done():
            future.set_result(response)

    def _lost(self, node: int, problem: str) -> None:
        for asked, future in list(self._waiting.values()):
            if asked == node and not future.done():
                future.set_exception(ProtocolError(self._links.name_of(node), problem))


def _error_of(answer: m.Response) -> ErrorCode:
    if isinstance(answer, m.DescribeGroupsResponse):
        return answer.groups[0].error
    error = getattr(answer, "error", ErrorCode.NONE)
    assert isinstance(error, ErrorCode)
    return error


def _check(what: str, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        raise ProtocolError("broker", f"{what}: {error.name}")
