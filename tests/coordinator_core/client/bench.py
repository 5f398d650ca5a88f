"""A consumer on a test bench: virtual time, and a broker whose responses the test determines."""

from random import Random

from coordinator_core.client.classic import ClassicMember
from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.config import ClientConfig
from coordinator_core.client.core import OURS
from coordinator_core.client.facade import Client
from coordinator_core.model import NO_PARTITIONS, Partitions, Subscription, TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.doubles import COOPERATIVE, EAGER, DealingAssignor, RecordingListener

COORDINATOR, FIRST_LEADER = 1, 2
"""Node 0 is the bootstrap server; partition p of any topic is led by node 2 + p % 2."""

T0, T1, T2, T3 = (TopicPartition("t", p) for p in range(4))
U0, U1 = (TopicPartition("u", p) for p in range(2))
MOST_STEPS = 50


def refusal(request, error):
    """Return the response to a request that contains only an error."""
    match request:
        case m.JoinGroupRequest():
            needed = error is ErrorCode.MEMBER_ID_REQUIRED
            return m.JoinGroupResponse(error=error, member_id="given" if needed else request.member_id)
        case m.OffsetCommitRequest():
            errors = tuple(m.PartitionError(o.topic, o.partition, error) for o in request.offsets)
            return m.OffsetCommitResponse(partitions=errors)
        case m.ListOffsetsRequest():
            listed = tuple(m.ListedOffset(t, p, -1, error=error) for t, p in request.partitions)
            return m.ListOffsetsResponse(offsets=listed)
        case m.OffsetForLeaderEpochRequest():
            ends = tuple(m.EpochEnd(c.topic, c.partition, -1, error=error) for c in request.partitions)
            return m.OffsetForLeaderEpochResponse(ends=ends)
        case m.MetadataRequest():
            return m.MetadataResponse(
                topics=tuple(m.TopicMetadata(t, (), error) for t in request.topics or ())
            )
    kind = getattr(m, type(request).__name__.replace("Request", "Response"))
    return kind(error=error)


