"""The classic group that runs already when a scenario begins, in the log and in its members (PROTOCOL 8.1).

The group looks as if it had always run under the strategy that is simulated. The subscription with which each
member has joined has the user data that its assignor returns for the partitions that the member owns now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from uuid import UUID

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import user_data_of
from coordinator_core.client.classic.rebalance_protocol import rebalance_protocol
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.facade import Client
from coordinator_core.client.generation import Generation
from coordinator_core.client.outcome import ClientOutcome
from coordinator_core.coordinator.records import (
    GenerationRecord,
    GroupRecord,
    OffsetRecord,
    Record,
    StoredGroup,
    StoredMember,
    StoredOffset,
)
from coordinator_core.errors import AssignmentError, RebalanceLabError
from coordinator_core.java import java_order
from coordinator_core.model import (
    NO_PARTITIONS,
    Cluster,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicInfo,
)
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, encode_assignment, encode_subscription
from coordinator_core.reading.raised import raised

FIRST_OFFSET = 0
"""The committed offset and the position of every partition at time 0. The backlog lies behind it."""


@dataclass(frozen=True, slots=True)
class RunningMember:
    """A member of the group, with the sorted partitions that it owns.

    ``topics`` are those that it has joined with: all that match its ``pattern``, if it has one. The group
    gives it the ``member_id``.
    """

    name: str
    topics: tuple[str, ...]
    pattern: str | None
    owned: Partitions
    config: ClientConfig
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class RunningGroup:
    """The group at time 0 in its generation ``number``, its leader first.

    ``based_on``: the topics its members subscribe to.
    """

    protocol: str
    number: int
    members: Mapping[str, RunningMember]
    based_on: Cluster

    def generation_of(self, name: str) -> Generation:
        """Return the identity of a member in the group."""
        return Generation(self.number, self.members[name].member_id, self.protocol)

    def leads(self, name: str) -> bool:
        """Return whether a member is the leader."""
        return name == next(iter(self.members))

    def records(self, make: Callable[[str], Assignor]) -> Iterator[Record]:
        """Yield the records of the group in the log. ``make`` returns an assignor for a member by name.

        Raises:
            AssignmentError: if the assignor raises an exception.
        """
        members = tuple(self._stored(member, make(member.name)) for member in self.members.values())
        group_id = self.group_id
        leader = members[0].member_id
        stored = StoredGroup(PROTOCOL_TYPE, self.protocol, self.number, leader, members, changed_at_ms=0)
        yield GenerationRecord(group_id, self.number)
        yield GroupRecord(group_id, stored)
        yield from self.offsets()

    @property
    def group_id(self) -> str:
        """The id of the group."""
        return next(iter(self.members.values())).config.group_id

    def offsets(self) -> Iterator[Record]:
        """Yield the records of the committed offsets."""
        offset = StoredOffset(FIRST_OFFSET, leader_epoch=-1, metadata="", committed_at_ms=0)
        for topic, info in self.based_on.topics.items():
            for number in range(info.partitions):
                yield OffsetRecord(self.group_id, topic, number, offset)

    def resume(self, client: Client, name: str, *, last_response_ms: int, now_ms: int) -> ClientOutcome:
        """Let the client of a member continue its membership."""
        member = self.members[name]
        return client.resume_membership(
            self.generation_of(name),
            dict.fromkeys(member.owned, FIRST_OFFSET),
            topics=member.topics,
            based_on=self.based_on if self.leads(name) else None,
            last_response_ms=last_response_ms,
            now_ms=now_ms,
        )

    def _stored(self, running: RunningMember, assignor: Assignor) -> StoredMember:
        try:
            assignor.on_assignment(running.owned, self.number)
            user_data = user_data_of(assignor, running.topics)
        except RebalanceLabError:
            raise
        except Exception as error:
            violation = f"of what {running.name!r} owns at the start it raised {raised(error)}"
            raise AssignmentError(assignor.name, [violation]) from error
        keeps = rebalance_protocol([assignor]) is RebalanceProtocol.COOPERATIVE
        subscription = Subscription(
            topics=running.topics,
            owned=running.owned if keeps else NO_PARTITIONS,
            generation=self.number,
            rack=running.config.client_rack,
            user_data=user_data,
        )
        name = running.config.client_id
        return StoredMember(
            running.member_id,
            running.config.group_instance_id,
            name,
            f"/{name}",
            running.config.session_timeout_ms,
            running.config.max_poll_interval_ms,
            encode_subscription(subscription),
            encode_assignment(running.owned),
        )


def running_group(
    members: Iterable[RunningMember],
    *,
    protocol: str,
    generation: int,
    infos: Mapping[str, TopicInfo],
    random: Random,
    kind: type[RunningGroup] = RunningGroup,
) -> RunningGroup:
    """Return the group of at least one member. Ids are drawn as a coordinator does.

    ``kind``: that of a family with records of its own.
    """
    named: dict[str, RunningMember] = {}
    for member in members:
        prefix = member.config.group_instance_id or member.config.client_id
        member_id = f"{prefix}-{UUID(int=random.getrandbits(128), version=4)}"
        topics = tuple(java_order(member.topics))
        named[member.name] = replace(member, member_id=member_id, topics=topics)
    wanted = java_order(dict.fromkeys(topic for member in named.values() for topic in member.topics))
    return kind(protocol, generation, named, Cluster({topic: infos[topic] for topic in wanted}))
