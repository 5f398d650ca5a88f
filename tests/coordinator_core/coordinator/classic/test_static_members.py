"""Static members (KIP-345, KIP-814): back under the same instance id, with a new member id."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged, MemberReplaced

PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
FENCED = ErrorCode.FENCED_INSTANCE_ID


def rounds(bench):
    return [e for e in bench.events_of(GroupStateChanged) if e.after == PREPARING.value]


def static_group(bench, **given):
    """Two static members: i1 leads, i2 follows."""
    return bench.stable_group(2, instances=("i1", "i2"), **given)


def test_a_known_instance_gets_a_new_id_and_the_old_one_is_fenced(bench):
    """Given instance i2 with id A, when i2 joins without an id, then B takes the place of A, and A is fenced
    on join, sync, heartbeat, commit and leave. PROTOCOL 6.2, C-38, C-45."""
    leader, old = static_group(bench)
    new = bench.joined(instance="i2").member_id
    assert new != old
    assert list(bench.group().members) == [leader, new]
    assert bench.joined(old, instance="i2").error is FENCED
    assert bench.synced(old, group_instance_id="i2").error is FENCED
    assert bench.beat(old, instance="i2") is FENCED
    assert bench.commit(old, 1, instance="i2") is FENCED
    assert bench.leave((old, "i2")) == [FENCED]
    assert bench.beat(new, instance="i2") is ErrorCode.NONE
    (event,) = bench.events_of(MemberReplaced)
    assert (event.instance_id, event.old_member_id, event.new_member_id) == ("i2", old, new)


def test_an_unknown_instance_id_is_an_unknown_member(bench):
    """Given no instance i9, when any member names it, then UNKNOWN_MEMBER_ID. C-38."""
    leader, _ = static_group(bench)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.joined(leader, instance="i9").error is unknown
    assert bench.synced(leader, group_instance_id="i9").error is unknown
    assert bench.beat(leader, instance="i9") is unknown
    assert bench.commit(leader, 1, instance="i9") is unknown
    assert bench.leave((leader, "i9")) == [unknown]


def test_the_parked_join_of_a_replaced_member_is_fenced(bench):
    """Given A parked in a join, when its instance joins anew, then A's join gets FENCED_INSTANCE_ID. C-38."""
    leader, _ = static_group(bench)
    parked = bench.join(leader, instance="i1")
    fresh = bench.join(instance="i1")
    assert bench.replies[parked].error is FENCED
    assert fresh not in bench.replies


def test_the_parked_sync_of_a_replaced_member_is_fenced(bench):
    """Given CompletingRebalance and A parked in a sync, when its instance joins anew, then A's sync is
    fenced and a round starts, for the leader may have dealt to A. C-38, C-42."""
    leader, follower = static_group(bench)
    bench.join(leader, instance="i1")
    bench.join(follower, instance="i2")
    parked = bench.sync(follower, group_instance_id="i2")
    fresh = bench.join(instance="i2")
    assert bench.replies[parked].error is FENCED
    assert fresh not in bench.replies
    assert bench.state() is PREPARING


@pytest.mark.parametrize("version", [8, 9])
def test_a_follower_that_bounces_causes_no_round(bench, version):
    """Given Stable, when a static follower comes back, then the same generation, and its old assignment by
    sync. PROTOCOL 6.3, 6.5, C-39, C-45."""
    leader, old = static_group(bench)
    before = len(rounds(bench))
    answer = bench.joined(instance="i2", version=version)
    assert (answer.error, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, leader)
    assert (answer.members, answer.skip_assignment) == ((), False)
    assert bench.synced(answer.member_id, group_instance_id="i2").assignment == bench.share(old)
    assert len(rounds(bench)) == before


