"""A coordinator on a test bench: one broker that leads all partitions, virtual time, a log in memory."""

from random import Random

import pytest

from coordinator_core.coordinator import classic
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.coordinator.log import MemoryLog
from coordinator_core.coordinator.records import GroupTable, decode_record, encode_record
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

PARTITIONS = 50


def as_written(records):
    """The records, from their bytes."""
    return [decode_record(encode_record(record), "the log") for record in records]


class Bench:
    """A coordinator and its log. Appends are written at once without ``holding`` and ``append_error``."""

    def __init__(self, *, seed=7, log=None, now_ms=0, parts=(classic.PART,), **config):
        self.config, self.random, self.parts = CoordinatorConfig(**config), Random(seed), parts
        self.log = MemoryLog() if log is None else log
        self.now_ms = now_ms
        self.replies, self.events, self.outcomes = {}, [], []
        self.superseded, self.lost = set(), set()
        self.holding, self.held, self.append_error = False, [], ErrorCode.NONE
        self.requests = 0
        self.start()
        self.take_over()

    def start(self):
        """Start a new broker, which leads no partition yet. Requests parked with the old broker are lost."""
        self.held.clear()
        self.lost |= self.open_requests()
        self.coordinator = Coordinator(1, self.config, self.random, self.parts)
        self.coordinator.on_cluster_change(dict.fromkeys(range(PARTITIONS), 1), 3)

    def take_over(self):
        """Lead every partition, with the groups in the bytes of its log."""
        for partition in range(PARTITIONS):
            self.coordinator.on_elected(partition)
            records = as_written(self.log.read(partition))
            self.take(self.coordinator.on_loaded(partition, records, now_ms=self.now_ms))
        self.take(self.coordinator.on_topics_changed(now_ms=self.now_ms))

    def change_topics(self, **topics):
        """Change the topics that a coordinator which computes assignments sees."""
        self.topics = topics
        self.take(self.coordinator.on_topics_changed(now_ms=self.now_ms))

    def open_requests(self):
        """Return the requests that have not been answered or superseded, or lost with their broker."""
        return {*range(1, self.requests + 1)} - self.replies.keys() - self.superseded - self.lost

    def take(self, outcome):
        self.outcomes.append(outcome)
        self.events += outcome.events
        for reply in outcome.replies:
            assert reply.request_id in self.open_requests(), "a request ends once"
            self.replies[reply.request_id] = reply.response
        for request_id in outcome.superseded:
            assert request_id in self.open_requests(), "a request ends once"
            self.superseded.add(request_id)
        for append in outcome.appends:
            if self.holding:
                self.held.append(append)
            else:
                self.write(append, self.append_error)

    def write(self, append, error=ErrorCode.NONE):
        if error is ErrorCode.NONE:
            self.log.append(append.partition, append.records)
        self.take(self.coordinator.on_appended(append.append_id, error, now_ms=self.now_ms))

    def release(self, error=ErrorCode.NONE):
        """Write the appends that were held back, or fail them; then hold back no more."""
        self.holding = False
        held, self.held = self.held, []
        for append in held:
            self.write(append, error)

    def send(self, request, client_id="c", client_host="host"):
        self.requests += 1
        self.take(
            self.coordinator.receive(
                self.requests, request, client_id=client_id, client_host=client_host, now_ms=self.now_ms
            )
        )
        return self.requests

    def ask(self, request, client_id="c"):
        """Send a request. Returns the response, or None if the request is parked."""
        return self.replies.get(self.send(request, client_id))

    def sleep(self, ms):
        """Let time pass, deadline by deadline. Returns the responses meanwhile by request id."""
        end, before = self.now_ms + ms, set(self.replies)
        while (at_ms := self.coordinator.next_deadline_ms()) is not None and at_ms <= end:
            self.now_ms = max(self.now_ms, at_ms)
            self.take(self.coordinator.on_deadline(now_ms=self.now_ms))
        self.now_ms = end
        return {r: answer for r, answer in self.replies.items() if r not in before}

    def sleep_and_beat(self, ms, *members):
        """Let time pass while some members send heartbeats every two seconds."""
        for _ in range(0, ms, 2_000):
            for member_id in members:
                self.beat(member_id)
            self.sleep(2_000)

    def group(self, group="g"):
        return self.coordinator.group(group)

    def state(self, group="g"):
        return self.group(group).state

    def events_of(self, kind):
        return [event for event in self.events if type(event) is kind]

    def table(self):
        """Return the groups and the offsets of all partitions, as the coordinator has them."""
        whole = GroupTable()
        for shard in self.coordinator._shards.values():
            whole.groups |= shard.table.groups
            whole.offsets |= {group: dict(offsets) for group, offsets in shard.table.offsets.items()}
        return whole.groups, whole.offsets

    def join(
        self,
        member_id="",
        *,
        group="g",
        instance=None,
        names=("range",),
        metadata=b"t",
        kind="consumer",
        version=9,
        session_ms=10_000,
        rebalance_ms=60_000,
        client="c",
    ):
        request = m.JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=kind,
            protocols=tuple(m.JoinGroupProtocol(name, metadata) for name in names),
            version=version,
        )
        return self.send(request, client)

    def joined(self, *args, **given):
        """Join. Returns the response, or None if the join is parked."""
        return self.replies.get(self.join(*args, **given))

    def enter(self, **given):
        """Join as a new member, a second time with the assigned id. Returns the id of the parked request."""
        request = self.join(**given)
        answer = self.replies.get(request)
        if answer is not None and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            request = self.join(answer.member_id, **given)
        return request

    def newcomer(self, **given):
        """Join as a new member. Returns the member id."""
        self.enter(**given)
        return list(self.group(given.get("group", "g")).members)[-1]

    def sync(self, member_id, generation=None, shares=None, *, group="g", **given):
        live = self.group(group)
        if generation is None:
            generation = live.generation if live is not None else 1
        request = m.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            assignments=tuple(m.SyncGroupAssignment(who, what) for who, what in (shares or {}).items()),
            **given,
        )
        return self.send(request)

    def synced(self, *args, **given):
        return self.replies.get(self.sync(*args, **given))

    def beat(self, member_id, generation=None, *, instance=None, group="g"):
        live = self.group(group)
        if generation is None:
            generation = live.generation if live is not None else 1
        request = m.HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.ask(request).error

    def leave(self, *who, group="g"):
        """Leave. Returns the errors in order. A name is a member id, a pair is (member id, instance id)."""
        members = tuple(m.MemberIdentity(*((x,) if isinstance(x, str) else x)) for x in who)
        answer = self.ask(m.LeaveGroupRequest(group_id=group, members=members))
        return [member.error for member in answer.members]

    def commit(
        self, member_id="", generation=-1, offset=5, *, group="g", instance=None, topic="t", version=9
    ):
        """Commit one partition. Returns the error, or None while the commit is being written."""
        request = m.OffsetCommitRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            offsets=(m.OffsetToCommit(topic, 0, offset),),
            version=version,
        )
        answer = self.ask(request)
        return answer and answer.partitions[0].error

    def commit_in_transaction(
        self, member_id="", generation=-1, offset=5, *, group="g", instance=None, topic="t", producer=(7, 0)
    ):
        """Commit one partition in a transaction. Returns the error, or None while it is being written."""
        producer_id, epoch = producer
        request = m.TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            offsets=(m.OffsetToCommit(topic, 0, offset),),
        )
        answer = self.ask(request)
        return answer and answer.partitions[0].error

    def end_transaction(self, *, committed, group="g", producer=7):
        outcome = self.coordinator.end_transaction(group, producer, committed=committed, now_ms=self.now_ms)
        self.take(outcome)

    def committed(self, *, group="g", topic="t"):
        request = m.OffsetFetchRequest(group_id=group, partitions=(TopicPartition(topic, 0),))
        return self.ask(request).offsets[0].offset

    def until(self, state, group="g"):
        """Let time pass until the group is in a state."""
        while self.state(group) is not state:
            self.sleep(self.coordinator.next_deadline_ms() - self.now_ms)

    def settle(self, group="g"):
        """Complete a round: all members sync and get their shares. Returns the members."""
        self.until(GroupState.COMPLETING_REBALANCE, group)
        live = self.group(group)
        shares = {member_id: self.share(member_id) for member_id in live.members}
        for member_id in live.members:
            self.sync(member_id, shares=shares if member_id == live.leader else {}, group=group)
        assert live.state is GroupState.STABLE
        return list(live.members)

    @staticmethod
    def share(member_id):
        return f"share of {member_id}".encode()

    def stable_group(self, size=2, *, instances=(), group="g", **given):
        """Make a Stable group, its first members static. Returns the members, the leader first."""
        named = [*instances, *[None] * (size - len(instances))]
        for number, instance in enumerate(named):
            self.enter(group=group, instance=instance, client=f"c{number}", **given)
        return self.settle(group)

    def preparing_group(self, size=2, **given):
        """Make a group in PreparingRebalance: the leader has rejoined. Returns the members."""
        members = self.stable_group(size, **given)
        self.join(members[0], instance=self.group().members[members[0]].instance_id, **given)
        return members

    def completing_group(self, size=2, **given):
        """Make a group in CompletingRebalance: all members have rejoined. Returns the members."""
        members = self.stable_group(size, **given)
        for member_id in members:
            self.join(member_id, **given)
        return members


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture(scope="session")
def make_bench():
    return Bench
