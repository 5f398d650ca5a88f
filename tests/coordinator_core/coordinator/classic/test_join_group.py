"""JoinGroup: new members, known ids, and members that join again."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged


def test_an_empty_group_id_is_invalid(bench):
    """Given no group, when a join names none, then INVALID_GROUP_ID. PROTOCOL 3.1, C-02."""
    assert bench.joined(group="").error is ErrorCode.INVALID_GROUP_ID
    assert bench.coordinator.group_ids() == []


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, -1])
def test_a_session_timeout_out_of_bounds_is_refused(bench, session_ms):
    """Given any state, when the session timeout is out of bounds, then INVALID_SESSION_TIMEOUT, before the
    group is looked at. PROTOCOL 3.1, C-02."""
    assert bench.joined(session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert bench.coordinator.group_ids() == []
    leader, _ = bench.stable_group()
    assert bench.joined(leader, session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert bench.state() is GroupState.STABLE


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_a_session_timeout_at_a_bound_is_taken(bench, session_ms):
    """PROTOCOL 3.1."""
    assert bench.joined(session_ms=session_ms).error is ErrorCode.MEMBER_ID_REQUIRED


def test_an_unknown_group_is_created_for_an_empty_member_id_only(bench):
    """Given no group, when a join carries a member id, then UNKNOWN_MEMBER_ID and no group; without one,
    the group is created. PROTOCOL 3.2, C-01."""
    assert bench.joined("x").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.coordinator.group_ids() == []
    bench.enter()
    assert bench.coordinator.group_ids() == ["g"]
    assert bench.state() is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("wrong", [{"kind": ""}, {"names": ()}])
def test_a_join_without_protocol_type_or_assignors_is_inconsistent(bench, wrong):
    """Given no group or an Empty one, when the protocol type or the list is empty, then
    INCONSISTENT_GROUP_PROTOCOL. PROTOCOL 3.3, C-06."""
    assert bench.joined(**wrong).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.joined()
    assert bench.state() is GroupState.EMPTY
    assert bench.joined(**wrong).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_exists_after_a_join_that_failed(make_bench, bench):
    """Given no group, when a join to it fails, then it is Empty, and still so after a restart. C-01."""
    assert bench.joined(names=()).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.state() is GroupState.EMPTY
    assert make_bench(log=bench.log).state() is GroupState.EMPTY
    assert bench.ask(m.DeleteGroupsRequest(group_ids=("g",))).groups[0].error is ErrorCode.NONE


def test_an_abandoned_round_fixes_the_protocol_type(bench):
    """Given a round whose last member has left while an id is pending, when another type joins, then
    INCONSISTENT_GROUP_PROTOCOL. C-06."""
    (member,) = bench.stable_group(1)
    bench.joined()
    bench.leave(member)
    assert (bench.state(), bench.group().members) == (GroupState.PREPARING_REBALANCE, {})
    assert bench.joined(kind="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.joined(names=("other",)).error is ErrorCode.MEMBER_ID_REQUIRED


def test_the_first_member_fixes_the_protocol_type(bench):
    """Given a group of consumers, when a connector joins, then INCONSISTENT_GROUP_PROTOCOL. PROTOCOL 3.3."""
    bench.stable_group(1)
    assert bench.joined(kind="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.group().protocol_type == "consumer"


def test_an_emptied_group_takes_the_next_members_type(bench):
    """PROTOCOL 3.3, C-06."""
    (member,) = bench.stable_group(1)
    bench.leave(member)
    bench.enter(kind="connect")
    assert bench.group().protocol_type == "connect"


def test_an_assignor_must_be_common_to_all(bench):
    """Given [range, rr] and [rr], when [range] joins, then INCONSISTENT_GROUP_PROTOCOL: no
    assignor is common to all three. PROTOCOL 3.3, C-06."""
    bench.enter(names=("range", "rr"))
    bench.enter(names=("rr",))
    assert bench.joined(names=("range",)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.joined(names=("range", "rr")).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_new_dynamic_member_must_come_back_with_its_id(bench):
    """Given v4 or later and no ids, then MEMBER_ID_REQUIRED with `client-uuid`, pending, no member yet.
    PROTOCOL 3.4, C-03."""
    answer = bench.joined(version=4, client="billing")
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    prefix, uuid = answer.member_id.split("-", 1)
    assert prefix == "billing"
    assert len(uuid) == 36
    assert not bench.group().members
    assert bench.state() is GroupState.EMPTY
    assert bench.joined(answer.member_id) is None
    assert list(bench.group().members) == [answer.member_id]


def test_before_v4_a_member_is_taken_in_at_once(bench):
    """PROTOCOL 3.4, C-03."""
    assert bench.joined(version=3) is None
    assert len(bench.group().members) == 1


def test_a_pending_id_is_dropped_after_the_session_timeout(bench):
    """Given a pending id, when its session timeout passes without a join, then it is unknown.
    PROTOCOL 3.4, C-03."""
    in_time = bench.joined(session_ms=8_000).member_id
    late = bench.joined(session_ms=8_000).member_id
    bench.sleep(7_999)
    assert bench.joined(in_time) is None
    bench.sleep(1)
    assert bench.joined(late).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_never_pending(bench):
    """Given an instance id, when it joins, then it is parked at once, as `instance-uuid`.
    PROTOCOL 6.1, C-03."""
    assert bench.joined(instance="i1") is None
    (member,) = bench.group().members
    assert member.startswith("i1-")


def test_a_pending_id_may_not_join_as_a_static_member(bench):
    """Given a pending id, when it joins with an instance id, then it is refused as a programming error and
    never made static. C-05."""
    pending = bench.joined().member_id
    assert bench.joined(pending, instance="i1").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not bench.group().static_members
    assert bench.joined(pending) is None


def test_a_full_group_refuses_new_members(make_bench):
    """Given a Stable group of the greatest size, when another joins, then GROUP_MAX_SIZE_REACHED and no
    member id; members may join again. PROTOCOL 3.1, C-08."""
    bench = make_bench(max_size=2)
    leader, follower = bench.stable_group()
    answer = bench.joined()
    assert (answer.error, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert bench.joined(follower).error is ErrorCode.NONE
    assert bench.joined(leader) is None


def test_a_pending_id_that_finds_the_group_full_is_forgotten(make_bench):
    """Given more ids than places, when the last joins, then it is refused and its id is removed, so
    that the round does not wait for it. C-08."""
    bench = make_bench(max_size=2)
    ids = [bench.joined().member_id for _ in range(3)]
    answers = [bench.joined(member_id) for member_id in ids]
    assert [answer and answer.error for answer in answers] == [None, None, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert bench.joined(ids[2]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.settle() == ids[:2]


def test_the_last_to_rejoin_a_group_above_its_limit_is_removed(make_bench):
    """Given a Stable group of three and a limit of two from now on, when all rejoin, then the last gets
    GROUP_MAX_SIZE_REACHED, and the round ends without it after the rebalance timeout. PROTOCOL 3.1, C-08."""
    roomy = make_bench()
    members = roomy.stable_group(3)
    bench = make_bench(max_size=2, log=roomy.log)
    answers = [bench.joined(member) for member in members]
    assert [answer and answer.error for answer in answers] == [None, None, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert list(bench.group().members) == members[:2]
    bench.sleep(59_999)
    assert bench.state() is GroupState.PREPARING_REBALANCE
    bench.sleep(1)
    assert bench.state() is GroupState.COMPLETING_REBALANCE


def test_a_group_above_its_limit_is_rebalanced_when_it_is_loaded(make_bench):
    """Given a Stable group of three, when a coordinator with a limit of two loads it, then a round starts,
    which heartbeats announce, and the last to rejoin is removed (KAFKA-9885). PROTOCOL 3.1, C-08."""
    roomy = make_bench()
    members = roomy.stable_group(3)
    bench = make_bench(max_size=2, log=roomy.log)
    bench.sleep(0)
    assert bench.state() is GroupState.PREPARING_REBALANCE
    assert "group.max.size" in bench.events_of(GroupStateChanged)[-1].cause
    assert [bench.beat(member) for member in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 3
    answers = [bench.joined(member) for member in (members[2], members[0], members[1])]
    assert [answer and answer.error for answer in answers] == [None, None, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert bench.settle() == [members[0], members[2]]
    bench.sleep(1_000)
    assert bench.state() is GroupState.STABLE


@pytest.mark.parametrize("limit", [3, 4])
def test_a_group_within_its_limit_is_not_rebalanced_when_it_is_loaded(make_bench, limit):
    """PROTOCOL 3.1, C-08."""
    roomy = make_bench()
    roomy.stable_group(3)
    bench = make_bench(max_size=limit, log=roomy.log)
    bench.sleep(1_000)
    assert bench.state() is GroupState.STABLE


def test_a_member_that_waits_already_may_repeat_its_join(make_bench):
    """Given a full group in PreparingRebalance, when a waiting member sends its join again, it is taken.
    C-08."""
    bench = make_bench(max_size=2)
    bench.enter()
    waiting = bench.newcomer()
    assert bench.joined(waiting) is None
    assert len(bench.group().members) == 2


def test_a_member_rejoins_while_preparing(bench):
    """Given PreparingRebalance, when a known member joins, then it counts as rejoined, with its new
    metadata. PROTOCOL 3.9, C-19."""
    _, follower = bench.preparing_group()
    request = bench.join(follower, names=("range", "rr"), session_ms=20_000, rebalance_ms=30_000)
    member = bench.group().members[follower]
    assert [p.name for p in member.protocols] == ["range", "rr"]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 30_000)
    assert bench.state() is GroupState.COMPLETING_REBALANCE
    assert bench.replies[request].generation_id == 2


def test_an_unchanged_member_gets_the_generation_under_way_again(bench):
    """Given Stable or CompletingRebalance, when members join unchanged, then they get the current generation,
    a leader that waits for syncs with all members, and no change of state. PROTOCOL 3.9, C-19, C-20."""
    leader, follower = bench.stable_group()
    again = bench.joined(follower)
    assert (again.error, again.generation_id, again.leader, again.members) == (ErrorCode.NONE, 1, leader, ())
    for member in (leader, follower):
        bench.join(member)
    again = bench.joined(follower)
    assert (again.error, again.generation_id, again.members) == (ErrorCode.NONE, 2, ())
    assert {member.member_id for member in bench.joined(leader).members} == {leader, follower}
    assert bench.state() is GroupState.COMPLETING_REBALANCE


@pytest.mark.parametrize("arrange", ["stable_group", "completing_group"])
def test_a_changed_follower_starts_a_round(bench, arrange):
    """PROTOCOL 3.9, C-19, C-20."""
    _, follower = getattr(bench, arrange)()
    assert bench.joined(follower, metadata=b"other") is None
    assert bench.state() is GroupState.PREPARING_REBALANCE


def test_another_order_of_assignors_is_a_change(bench):
    """Given Stable, when a follower lists the same assignors in another order, then a round. C-21."""
    _, follower = bench.stable_group(names=("range", "rr"))
    assert bench.joined(follower, names=("range", "rr")).error is ErrorCode.NONE
    assert bench.joined(follower, names=("rr", "range")) is None


def test_an_equal_subscription_encoded_anew_is_no_change(bench):
    """Given what one owns, listed in any order, when it is encoded again, then the bytes are equal and no
    round starts. C-21."""

    def encoded(owned):
        return encode_subscription(Subscription(("t", "u"), Partitions(owned), 3))

    _, follower = bench.stable_group(metadata=encoded({"t": [0, 1], "u": [2]}))
    answer = bench.joined(follower, metadata=encoded({"u": [2], "t": [1, 0]}))
    assert answer.error is ErrorCode.NONE
    assert bench.state() is GroupState.STABLE


def test_a_refused_join_names_the_member_id_of_the_request(bench):
    """Only errors of the coordinator itself and of a member that is removed have no member id. C-37."""
    leader, _ = bench.stable_group()
    refused = [bench.joined("x"), bench.joined(leader, kind="connect"), bench.joined("x", session_ms=1)]
    refused.append(bench.joined("x", group=""))
    assert [answer.member_id for answer in refused] == ["x", leader, "x", "x"]
    pending = bench.joined().member_id
    refused = [bench.joined(pending, instance="i")]
    parked = bench.join(leader)
    bench.leave(leader)
    refused.append(bench.replies[parked])
    request = m.JoinGroupRequest(group_id="g", session_timeout_ms=1, rebalance_timeout_ms=1, member_id="x")
    refused += [
        bench.coordinator.refusal(request, error)
        for error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ]
    assert [answer.member_id for answer in refused] == ["", "", "", ""]


def test_a_refused_join_names_no_protocol(bench):
    """Given any error, when a join or sync is answered with it, then protocol type and name are null.
    C-23."""
    leader, _ = bench.stable_group()
    refused = [
        bench.joined(),
        bench.joined("x"),
        bench.joined(leader, kind="connect"),
        bench.joined(leader, session_ms=1),
        bench.joined(leader, instance="i"),
        bench.synced("x"),
        bench.synced(leader, 9),
        bench.synced(leader, protocol_name="rr"),
    ]
    assert ErrorCode.NONE not in [answer.error for answer in refused]
    assert {(answer.protocol_type, answer.protocol_name) for answer in refused} == {(None, None)}