def test_a_leader_that_bounces_gets_skip_assignment(bench):
    """Given Stable and v9, when the static leader comes back, then it leads with all members and
    skip_assignment, and no round. PROTOCOL 6.3, C-39, C-28."""
    old, follower = static_group(bench)
    answer = bench.joined(instance="i1", version=9)
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (1, answer.member_id, True)
    assert [member.member_id for member in answer.members] == [answer.member_id, follower]
    assert bench.synced(answer.member_id, shares={}).assignment == bench.share(old)
    assert bench.synced(follower).assignment == bench.share(follower)
    assert bench.group().leader == answer.member_id


def test_an_old_client_that_led_is_answered_the_old_leaders_id(bench):
    """Given v8, when the static leader comes back, then the leader is its old id, so that it follows; the
    lead is its own all the same. PROTOCOL 6.3, C-39."""
    old, _ = static_group(bench)
    answer = bench.joined(instance="i1", version=8)
    assert (answer.leader, answer.members, answer.skip_assignment) == (old, (), False)
    assert bench.group().leader == answer.member_id
    assert bench.joined(answer.member_id, instance="i1") is None
    assert bench.state() is PREPARING


def test_the_new_id_is_stored_before_the_join_is_answered(bench):
    """Given the write under way, when it succeeds, then the answer; the log knows the new id. PROTOCOL
    6.3."""
    leader, old = static_group(bench)
    bench.holding = True
    parked = bench.join(instance="i2")
    assert parked not in bench.replies
    bench.release()
    new = bench.replies[parked].member_id
    stored = bench.table()[0]["g"]
    assert [(x.member_id, x.assignment) for x in stored.members] == [
        (leader, bench.share(leader)),
        (new, bench.share(old)),
    ]


def test_a_new_id_that_cannot_be_stored_is_taken_back(bench):
    """Given the write fails, then the error, and the old id, its timeouts, its assignors, its session and the
    lead are as before. PROTOCOL 6.3, C-41."""
    old, follower = static_group(bench, session_ms=20_000)
    bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = bench.joined(instance="i1", names=("range", "rr"), session_ms=6_000, rebalance_ms=7_000)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    group = bench.group()
    member = group.members[old]
    assert list(group.members) == [old, follower]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 60_000)
    assert [p.name for p in member.protocols] == ["range"]
    assert (group.leader, group.static_members["i1"], group.state) == (old, old, GroupState.STABLE)
    bench.append_error = ErrorCode.NONE
    bench.sleep(19_999)
    assert old in bench.group().members
    bench.sleep(1)
    assert old not in bench.group().members


def test_a_failed_write_that_a_round_overtook_leaves_the_new_id_in_the_round(bench):
    """Given the new id's write under way, when a round begins and the write fails then, then its outcome is
    ignored: the round stores the new id, and its choice of assignor holds. PROTOCOL 6.3, 3.8, C-41."""
    bench.enter(instance="i1", names=("range", "sticky"))
    bench.enter(instance="i2", names=("range", "rr", "sticky"))
    leader, _ = bench.settle()
    bench.holding = True
    bench.join(instance="i1", names=("range", "rr"))
    bench.enter(names=("rr",))
    bench.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert leader not in bench.group().members
    bench.join(bench.group().static_members["i2"], instance="i2", names=("range", "rr"))
    assert bench.state() is COMPLETING
    assert bench.group().protocol_name == "rr"


