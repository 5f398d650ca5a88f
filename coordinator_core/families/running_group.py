"""The group that runs already when a scenario begins, as the log and the members have it (PROTOCOL 8.1).

It looks as though it had always run under the strategy that is simulated: what each member said when it
joined is what its assignor says of what it owns now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from uuid import UUID

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.classic.joining import PROTOCOL_TYPE
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
from coordinator_core.documents.scenario import Member
from coordinator_core.errors import AssignmentError
from coordinator_core.java import java_order
from coordinator_core.model import (
    NO_PARTITIONS,
    Cluster,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicInfo,
)
from coordinator_core.protocol.consumer_protocol import encode_assignment, encode_subscription

FIRST_OFFSET = 0
"""Where everything stands at time 0, committed and worked on: what waits in a partition lies behind it."""


@dataclass(frozen=True, slots=True)
class RunningMember:
    """A member of the group, with the topics it has joined with."""

    member: Member
    member_id: str
    topics: tuple[str, ...]
    config: ClientConfig

    @property
    def owned(self) -> Partitions:
        """What it owns, sorted."""
        return Partitions.of(self.member.owned or ())


@dataclass(frozen=True, slots=True)
class RunningGroup:
    """The group at time 0, its leader first. ``based_on``: the topics its members subscribe to."""

    protocol: str
    members: Mapping[str, RunningMember]
    based_on: Cluster

    @property
    def number(self) -> int:
        """The generation that is Stable."""
        return next(iter(self.members.values())).member.generation

    def generation_of(self, name: str) -> Generation:
        """What a member knows of its membership."""
        return Generation(self.number, self.members[name].member_id, self.protocol)

    def leads(self, name: str) -> bool:
        """Whether a member is the leader."""
        return name == next(iter(self.members))

    def records(self, make: Callable[[Member], Assignor]) -> Iterator[Record]:
        """What the log of the offsets topic holds of it. ``make`` gives a member an assignor of its own.

        Raises AssignmentError for what the assignor raises.
        """
        members = tuple(self._stored(each, make(each.member)) for each in self.members.values())
        group_id = next(iter(self.members.values())).config.group_id
        leader = members[0].member_id
        stored = StoredGroup(PROTOCOL_TYPE, self.protocol, self.number, leader, members, changed_at_ms=0)
        yield GenerationRecord(group_id, self.number)
        yield GroupRecord(group_id, stored)
        offset = StoredOffset(FIRST_OFFSET, leader_epoch=-1, metadata="", committed_at_ms=0)
        for topic, info in self.based_on.topics.items():
            for number in range(info.partitions):
                yield OffsetRecord(group_id, topic, number, offset)

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

    def _stored(self, each: RunningMember, assignor: Assignor) -> StoredMember:
        try:
            assignor.on_assignment(each.owned, self.number)
            user_data = assignor.subscription_user_data(each.topics)
        except Exception as wrong:
            said = f"of what {each.member.id!r} owns at the start it raised {type(wrong).__name__}: {wrong}"
            raise AssignmentError(assignor.name, [said]) from wrong
        keeps = rebalance_protocol([assignor]) is RebalanceProtocol.COOPERATIVE
        subscription = Subscription(
            topics=each.topics,
            owned=each.owned if keeps else NO_PARTITIONS,
            generation=self.number,
            rack=each.config.client_rack,
            user_data=user_data,
        )
        name = each.config.client_id
        return StoredMember(
            each.member_id,
            each.config.group_instance_id,
            name,
            f"/{name}",
            each.config.session_timeout_ms,
            each.config.max_poll_interval_ms,
            encode_subscription(subscription),
            encode_assignment(each.owned),
        )


def running_group(
    members: Iterable[tuple[Member, tuple[str, ...], ClientConfig]],
    *,
    protocol: str,
    infos: Mapping[str, TopicInfo],
    random: Random,
) -> RunningGroup:
    """The group of at least one member, each with its topics; ids are drawn as a coordinator draws them."""
    named: dict[str, RunningMember] = {}
    for member, topics, config in members:
        prefix = config.group_instance_id or config.client_id
        member_id = f"{prefix}-{UUID(int=random.getrandbits(128), version=4)}"
        named[member.id] = RunningMember(member, member_id, tuple(java_order(topics)), config)
    wanted = java_order(dict.fromkeys(topic for each in named.values() for topic in each.topics))
    return RunningGroup(protocol, named, Cluster({topic: infos[topic] for topic in wanted}))
