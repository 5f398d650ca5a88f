"""What a consumer subscribes to: four ways that exclude one another."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.states import FetchState
from coordinator_core.client.subscription import Subscriptions, partition_map
from coordinator_core.errors import InputError
from coordinator_core.protocol import messages as m
from tests.coordinator_core.client.bench import T0, T1, U0, Bench

WAYS = {
    "subscribe": (["t"],),
    "subscribe_pattern": ("t.*",),
    "assign": ([("t", 0)],),
}


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_two_ways_of_subscribing_exclude_one_another_until_unsubscribe(bench, first, second):
    """Given a subscription of one kind, then another of its kind replaces it, and one of another kind is an
    error that changes nothing, until unsubscribe. PROTOCOL 9.1."""
    bench.call(first, *WAYS[first])
    if first == second:
        bench.call(second, *WAYS[second])
        return
    mode = bench.client._subscriptions.mode
    with pytest.raises(InputError, match="unsubscribe first"):
        bench.call(second, *WAYS[second])
    assert bench.client._subscriptions.mode is mode
    bench.call("unsubscribe")
    bench.call(second, *WAYS[second])
    assert bench.client._subscriptions.mode is not mode


@pytest.mark.parametrize("topics", [[""], ["t", " "], [None], ["t", 3]])
def test_an_empty_topic_or_none_in_the_list_is_an_error(bench, topics):
    """Given a list with no name in it, then the error says so, and the subscription stays. PROTOCOL 9.1."""
    bench.subscribe("t")
    with pytest.raises(InputError, match="expected names of topics"):
        bench.subscribe(*topics)
    assert bench.client._subscriptions.topics == ("t",)


@pytest.mark.parametrize("partitions", [[("", 0)], [(None, 0)], [("t", -1)], [("t", None)]])
def test_partitions_that_cannot_be_are_an_error(bench, partitions):
    """PROTOCOL 9.1."""
    with pytest.raises(InputError, match="assign"):
        bench.call("assign", partitions)
    bench.subscribe("t")


def test_a_pattern_that_is_no_regular_expression_is_an_error(bench):
    """PROTOCOL 9.1."""
    with pytest.raises(InputError, match=r"expected a regular expression"):
        bench.call("subscribe_pattern", "t(")
    bench.subscribe("t")


def test_subscribing_to_no_topic_is_as_good_as_unsubscribe(bench):
    """Given a member that owns something, when it subscribes to nothing, then it gives that up and leaves.
    PROTOCOL 9.1."""
    bench.stable(T0)
    bench.subscribe()
    assert (bench.owned, bench.state) == ([], MemberState.UNJOINED)
    assert bench.sent(m.LeaveGroupRequest).request.members[0].member_id == "m1"
    assert bench.calls[-1] == ("revoked", [T0])


def test_topics_are_kept_once_and_in_javas_order():
    """PROTOCOL 9.6, C-21."""
    subscriptions = Subscriptions()
    subscriptions.subscribe(["b", "\U0001f600", "\uffee", "a", "b"])
    assert subscriptions.topics == ("a", "b", "\U0001f600", "\uffee")


def test_assigned_partitions_take_no_part_in_rebalances(bench):
    """Given partitions assigned by hand, when the consumer polls on, then it fetches offsets and commits
    without a generation, but neither joins, beats nor leaves. PROTOCOL 9.1."""
    bench.served[m.OffsetCommitRequest] = bench.well
    bench.call("assign", [("t", 0)])
    bench.live(20_000)
    bench.call("commit")
    bench.close()
    kinds = {type(send.request) for send in bench.log}
    assert kinds.isdisjoint({m.JoinGroupRequest, m.HeartbeatRequest, m.LeaveGroupRequest})
    (commit,) = bench.requests(m.OffsetCommitRequest)
    assert (commit.generation_id, commit.member_id) == (-1, "")
    assert (list(bench.client.owned), bench.calls, bench.client.closed) == ([], [], True)


def test_assigning_anew_keeps_the_positions_of_what_stays(bench):
    """PROTOCOL 9.2."""
    bench.call("assign", [("t", 0), ("t", 1)])
    bench.call("seek", "t", 0, 7)
    bench.call("assign", [("t", 0), ("u", 0)])
    states = bench.client.partitions
    assert {tp: states[tp].position for tp in states} == {T0: 7, U0: -1}


def test_a_pattern_matches_whole_names_and_follows_the_topics_there_are():
    """Given a pattern, when a topic comes that it matches, then the consumer joins again with it.
    PROTOCOL 9.1, 9.4."""
    bench = Bench(topics={"t": 1, "tt": 1, "at": 1}, metadata_max_age_ms=10_000, enable_auto_commit=False)
    bench.call("subscribe_pattern", "t+")
    bench.join_as_follower()
    bench.synced(("t", 0))
    assert bench.requests(m.MetadataRequest)[0].topics is None
    assert bench.requests(m.JoinGroupRequest)[0].reason == "the first join"
    bench.topics |= {"ttt": 1}
    bench.serve(m.HeartbeatRequest)
    bench.sleep(10_000, polling=True)
    assert bench.subscription().topics == ("t", "tt", "ttt")
    assert bench.join().reason == "the subscription changed"


def test_a_pattern_waits_for_the_topics_there_are():
    """Given a pattern and no metadata yet, then the consumer does not join, nor is there a poll or a deadline
    that would come to nothing. PROTOCOL 9.4."""
    bench = Bench()
    del bench.served[m.MetadataRequest]
    bench.call("subscribe_pattern", "t")
    bench.polls()
    bench.sleep(1_000, polling=True)
    assert not bench.requests(m.JoinGroupRequest)
    bench.answer(m.MetadataRequest, bench.metadata(bench.sent(m.MetadataRequest).request))
    bench.polls()
    assert bench.subscription().topics == ("t",)


def test_subscribing_to_a_pattern_again_matches_at_once_what_is_known(bench):
    """PROTOCOL 9.1."""
    bench.call("subscribe_pattern", "t")
    bench.polls()
    bench.call("subscribe_pattern", "u|t")
    assert bench.client._subscriptions.topics == ("t", "u")


def test_an_assignment_matches_a_subscription_if_it_has_no_other_topic():
    """PROTOCOL 9.7, C-53."""
    subscriptions = Subscriptions()
    subscriptions.subscribe(["t"])
    assert subscriptions.matches([])
    assert subscriptions.matches([T0, T1])
    assert not subscriptions.matches([T0, U0])


def test_a_partition_map_lists_topics_and_numbers_in_order():
    """PROTOCOL 9.7."""
    listed = partition_map([U0, ("t", 10), ("t", 9)])
    assert list(listed.items()) == [("t", [9, 10]), ("u", [0])]


def test_partitions_nobody_is_busy_with_are_found_by_state():
    """Given partitions in a state, then those asked about, or about to be given up, are left out.
    PROTOCOL 9.2, C-51."""
    subscriptions = Subscriptions()
    subscriptions.assign_by_user([T0, T1, U0])
    subscriptions.partitions[T0].busy = True
    subscriptions.partitions[U0].pending_revocation = True
    assert subscriptions.in_state(FetchState.INITIALIZING) == [T1]