class Bench:
    """A consumer, its requests and its outcomes. ``responders``: functions that respond at once, by kind.

    ``library``: what the client does as other libraries do it.
    """

    def __init__(
        self,
        *,
        assignors=None,
        member=ClassicMember,
        topics=None,
        seed=7,
        source=None,
        fetching=False,
        library=OURS,
        **config,
    ):
        self.listener, self.source = RecordingListener(), source
        self.assignors = [DealingAssignor()] if assignors is None else assignors
        self.topics = dict(topics or {"t": 4, "u": 2})
        self.epochs, self.leaderless, self.racks = {}, set(), ()
        self.committed, self.ends = {}, (0, 100)
        self.now_ms = 0
        self.open, self.log = {}, []
        self.events, self.errors, self.records, self.outcomes = [], [], [], []
        self.client = Client(
            ClientConfig(group_id="g", client_id="c", **config),
            self.assignors,
            Random(seed),
            member=member,
            listener=self.listener,
            positions=source,
            fetching=fetching,
            library=library,
        )
        self.listener.client = self.client
        self.responders = {
            m.FindCoordinatorRequest: self.coordinator,
            m.MetadataRequest: self.metadata,
            m.OffsetFetchRequest: self.offsets,
            m.ListOffsetsRequest: self.listed,
        }

    # --- responses of the broker

    def coordinator(self, request):
        return m.FindCoordinatorResponse(error=ErrorCode.NONE, node=COORDINATOR)

    def metadata(self, request):
        topics = sorted(self.topics) if request.topics is None else request.topics
        return m.MetadataResponse(
            topics=tuple(
                m.TopicMetadata(topic, tuple(self.partition(topic, p) for p in range(self.topics[topic])))
                for topic in topics
                if topic in self.topics
            ),
            nodes=(0, 1, 2, 3),
        )

    def partition(self, topic, number):
        leader = -1 if (topic, number) in self.leaderless else FIRST_LEADER + number % 2
        return m.PartitionMetadata(leader, self.epochs.get((topic, number), -1), self.racks)

    def offsets(self, request):
        found = tuple(
            m.FetchedOffset(tp.topic, tp.partition, *self.committed.get(tp, (-1, -1)))
            for tp in request.partitions
        )
        return m.OffsetFetchResponse(error=ErrorCode.NONE, offsets=found)

    def listed(self, request):
        offset = self.ends[0 if request.timestamp == -2 else 1]
        return m.ListOffsetsResponse(
            offsets=tuple(m.ListedOffset(t, p, offset, 0) for t, p in request.partitions)
        )

    @staticmethod
    def success(request):
        """Return a response without an error to a heartbeat, a commit or a leave."""
        return refusal(request, ErrorCode.NONE)

    def respond_to(self, *kinds):
        """Accept requests of these kinds from now on."""
        self.responders |= dict.fromkeys(kinds, self.success)

    # --- driving

    def take(self, outcome):
        self.outcomes.append(outcome)
        self.events += outcome.events
        self.records += outcome.records
        if outcome.error is not None:
            self.errors.append(outcome.error)
        for send in outcome.sends:
            assert send.request_id not in self.open
            self.open[send.request_id] = send
            self.log.append(send)
        for send in outcome.sends:
            serve = self.responders.get(type(send.request))
            if serve is not None and send.request_id in self.open:
                self.respond(send, serve(send.request))
        return outcome

    def call(self, name, *args, **given):
        return self.take(getattr(self.client, name)(*args, now_ms=self.now_ms, **given))

    def poll(self):
        return self.call("poll")

    def subscribe(self, *topics):
        return self.call("subscribe", topics)

    def close(self):
        return self.call("close")

    def polls(self):
        """Poll as long as polls make progress."""
        for _ in range(MOST_STEPS):
            self.poll()
            if not self.client.wants_poll:
                return
        raise AssertionError("polls without end")

    def sleep(self, ms, *, polling=False):
        """Let time pass, deadline by deadline. Fail if deadlines repeat at one time without end."""
        end, steps = self.now_ms + ms, 0
        if polling and self.client.wants_poll:
            self.polls()
        while (at_ms := self.client.next_deadline_ms()) is not None and at_ms <= end:
            steps = 0 if at_ms > self.now_ms else steps + 1
            assert steps < MOST_STEPS, "a deadline that never goes away"
            self.now_ms = max(self.now_ms, at_ms)
            self.call("on_deadline")
            if polling:
                self.polls()
        self.now_ms = end

    def live(self, ms):
        """Let time pass while the application polls every second and whenever a poll makes progress."""
        for _ in range(0, ms, 1_000):
            self.sleep(1_000, polling=True)
            self.poll()

    # --- requests

    def pending(self, kind):
        """Return the requests of a kind without a response, the oldest first."""
        return [send for send in self.open.values() if type(send.request) is kind]

    def sent(self, kind):
        """Return the newest request of a kind without a response."""
        return self.pending(kind)[-1]

    def requests(self, kind):
        """Return every request of a kind that was sent."""
        return [send.request for send in self.log if type(send.request) is kind]

    def respond(self, what, response):
        """Pass a response to a request, or to the newest of a kind."""
        send = self.sent(what) if isinstance(what, type) else what
        self.open.pop(send.request_id, None)
        return self.take(self.client.receive(send.request_id, response, now_ms=self.now_ms))

    def refuse(self, what, error):
        send = self.sent(what) if isinstance(what, type) else what
        return self.respond(send, refusal(send.request, error))

    def accept(self, what):
        return self.refuse(what, ErrorCode.NONE)

    def disconnect(self, node=COORDINATOR):
        for request_id in [i for i, send in self.open.items() if send.node == node]:
            del self.open[request_id]
        return self.call("on_disconnected", node)

    def heartbeat(self, error=ErrorCode.NONE):
        """Let a heartbeat come due, and respond to it."""
        self.sleep(3_000)
        self.refuse(m.HeartbeatRequest, error)

    # --- rounds

    def respond_to_join(
        self, *, generation=1, member_id="m1", leader="other", members=(), protocol=None, **given
    ):
        response = m.JoinGroupResponse(
            error=ErrorCode.NONE,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=protocol or self.assignors[0].name,
            leader=leader,
            member_id=member_id,
            members=members,
            **given,
        )
        return self.respond(m.JoinGroupRequest, response)

    def join_as_follower(self, **given):
        """Poll until a join is in flight, and respond to it."""
        self.polls()
        self.respond_to_join(**given)

    def join_as_leader(self, topics=None, **given):
        """Join as the leader of a group. ``topics``: the subscribed topics of each member id."""
        self.polls()
        members = tuple(
            m.JoinGroupMember(member, None, encode_subscription(Subscription(tuple(listed))))
            for member, listed in (topics or {"m1": ["t"]}).items()
        )
        self.respond_to_join(leader=given.get("member_id", "m1"), members=members, **given)

    def respond_to_sync(self, *owned, error=ErrorCode.NONE, polls=True):
        """Respond to the sync with an assignment, and poll."""
        share = encode_assignment(Partitions.of(owned) if owned else NO_PARTITIONS)
        self.respond(m.SyncGroupRequest, m.SyncGroupResponse(error=error, assignment=share))
        if polls:
            self.poll()

    def stable(self, *owned, topics=("t",), **given):
        """Join a group and own partitions."""
        self.subscribe(*topics)
        self.join_as_follower(**given)
        self.respond_to_sync(*owned)
        assert self.state is MemberState.STABLE
        return self

    def round(self, *owned, generation=2, **given):
        """Complete another round, which a heartbeat announces."""
        self.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
        self.join_as_follower(generation=generation, **given)
        self.respond_to_sync(*owned)

    # --- looking

    @property
    def state(self):
        return self.client.state

    @property
    def owned(self):
        return sorted(self.client.owned)

    @property
    def calls(self):
        return self.listener.calls

    def events_of(self, kind):
        return [event for event in self.events if type(event) is kind]

    def join(self):
        """Return the JoinGroup in flight."""
        return self.sent(m.JoinGroupRequest).request

    def subscription(self, number=0):
        """Return the subscription for an assignor in the JoinGroup in flight."""
        return decode_subscription(self.join().protocols[number].metadata)

    def sent_assignments(self):
        """Return the assignments in the SyncGroup in flight, by member id."""
        assignments = self.sent(m.SyncGroupRequest).request.assignments
        return {entry.member_id: sorted(decode_assignment(entry.assignment)[0]) for entry in assignments}


def cooperative(**given):
    """Return a consumer with a cooperative assignor."""
    return Bench(assignors=[DealingAssignor("co", (COOPERATIVE, EAGER))], **given)
