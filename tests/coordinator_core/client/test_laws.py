"""Laws that hold for every sequence of responses and calls."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.requests import NEVER
from coordinator_core.errors import InputError
from coordinator_core.model import Partitions
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import Assigned, Joined, Lost, Revoked
from tests.coordinator_core.client.bench import MOST_STEPS, Bench, refusal
from tests.coordinator_core.client.doubles import COOPERATIVE, EAGER, DealingAssignor
from tests.examples import scaled

SETUPS = [
    ((EAGER,), None),
    ((COOPERATIVE, EAGER), None),
    ((COOPERATIVE, EAGER), "i1"),
]
KINDS = (
    m.FindCoordinatorRequest,
    m.MetadataRequest,
    m.JoinGroupRequest,
    m.SyncGroupRequest,
    m.HeartbeatRequest,
    m.OffsetCommitRequest,
    m.OffsetFetchRequest,
    m.ListOffsetsRequest,
    m.LeaveGroupRequest,
    m.FetchRequest,
)
SHARES = ((), (("t", 0),), (("t", 0), ("t", 1)), (("t", 1), ("t", 2)), (("u", 0),), (("t", 0), ("u", 1)))
CLOSE_MS = 30_000


class Walk:
    """A consumer, arbitrary brokers, and the facts that must hold for the events so far."""

    def __init__(self, setup):
        protocols, instance = SETUPS[setup]
        self.bench = Bench(
            assignors=[DealingAssignor("a", protocols)],
            fetching=True,
            group_instance_id=instance,
            max_poll_interval_ms=20_000,
            session_timeout_ms=10_000,
            auto_commit_interval_ms=2_000,
            metadata_max_age_ms=15_000,
        )
        self.bench.responders.clear()
        self.generation, self.owned, self.events_seen, self.requests_seen = 0, set(), 0, 0
        self.responses, self.given, self.closed_at = [], {("", -1)}, None

    # --- steps

    def good(self, kind, share, leads):
        """Answer a request as a broker should."""
        pending = self.bench.pending(KINDS[kind])
        if pending:
            self.respond(pending[0], self.proper(pending[0].request, SHARES[share], leads))

    def proper(self, request, share, leads):
        match request:
            case m.FindCoordinatorRequest():
                return self.bench.coordinator(request)
            case m.MetadataRequest():
                return self.bench.metadata(request)
            case m.OffsetFetchRequest():
                return self.bench.offsets(request)
            case m.ListOffsetsRequest():
                return self.bench.listed(request)
            case m.SyncGroupRequest():
                return m.SyncGroupResponse(
                    error=ErrorCode.NONE, assignment=encode_assignment(Partitions.of(share))
                )
            case m.FetchRequest():
                return m.FetchResponse(error=ErrorCode.NONE, session_id=4, partitions=self.records(request))
            case m.JoinGroupRequest():
                return self.admitted(request, leads)
        return refusal(request, ErrorCode.NONE)

    def admitted(self, request, leads):
        self.generation += 1
        member = request.member_id or f"m{self.generation}"
        self.given.add((member, self.generation))
        members = (m.JoinGroupMember(member, None, request.protocols[0].metadata),)
        return m.JoinGroupResponse(
            error=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="a",
            leader=member if leads else "other",
            member_id=member,
            members=members if leads else (),
        )

    @staticmethod
    def records(request):
        return tuple(
            m.FetchedPartition(p.topic, p.partition, p.offset, records=(m.FetchedRecord(p.offset, b"r"),))
            for p in request.partitions
        )

    def bad(self, kind, error):
        pending = self.bench.pending(KINDS[kind])
        if pending:
            self.respond(pending[-1], refusal(pending[-1].request, error))

    def respond(self, send, response):
        self.responses.append((send, response))
        self.bench.respond(send, response)

    def again(self, number):
        """Repeat a response."""
        if self.responses:
            self.bench.respond(*self.responses[number % len(self.responses)])

    def disconnect(self, node, drops):
        if drops:
            self.bench.disconnect(node)
        else:  # responses to pending requests arrive later
            self.bench.call("on_disconnected", node)

    def poll(self):
        self.bench.polls()

    def sleep(self, ms, polling):
        self.bench.sleep(ms, polling=polling)

    def ask(self, name, *args):
        try:
            self.bench.call(name, *args)
        except InputError:
            return

    def close(self):
        if self.closed_at is None:
            self.closed_at = self.bench.now_ms
        self.bench.close()

    def settle(self, share):
        """A round in good order."""
        for kind in (0, 1, 2, 3, 6, 7):
            self.bench.polls()
            self.good(kind, share, False)
        self.bench.polls()

    def play(self, step):
        name, *args = step
        getattr(self, name)(*args)
        self.check()

    # --- laws

    def check(self):
        bench = self.bench
        rounds = bench.pending(m.JoinGroupRequest) + bench.pending(m.SyncGroupRequest)
        live = [s for s in rounds if s.request_id in bench.client._requests._pending]
        assert len(live) <= 1, "one join or sync at a time"
        for event in bench.events[self.events_seen :]:
            self.follow(event)
        self.events_seen = len(bench.events)
        assert self.owned == {tuple(tp) for tp in bench.client.owned}, "what is owned changes by events only"
        for send in bench.log[self.requests_seen :]:
            if isinstance(send.request, m.OffsetCommitRequest):
                named = send.request.member_id, send.request.generation_id
                assert named in self.given, "a commit is of a generation that was given"
        self.requests_seen = len(bench.log)
        if self.closed_at is not None and bench.now_ms >= self.closed_at + CLOSE_MS:
            assert bench.client.closed
        self.check_next_poll()

    def check_next_poll(self):
        client, now_ms = self.bench.client, self.bench.now_ms
        wants, poll_ms = client.wants_poll, client.poll_ms
        assert wants or poll_ms > now_ms
        if now_ms < poll_ms < NEVER:
            client.look_ahead(now_ms=poll_ms)
            assert client.wants_poll, "polls make progress from poll_ms on"
            client.look_ahead(now_ms=now_ms)
            assert (client.wants_poll, client.poll_ms) == (wants, poll_ms)

    def follow(self, event):
        match event:
            case Revoked(partitions=listed) | Lost(partitions=listed):
                gone = {(t, p) for t, numbers in listed.items() for p in numbers}
                assert gone <= self.owned, "only what is owned is given up"
                self.owned -= gone
            case Assigned(added=added, owned=listed):
                self.owned |= {(t, p) for t, numbers in added.items() for p in numbers}
                assert self.owned == {(t, p) for t, numbers in listed.items() for p in numbers}


errors = st.sampled_from([error for error in ErrorCode if error is not ErrorCode.NONE])
passing = st.sampled_from(
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.MEMBER_ID_REQUIRED,
    ]
)
kinds = st.integers(0, len(KINDS) - 1)
shares = st.integers(0, len(SHARES) - 1)
goods = st.tuples(st.just("good"), kinds, shares, st.booleans())
calls = st.sampled_from(
    [
        ("ask", "subscribe", ("t",)),
        ("ask", "subscribe", ("t", "u")),
        ("ask", "subscribe", ("u",)),
        ("ask", "subscribe_pattern", "t|u"),
        ("ask", "assign", (("t", 0), ("u", 1))),
        ("ask", "unsubscribe"),
        ("ask", "commit"),
        ("ask", "seek", "t", 0, 7),
        ("ask", "seek_to", "t", 1, "earliest"),
        ("ask", "pause", "t", 0),
        ("ask", "resume", "t", 0),
    ]
)
steps = st.one_of(
    goods,
    goods,
    st.just(("poll",)),
    st.tuples(st.just("settle"), shares),
    st.tuples(st.just("settle"), shares),
    st.tuples(st.just("bad"), kinds, passing),
    st.tuples(st.just("bad"), kinds, errors),
    st.tuples(st.just("again"), st.integers(0, 50)),
    st.tuples(st.just("disconnect"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("sleep"), st.sampled_from([0, 100, 3_000, 9_000, 21_000, 40_000]), st.booleans()),
    calls,
)
walks = st.lists(steps, min_size=10, max_size=50).map(lambda walk: [("ask", "subscribe", ("t",)), *walk])
setups = st.integers(0, len(SETUPS) - 1)
laws = settings(max_examples=scaled(150))


def walked(setup, actions):
    walk = Walk(setup)
    for action in actions:
        walk.play(action)
    return walk


@laws
@given(setups, walks)
def test_no_sequence_of_responses_breaks_the_consumer(setup, actions):
    """Given any sequence of responses, errors, late and repeated responses, lost connections, calls and
    pauses, then nothing raises, no two joins or syncs are in flight, every commit names a known generation,
    ownership changes by events only, partitions are given up before others are owned, and no deadline or wish
    to poll repeats without end. PROTOCOL 9.3, 9.5, 9.7, 9.9, C-46, C-49, C-50."""
    walked(setup, actions)


@laws
@given(setups, walks)
def test_the_generations_of_a_member_only_increase(setup, actions):
    """Given any sequence, then a member id joins in ever newer generations. PROTOCOL 9.4, 9.9."""
    newest = {}
    for event in walked(setup, actions).bench.events_of(Joined):
        assert event.generation > newest.get(event.member_id, 0)
        newest[event.member_id] = event.generation


@laws
@given(setups, walks, st.lists(steps, max_size=10))
def test_close_ends_within_thirty_seconds(setup, actions, meanwhile):
    """Given any sequence, when the consumer closes, then it is closed within 30 s whatever happens, owns no
    partition of the group, has no deadline without requests in flight, and sends nothing more. PROTOCOL 9.11,
    C-57, C-59."""
    walk = walked(setup, actions)
    walk.play(("close",))
    for action in meanwhile:
        if action[0] != "ask":
            walk.play(action)
    walk.play(("sleep", CLOSE_MS, False))
    assert walk.bench.client.closed
    assert walk.owned == set()
    sent = len(walk.bench.log)
    walk.play(("sleep", 400_000, True))
    assert len(walk.bench.log) == sent
    assert walk.bench.client.next_deadline_ms() is None


@laws
@given(setups, walks, shares)
@example(0, [("ask", "subscribe", ("t",))], 1)
def test_a_consumer_with_proper_responses_becomes_stable(setup, actions, share):
    """Given any sequence after which it is open and subscribes, when every request has a proper response,
    then it becomes a stable member with a position for each of its partitions. PROTOCOL 9.3, 9.4, 9.10,
    9.11."""
    walk = walked(setup, [a for a in actions if a[:2] != ("ask", "assign")])
    bench = walk.bench
    bench.call("unsubscribe")
    bench.subscribe("t", "u")
    for _ in range(2 * MOST_STEPS):
        for kind in range(len(KINDS) - 1):
            while bench.pending(KINDS[kind]):
                walk.good(kind, share, False)
        walk.play(("sleep", 1_000, True))
    if bench.client.failure is None:
        assert bench.client.state is MemberState.STABLE
        assert all(state.has_position for state in bench.client.partitions.values())
        assert walk.owned == set(SHARES[share])


@laws
@given(setups, walks)
def test_equal_calls_give_equal_outcomes(setup, actions):
    """Given two consumers with equal seeds, when they get the same calls, then every outcome is equal.
    PROTOCOL 9.3."""
    first, second = walked(setup, actions).bench, walked(setup, actions).bench
    assert list(map(repr, first.outcomes)) == list(map(repr, second.outcomes))
    assert first.client.next_deadline_ms() == second.client.next_deadline_ms()
