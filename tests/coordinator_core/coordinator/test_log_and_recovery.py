"""The log of the offsets topic, and a broker that takes a partition over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.log import MemoryLog
from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.records import (
    GroupRecord,
    GroupTable,
    OffsetRecord,
    PartRecord,
    PendingRecord,
    StoredGroup,
    StoredMember,
    StoredOffset,
    compact,
    decode_record,
    encode_record,
)
from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

names = st.sampled_from(["g", "h", "ü😀"])
blobs = st.binary(max_size=6)
members = st.builds(
    StoredMember,
    names,
    st.none() | names,
    names,
    names,
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    blobs,
    blobs,
)
groups = st.builds(
    StoredGroup,
    names,
    st.none() | names,
    st.integers(0, 99),
    st.none() | names,
    st.lists(members, max_size=3).map(tuple),
    st.integers(0, 10**12),
)
offsets = st.builds(
    StoredOffset, st.integers(0, 2**60), st.integers(-1, 9), st.text(max_size=5), st.integers(0, 10**12)
)
records = st.one_of(
    st.builds(GroupRecord, names, st.none() | groups),
    st.builds(OffsetRecord, names, names, st.integers(0, 2), st.none() | offsets),
    st.builds(
        PendingRecord, names, st.integers(0, 1), st.just(3), names, st.integers(0, 2), st.none() | offsets
    ),
)
logs = st.lists(records, max_size=15)


def replayed(found):
    table = GroupTable()
    for record in found:
        table.apply(record)
    return table.groups, table.offsets, table.pending


@given(logs)
def test_a_compacted_log_has_the_same_contents(log):
    """Given any log, when it is compacted, then one value per key, and a replay gives the same groups and
    offsets. PROTOCOL 8.1, 8.2."""
    kept = compact(log)
    assert replayed(kept) == replayed(log)
    tables = replayed(log)
    pending = [held.offsets for producers in tables[2].values() for held in producers.values()]
    assert len(kept) == len(tables[0]) + sum(map(len, (*tables[1].values(), *pending)))
    assert compact(kept) == kept


@given(logs, st.data())
def test_a_log_compacted_up_to_any_record_has_the_same_contents(log, data):
    """Given the older part of a log is compacted, then a replay of both gives the same. PROTOCOL 8.2."""
    at = data.draw(st.integers(0, len(log)))
    live = GroupTable()
    for record in compact(log[:at]):
        live.apply(record)
    for record in log[at:]:
        live.apply(record)
    assert (live.groups, live.offsets, live.pending) == replayed(log)


@given(records, st.data())
def test_a_record_is_read_as_it_was_written_and_a_flipped_bit_is_refused_with_its_place(record, data):
    """PROTOCOL 8.2."""
    encoded = encode_record(record)
    assert decode_record(encoded, "row 3") == record
    at, bit = data.draw(st.integers(0, len(encoded) - 1)), data.draw(st.integers(0, 7))
    damaged = bytearray(encoded)
    damaged[at] ^= 1 << bit
    with pytest.raises(InputError, match="a damaged record") as caught:
        decode_record(bytes(damaged), "row 3")
    assert caught.value.where == "row 3"


def test_a_deleted_group_leaves_no_parts():
    table = GroupTable()
    group = StoredGroup("consumer", None, 1, None, (), 0, "reconcile")
    table.apply_all([GroupRecord("g", group), PartRecord("g", "member a", b"x"), GroupRecord("g", None)])
    assert (dict(table.groups), dict(table.parts)) == ({}, {})


def test_a_memory_log_does_not_grow_with_the_commits_of_one_offset(monkeypatch):
    """Given an offset written again and again, then its log is compacted from time to time. PROTOCOL 8.1."""
    monkeypatch.setattr("coordinator_core.coordinator.log.COMPACT_AFTER", 10)
    log, lengths = MemoryLog(), []
    for n in range(40):
        log.append(0, [OffsetRecord("g", "t", n % 3, StoredOffset(n, -1, "", 0))])
        lengths.append(len(log.read(0)))
    assert max(lengths) == 3 + 10
    assert {r.value.offset for r in compact(log.read(0))} == {37, 38, 39}


def test_a_compacted_log_keeps_the_order_of_the_newest_records():
    """Given a key written first and again last, then it comes last. PROTOCOL 8.1."""
    value = StoredOffset(1, -1, "", 0)
    first, second = OffsetRecord("g", "t", 0, value), OffsetRecord("g", "t", 1, value)
    assert compact([first, second, first]) == [second, first]


def test_a_stable_group_is_stored_whole(bench):
    """Given a group that became Stable, then its record has type, assignor, generation, leader, and each
    member with ids, client, timeouts, subscription and assignment. PROTOCOL 8.1."""
    leader, follower = bench.stable_group(instances=("i1",), names=("rr", "range"), metadata=b"topics")
    stored = bench.table()[0]["g"]
    assert (stored.protocol_type, stored.protocol_name, stored.generation, stored.leader) == (
        "consumer",
        "rr",
        1,
        leader,
    )
    assert stored.changed_at_ms == bench.now_ms
    common = ("host", 10_000, 60_000, b"topics")
    assert stored.members == (
        StoredMember(leader, "i1", "c0", *common, bench.share(leader)),
        StoredMember(follower, None, "c1", *common, bench.share(follower)),
    )


def test_a_commit_is_stored_by_group_topic_and_partition(bench):
    """PROTOCOL 8.1."""
    bench.now_ms = 77
    offset = m.OffsetToCommit("t", 3, 9, 2, "note")
    bench.send(m.OffsetCommitRequest(group_id="g", offsets=(offset,)))
    assert bench.table()[1] == {"g": {TopicPartition("t", 3): StoredOffset(9, 2, "note", 77)}}


def test_a_new_leader_of_the_partition_has_the_group_and_its_offsets(bench, make_bench):
    """Given a Stable group with offsets, when another broker takes over, then members go on as if nothing had
    happened: same ids, generation, leader and assignment, same offsets. PROTOCOL 1.3, 8.2."""
    leader, follower = bench.stable_group(instances=("i1",))
    bench.commit(follower, 1, 42)
    other = make_bench(log=bench.log, now_ms=bench.now_ms)
    assert other.committed() == 42
    assert other.beat(follower) is other.beat(leader, instance="i1") is ErrorCode.NONE
    assert other.synced(follower).assignment == bench.share(follower)
    assert other.joined(follower).generation_id == 1
    question = m.DescribeGroupsRequest(group_ids=("g",))
    assert other.ask(question) == bench.ask(question)
    assert other.group().leader == leader
    assert other.commit(follower, 1, 43) is ErrorCode.NONE
    assert other.joined(leader, instance="i1") is None
    assert other.joined(follower).generation_id == 2


def test_sessions_start_anew_with_the_new_leader(bench, make_bench):
    """Given a take-over at any time, then each member has a whole session from it, and no more. PROTOCOL
    1.3."""
    bench.stable_group()
    other = make_bench(log=bench.log, now_ms=1_000_000)
    other.sleep(9_999)
    assert len(other.group().members) == 2
    other.sleep(1)
    assert not other.group().members


@pytest.mark.parametrize("arrange", ["preparing_group", "completing_group"])
def test_a_round_under_way_is_forgotten_with_its_coordinator(bench, make_bench, arrange):
    """Given a round, when another broker takes over, then the last stored generation is Stable there, and the
    members of the round can start it again. PROTOCOL 1.3, 8.2."""
    leader, follower = getattr(bench, arrange)()
    other = make_bench(log=bench.log, now_ms=bench.now_ms)
    assert (other.state(), other.group().generation) == (GroupState.STABLE, 1)
    assert other.joined(leader) is None
    assert other.joined(follower).error is ErrorCode.NONE


def test_an_empty_group_is_rebuilt_with_its_age(bench, make_bench):
    """Given an Empty group with offsets, when a broker takes over six days later, then its seven days go on
    from when it became Empty. PROTOCOL 1.3, 2.1."""
    (member,) = bench.stable_group(1)
    bench.commit(member, 1)
    bench.leave(member)
    bench.commit(group="h")
    day = 86_400_000
    other = make_bench(log=bench.log, now_ms=bench.now_ms + 6 * day)
    assert (other.state(), other.group().generation, other.state("h")) == ("Empty", 2, "Empty")
    other.sleep(day - 600_000)
    assert (other.committed(), other.committed(group="h")) == (5, 5)
    other.sleep(1_200_000)
    assert other.coordinator.group_ids() == []


def test_a_broker_that_does_not_lead_the_partition_is_not_the_coordinator(bench):
    """Given a broker that leads no partition, then every request gets NOT_COORDINATOR. PROTOCOL 1.2."""
    _, follower = bench.stable_group()
    bench.start()
    moved = ErrorCode.NOT_COORDINATOR
    assert bench.coordinator.next_deadline_ms() is None
    assert bench.joined().error is bench.synced(follower).error is moved
    assert bench.beat(follower) is bench.commit() is moved
    assert bench.ask(m.OffsetFetchRequest(group_id="g")).error is moved
    assert bench.ask(m.LeaveGroupRequest(group_id="g", members=())).error is moved
    assert bench.ask(m.OffsetDeleteRequest(group_id="g", partitions=())).error is moved
    assert bench.ask(m.DescribeGroupsRequest(group_ids=("g",))).groups[0].error is moved
    assert bench.ask(m.DeleteGroupsRequest(group_ids=("g",))).groups[0].error is moved


@pytest.mark.parametrize("restarts", [True, False])
def test_a_write_of_the_leader_before_is_ignored(bench, restarts):
    """Given a write under way, when the broker has restarted, or leads again, before it ends, then nothing
    happens. PROTOCOL 1.3."""
    (leader,) = bench.stable_group(1)
    bench.join(leader)
    bench.holding = True
    bench.sync(leader)
    (append,) = bench.held
    if restarts:
        bench.start()
    bench.take_over()
    before = bench.table()
    outcome = bench.coordinator.on_appended(append.append_id, ErrorCode.NONE, now_ms=bench.now_ms)
    assert (outcome, bench.table()) == (Outcome(), before)


def test_a_loading_coordinator_reports_that_it_loads(bench):
    """Given the log is being replayed, then COORDINATOR_LOAD_IN_PROGRESS, but Heartbeat NONE and SyncGroup
    REBALANCE_IN_PROGRESS. PROTOCOL 1.2."""
    (member,) = bench.stable_group(1)
    bench.start()
    for partition in range(50):
        bench.coordinator.on_elected(partition)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.beat(member) is ErrorCode.NONE
    assert bench.synced(member).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.joined(member).error is loading
    assert bench.joined(group="").error is ErrorCode.INVALID_GROUP_ID
    assert bench.commit(member, 1) is loading
    assert bench.ask(m.OffsetFetchRequest(group_id="g")).error is loading
    assert bench.ask(m.LeaveGroupRequest(group_id="g", members=())).error is loading
    assert bench.ask(m.OffsetDeleteRequest(group_id="g", partitions=())).error is loading
    assert bench.ask(m.DescribeGroupsRequest(group_ids=("g",))).groups[0].error is loading
    assert bench.ask(m.DeleteGroupsRequest(group_ids=("g",))).groups[0].error is loading
    assert bench.ask(m.ListGroupsRequest()).error is loading


def test_a_group_loads_with_its_partition_alone(bench):
    """Given one partition is loading, then the groups of the others answer. PROTOCOL 1.2."""
    bench.coordinator.on_elected(bench.coordinator._home("h"))
    assert bench.joined(group="h").error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.joined(group="g").error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_generation_that_was_handed_out_and_never_stored_is_not_handed_out_again(bench, make_bench):
    """Given a round that was joined but not synced, when another coordinator takes over, then its next
    generation is greater: generations only grow, whatever fails. PROTOCOL 1.3, 8.2, C-81."""
    bench.completing_group()
    handed_out = bench.group().generation
    other = make_bench(log=bench.log, now_ms=bench.now_ms)
    assert other.group().generation < handed_out
    other.stable_group(1)
    assert other.group().generation == handed_out + 1


def test_the_first_generation_is_not_handed_out_again_either(bench, make_bench):
    """Given a new group whose first round was joined but not synced, when another coordinator takes over,
    then its next generation is greater. PROTOCOL 8.2, C-81."""
    bench.enter()
    bench.until(GroupState.COMPLETING_REBALANCE)
    other = make_bench(log=bench.log, now_ms=bench.now_ms)
    other.stable_group(1)
    assert other.group().generation == bench.group().generation + 1


def test_the_join_phase_waits_until_its_generation_is_written_down(bench):
    """Given the write of the generation under way, when all have joined, then the joins are answered
    after it; when it fails, it is tried again a little later. PROTOCOL 3.7."""
    leader, follower = bench.stable_group(2)
    bench.holding = True
    joins = [bench.join(leader), bench.join(follower)]
    assert not set(joins) & bench.replies.keys()
    bench.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert not set(joins) & bench.replies.keys()
    bench.sleep(100)
    assert {bench.replies[j].generation_id for j in joins} == {2}


def test_a_member_of_a_round_that_was_lost_is_not_given_the_generation_before_it(bench, make_bench):
    """Given a round that was joined but not synced, when another coordinator takes over and an unchanged
    follower joins again, then a new round starts: its generation would go back otherwise. C-81."""
    leader, follower = bench.stable_group(2)
    bench.join(leader)
    bench.join(follower)
    assert bench.group().generation == 2
    other = make_bench(log=bench.log, now_ms=bench.now_ms)
    assert (other.state(), other.group().generation) == (GroupState.STABLE, 1)
    assert other.join(follower) not in other.replies
    assert other.state() is GroupState.PREPARING_REBALANCE


def test_an_id_that_becomes_pending_while_the_generation_is_written_holds_the_round_open(bench):
    """Given all have rejoined, the write under way, when an id becomes pending, then the round waits for it
    although the write succeeds. PROTOCOL 3.4, C-04."""
    leader, follower = bench.stable_group(2)
    bench.holding = True
    joins = [bench.join(leader), bench.join(follower)]
    pending = bench.joined().member_id
    bench.release()
    assert not set(joins) & bench.replies.keys()
    newcomer = bench.join(pending)
    assert {bench.replies[j].generation_id for j in (*joins, newcomer)} == {2}
