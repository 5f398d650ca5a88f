"""Laws that hold after any sequence of requests, sleeps, failed writes and restarts of the broker."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.log import MemoryLog
from coordinator_core.coordinator.records import compact
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted, GroupStateChanged
from tests.coordinator_core.coordinator.test_log_and_recovery import replayed
from tests.examples import scaled

GROUPS = ("g", "h")
INSTANCES = (None, None, None, "i3", "i4")
LISTS = (("a", "b"), ("b", "a"), ("b",), ("a", "c"), ("c", "b"))
HOUR_MS = 3_600_000
CONFIG = {"max_size": 4, "offsets_retention_minutes": 60}


class Crowd:
    """Five clients of two groups that remember their member ids and generations, and use them or not."""

    def __init__(self, bench):
        self.bench = bench
        self.member_ids, self.generations, self.joins = {}, {}, {}

    def play(self, action):
        name, *args = action
        getattr(self, name)(*args)
        for request, who in list(self.joins.items()):
            answer = self.bench.replies.get(request)
            if answer is not None:
                del self.joins[request]
                self.learn(who, answer)

    def learn(self, who, answer):
        if answer.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_ids[who] = answer.member_id
            self.generations[who] = answer.generation_id
        elif answer.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_ids.pop(who, None)

    def known(self, client, group):
        who = client, GROUPS[group]
        return self.member_ids.get(who, ""), self.generations.get(who, 1)

    def join(self, client, group, forgets, names, version, metadata):
        member_id, _ = self.known(client, group)
        request = self.bench.join(
            "" if forgets else member_id,
            group=GROUPS[group],
            instance=INSTANCES[client],
            names=names,
            version=version,
            metadata=metadata,
            session_ms=10_000 + 5_000 * client,
            rebalance_ms=20_000 + 10_000 * client,
        )
        self.joins[request] = client, GROUPS[group]

    def sync(self, client, group, stale):
        member_id, generation = self.known(client, group)
        live = self.bench.group(GROUPS[group])
        shares = {member: f"{member} {generation}".encode() for member in (live.members if live else ())}
        self.bench.sync(
            member_id,
            generation - stale,
            shares,
            group=GROUPS[group],
            group_instance_id=INSTANCES[client],
        )

    def beat(self, client, group):
        member_id, generation = self.known(client, group)
        self.bench.beat(member_id, generation, group=GROUPS[group], instance=INSTANCES[client])

    def commit(self, client, group, simple):
        member_id, generation = ("", -1) if simple else self.known(client, group)
        self.bench.commit(member_id, generation, self.bench.requests, group=GROUPS[group], topic=f"t{client}")

    def leave(self, clients, group):
        self.bench.leave(*((self.known(c, group)[0], INSTANCES[c]) for c in clients), group=GROUPS[group])

    def delete(self, group):
        self.bench.send(m.DeleteGroupsRequest(group_ids=(GROUPS[group],)))

    def offset_delete(self, group, client):
        topics = (TopicPartition(f"t{client}", 0),)
        self.bench.send(m.OffsetDeleteRequest(group_id=GROUPS[group], partitions=topics))

    def sleep(self, ms):
        self.bench.sleep(ms)

    def fail(self, error):
        self.bench.append_error = error

    def hold(self):
        self.bench.holding = True

    def release(self, error):
        self.bench.release(error)

    def settle(self, group):
        """Behave as clients should: all join, then all sync."""
        for client in range(3):
            for _ in range(2):
                self.play(("join", client, group, False, LISTS[0], 9, b"t"))
        self.play(("sleep", 10_000))
        for client in range(3):
            self.play(("sync", client, group, 0))

    def move(self):
        """The broker fails and comes back without memory."""
        self.bench.start()
        self.bench.take_over()


clients, groups = st.integers(0, 4), st.integers(0, 1)
errors = st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
joins = st.tuples(
    st.just("join"),
    clients,
    groups,
    st.sampled_from([False, False, True]),
    st.sampled_from(LISTS),
    st.sampled_from([3, 8, 9]),
    st.sampled_from([b"t", b"u"]),
)
syncs = st.tuples(st.just("sync"), clients, groups, st.sampled_from([0, 0, 0, 1]))
sleeps = st.tuples(st.just("sleep"), st.sampled_from([0, 1_000, 3_000, 9_000, 20_000, 61_000, HOUR_MS]))
steps = st.one_of(
    joins,
    joins,
    joins,
    syncs,
    syncs,
    sleeps,
    sleeps,
    st.tuples(st.just("settle"), groups),
    st.tuples(st.just("settle"), groups),
    st.tuples(st.just("beat"), clients, groups),
    st.tuples(st.just("commit"), clients, groups, st.booleans()),
    st.tuples(st.just("leave"), st.lists(clients, max_size=3), groups),
    st.tuples(st.just("delete"), groups),
    st.tuples(st.just("offset_delete"), groups, clients),
    st.tuples(st.just("fail"), errors),
    st.tuples(st.just("hold")),
    st.tuples(st.just("release"), errors),
)
plays = st.lists(steps, min_size=15, max_size=60)
plays_with_moves = st.lists(st.one_of(steps, steps, steps, st.just(("move",))), min_size=15, max_size=60)


def check(bench):
    for group_id in bench.coordinator.group_ids():
        group = bench.group(group_id)
        assert group.state != "Dead"
        if group.is_empty:
            assert not group.members
        if not group.family:
            continue
        assert group.joins.keys() <= group.members.keys()
        assert group.listing == Counter(p.name for m in group.members.values() for p in m.protocols)
        joining = [group.members[member_id] for member_id in group.joins]
        syncing = [member for member in group.members.values() if member.syncing is not None]
        if group.state is GroupState.STABLE:
            assert group.leader in group.members
            assert all(member.instance_id is not None for member in joining)
        if group.state is not GroupState.COMPLETING_REBALANCE:
            assert not syncing
        assert {
            i: member_id for i, member_id in group.static_members.items() if member_id in group.members
        } == {
            member.instance_id: member_id
            for member_id, member in group.members.items()
            if member.instance_id is not None
        }
    stored, offsets = bench.table()
    assert {*stored, *offsets} <= set(bench.coordinator.group_ids())


@given(plays_with_moves)
def test_no_sequence_of_requests_and_failures_breaks_the_coordinator(make_bench, actions):
    """Given any sequence, then nothing raises, no request ends twice, every Stable group has a leader
    that is a member, and every stored group is alive. PROTOCOL 2.1, 3.7, 5.2, C-16."""
    bench = make_bench(**CONFIG)
    crowd = Crowd(bench)
    for action in actions:
        crowd.play(action)
        check(bench)


@given(plays)
def test_generations_only_grow(make_bench, actions):
    """Given any sequence, then a group's generation never falls while the group lives, and none begins twice.
    PROTOCOL 3.7, C-13."""
    bench = make_bench(**CONFIG)
    crowd = Crowd(bench)
    before = {}
    for action in actions:
        crowd.play(action)
        now = {group: bench.group(group).generation for group in bench.coordinator.group_ids()}
        assert all(now[group] >= before[group] for group in now.keys() & before.keys())
        before = now
    started = Counter((e.group, e.generation) for e in bench.events_of(GenerationStarted))
    deaths = Counter(e.group for e in bench.events_of(GroupStateChanged) if e.after == "Dead")
    assert all(times <= 1 + deaths[group] for (group, _), times in started.items())


@given(plays_with_moves)
def test_a_group_left_alone_is_forgotten(make_bench, actions):
    """Given any sequence, when writes succeed again and no client sends another request, then every member
    expires, every request has been answered or superseded, once, unless it was lost with its broker, and in
    the end no group, record or deadline is left. PROTOCOL 2.1, 3.11, 5.2, 5.3, C-09."""
    bench = make_bench(**CONFIG)
    crowd = Crowd(bench)
    for action in actions:
        crowd.play(action)
    bench.append_error = ErrorCode.NONE
    bench.release()
    bench.sleep(HOUR_MS)
    assert [bench.group(group).members for group in bench.coordinator.group_ids()] in ([], [{}], [{}, {}])
    assert bench.open_requests() == set()
    bench.sleep(2 * HOUR_MS)
    assert bench.coordinator.group_ids() == []
    assert bench.table() == ({}, {})
    assert bench.coordinator.next_deadline_ms() is None


@given(plays_with_moves)
def test_replaying_the_log_gives_the_same_groups_and_offsets(make_bench, actions):
    """Given any sequence, when the log is replayed up to any append, whole or compacted, then it has
    what the coordinator had at that moment; inside an append, compaction changes nothing either. PROTOCOL
    8.2, 1.3."""
    log = MemoryLog()
    bench = make_bench(log=log, **CONFIG)
    crowd = Crowd(bench)
    moments = []
    write = log.append

    def noting(partition, records):
        shard = bench.coordinator._shards[partition]
        moments.append((partition, len(log.read(partition)), dict(shard.table.groups), copied(shard.table)))
        return write(partition, records)

    log.append = noting
    for action in actions:
        crowd.play(action)
    final = bench.table()
    for partition, count, stored, offsets in moments:
        records = log.read(partition)
        for cut in (records[:count], compact(records[:count])):
            assert replayed(cut)[:2] == (stored, offsets)
    for partition in {moment[0] for moment in moments}:
        records = log.read(partition)
        for end in range(len(records) + 1):
            assert replayed(compact(records[:end])) == replayed(records[:end])
        log.compact(partition)
    assert make_bench(log=log, now_ms=bench.now_ms, **CONFIG).table() == final


def copied(table):
    return {group: dict(offsets) for group, offsets in table.offsets.items()}


@pytest.mark.slow
@settings(max_examples=scaled(30))
@given(plays_with_moves, st.integers(0, 3))
def test_equal_calls_give_equal_outcomes(make_bench, actions, seed):
    """Given two coordinators with equal seeds, when they get the same calls, then every outcome is equal.
    PROTOCOL 3.4."""
    first, second = (make_bench(seed=seed, **CONFIG) for _ in range(2))
    crowds = Crowd(first), Crowd(second)
    for action in actions:
        for crowd in crowds:
            crowd.play(action)
    assert first.outcomes == second.outcomes
    assert first.log.read(0) == second.log.read(0)
    assert first.coordinator.next_deadline_ms() == second.coordinator.next_deadline_ms()