def test_a_failed_write_that_a_whole_round_overtook_changes_nothing(bench):
    """Given the new id's write under way, when a round begins, ends and is stored, and the write fails then,
    then the new id stays. C-41."""
    static_group(bench)
    bench.holding = True
    bench.join(instance="i2")
    (late,) = bench.held
    bench.held.clear()
    bench.holding = False
    new = bench.group().static_members["i2"]
    bench.join(bench.group().leader, instance="i1", metadata=b"new")
    bench.join(new, instance="i2", metadata=b"new")
    bench.settle()
    bench.write(late, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.group().static_members["i2"] == new
    assert bench.beat(new, instance="i2") is ErrorCode.NONE


def test_a_leader_that_bounces_leads_on_though_others_came_first(bench):
    """Given a leader that has not been in the group longest, when it bounces, then its new id leads.
    PROTOCOL 6.3."""
    first, second, third = bench.stable_group(3, instances=("i1", "i2", "i3"), session_ms=100_000)
    bench.join(second, instance="i2", metadata=b"new", session_ms=100_000)
    bench.join(third, instance="i3", session_ms=100_000)
    bench.sleep(60_000)
    assert bench.group().leader == second
    bench.join(instance="i2", metadata=b"new", session_ms=100_000)
    assert next(iter(bench.group().members)) == first
    assert bench.group().leader == bench.group().static_members["i2"] != second


def test_a_member_whose_new_id_is_stored_late_still_has_a_session(bench):
    """Given a write that takes longer than the session, when it is done, then a session runs from there.
    PROTOCOL 5.2, 6.4."""
    static_group(bench)
    bench.holding = True
    bench.join(instance="i2")
    new = bench.group().static_members["i2"]
    bench.sleep_and_beat(14_000, bench.group().leader)
    bench.release()
    assert new in bench.group().members
    bench.sleep_and_beat(10_000, bench.group().leader)
    assert new not in bench.group().members


def test_a_member_that_is_back_keeps_the_session_timeout_before_until_its_next_sign_of_life(bench):
    """Given a session timeout of 10 s, when the member comes back with one of 30 s and is silent, then it is
    removed after 10 s, as in Kafka. PROTOCOL 6.2."""
    leader, _ = static_group(bench)
    bench.joined(instance="i2", session_ms=30_000)
    bench.sleep_and_beat(8_000, leader)
    assert len(bench.group().members) == 2
    bench.sleep_and_beat(2_000, leader)
    assert list(bench.group().members) == [leader]


def test_a_member_that_is_back_before_its_sync_starts_a_round_late(bench):
    """Given Stable and a static member that has not synced, when it comes back and syncs, then the sync of
    its old id is still missing, and a round starts when the rebalance timeout ends, as in Kafka. C-29."""
    leader, _ = static_group(bench, session_ms=1_000_000)
    for instance, member in bench.group().static_members.items():
        bench.join(member, instance=instance, metadata=b"new", session_ms=1_000_000)
    bench.sync(leader)
    assert bench.state() is GroupState.STABLE
    new = bench.joined(instance="i2", metadata=b"new", session_ms=1_000_000).member_id
    assert bench.synced(new).error is ErrorCode.NONE
    bench.sleep(59_999)
    assert bench.state() is GroupState.STABLE
    bench.sleep(1)
    assert (bench.state(), list(bench.group().members)) == (PREPARING, [leader, new])


def test_a_static_newcomer_that_bounces_waits_as_long_as_it_takes(bench):
    """Given a static member parked in its first join, when it comes back and the round lasts longer than its
    session, then it is not expired. PROTOCOL 5.2, 6.2."""
    bench.stable_group(1, session_ms=1_000_000)
    bench.join(instance="i1")
    parked = bench.join(instance="i1")
    assert parked not in bench.sleep(50_000)
    assert bench.sleep(10_000)[parked].error is ErrorCode.NONE


def test_a_changed_choice_of_assignor_starts_a_round(bench):
    """Given Stable with [range, rr] twice, when one comes back preferring rr and the leader's word decides,
    then a round. PROTOCOL 6.4, C-40."""
    _, follower = static_group(bench, names=("range", "rr"))
    parked = bench.join(instance="i1", names=("rr", "range"))
    assert parked not in bench.replies
    assert bench.state() is PREPARING
    bench.join(follower, instance="i2", names=("range", "rr"))
    assert bench.replies[parked].protocol_name == "rr"


def test_other_lists_with_the_same_choice_start_no_round(bench):
    """PROTOCOL 6.3, C-39."""
    static_group(bench, names=("rr", "range"))
    assert bench.joined(instance="i2", names=("range", "rr")).error is ErrorCode.NONE
    assert bench.state() is GroupState.STABLE


@pytest.mark.parametrize("notices", [False, True])
def test_a_setting_decides_if_a_changed_subscription_is_noticed(make_bench, notices):
    """Given Stable, when a static member comes back with another subscription, then no round, as in Kafka
    (KAFKA-12759), unless the setting is on. PROTOCOL 6.3, C-43."""
    bench = make_bench(notice_static_subscription=notices)
    static_group(bench, metadata=encode_subscription(Subscription(("t",))))
    more = encode_subscription(Subscription(("t", "u")))
    assert (bench.joined(instance="i2", metadata=more) is None) is notices
    assert bench.state() is (PREPARING if notices else GroupState.STABLE)


def test_the_setting_leaves_an_unchanged_subscription_alone(make_bench):
    """Given the same topics in other bytes, as after a restart that forgot what was owned. PROTOCOL 6.3."""
    bench = make_bench(notice_static_subscription=True)
    owning = Subscription(("t", "u"), Partitions({"t": [0]}), 1)
    static_group(bench, metadata=encode_subscription(owning))
    forgetful = encode_subscription(Subscription(("t", "u")))
    assert bench.joined(instance="i2", metadata=forgetful).error is ErrorCode.NONE


def test_a_bounce_while_preparing_counts_as_rejoined(bench):
    """PROTOCOL 6.2, 3.9."""
    leader, _ = static_group(bench)
    parked = bench.join(leader, instance="i1")
    fresh = bench.join(instance="i2")
    assert bench.replies[parked].generation_id == bench.replies[fresh].generation_id == 2


def test_a_known_id_with_its_instance_is_treated_as_any_member(bench):
    """Given Stable, when a static follower joins by its id, unchanged, then the current generation; changed,
    a round. PROTOCOL 6.4."""
    _, follower = static_group(bench)
    assert bench.joined(follower, instance="i2").generation_id == 1
    assert bench.joined(follower, instance="i2", metadata=b"new") is None


def test_a_static_member_that_dies_keeps_its_place_until_its_session_ends(bench):
    """Given a silent static member, when a round passes it by, then it stays; when its session ends, it is
    removed and a round starts. PROTOCOL 6.4, 6.5, C-44."""
    bench.enter(instance="i1", rebalance_ms=5_000, session_ms=30_000)
    bench.enter(instance="i2", rebalance_ms=5_000, session_ms=30_000)
    leader, dead = bench.settle()
    bench.join(leader, instance="i1", rebalance_ms=5_000, session_ms=30_000)
    bench.sleep(5_000)
    bench.sync(leader)
    assert (bench.state(), bench.group().generation) == (GroupState.STABLE, 2)
    assert dead in bench.group().members


def test_four_things_make_a_static_group_rebalance(make_bench):
    """Given static groups in Stable, when a member joins, the leader rejoins, a session ends, or a member
    leaves, then a round; on heartbeats, commits, bounces and followers' rejoins, none. PROTOCOL 6.5."""
    causes = {
        "new member": lambda b, leader, follower: b.join(instance="i3"),
        "leader": lambda b, leader, follower: b.join(leader, instance="i1"),
        "session": lambda b, leader, follower: b.sleep_and_beat(10_000, leader),
        "leave": lambda b, leader, follower: b.leave(("", "i2")),
        "heartbeat": lambda b, leader, follower: b.beat(follower, instance="i2"),
        "commit": lambda b, leader, follower: b.commit(follower, 1, instance="i2"),
        "bounce": lambda b, leader, follower: [b.join(instance="i1"), b.join(instance="i2")],
        "follower": lambda b, leader, follower: b.join(follower, instance="i2"),
    }
    started = set()
    for name, act in causes.items():
        bench = make_bench()
        members = static_group(bench)
        act(bench, *members)
        if bench.state() is PREPARING:
            started.add(name)
    assert started == {"new member", "leader", "session", "leave"}
