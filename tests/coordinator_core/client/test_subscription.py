"""What a consumer subscribes to: four ways that exclude one another."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.states import FetchState
from coordinator_core.client.subscription import Subscriptions, partition_map
from coordinator_core.errors import InputError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, U0, Bench

WAYS = {
    "subscribe": (["t"],),
    "subscribe_pattern": ("t.*",),
    "assign": ([("t", 0)],),
}


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_only_unsubscribe_permits_another_kind_of_subscription(bench, first, second):
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
def test_an_empty_topic_name_is_an_error(bench, topics):
    """Given a list with an empty name, then the error shows it, and the subscription stays. PROTOCOL 9.1."""
    bench.subscribe("t")
    with pytest.raises(InputError, match="expected names of topics"):
        bench.subscribe(*topics)
    assert bench.client._subscriptions.topics == ("t",)


@pytest.mark.parametrize("partitions", [[("", 0)], [(None, 0)], [("t", -1)], [("t", None)]])
def test_invalid_partitions_are_an_error(bench, partitions):
    """PROTOCOL 9.1."""
    with pytest.raises(InputError, match="assign"):
        bench.call("assign", partitions)
    bench.subscribe("t")


def test_an_invalid_pattern_is_an_error(bench):
    """PROTOCOL 9.1."""
    with pytest.raises(InputError, match=r"expected a regular expression"):
        bench.call("subscribe_pattern", "t(")
    bench.subscribe("t")


def test_subscribing_to_no_topic_unsubscribes(bench):
    """Given a member that owns a partition, when it subscribes to nothing, then it revokes the partition and
    leaves. PROTOCOL 9.1."""
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
    """Given partitions that the application assigned, when the consumer polls, then it fetches offsets and
    commits without a generation, but neither joins nor leaves nor sends heartbeats. PROTOCOL 9.1."""
    bench.responders[m.OffsetCommitRequest] = bench.success
    bench.call("assign", [("t", 0)])
    bench.live(20_000)
    bench.call("commit")
    bench.close()
    kinds = {type(send.request) for send in bench.log}
    assert kinds.isdisjoint({m.JoinGroupRequest, m.HeartbeatRequest, m.LeaveGroupRequest})
    (commit,) = bench.requests(m.OffsetCommitRequest)
    assert (commit.generation_id, commit.member_id) == (-1, "")
    assert (list(bench.client.owned), bench.calls, bench.client.closed) == ([], [], True)


def test_a_new_assignment_keeps_the_positions_of_partitions_that_stay(bench):
    """PROTOCOL 9.2."""
    bench.call("assign", [("t", 0), ("t", 1)])
    bench.call("seek", "t", 0, 7)
    bench.call("assign", [("t", 0), ("u", 0)])
    states = bench.client.partitions
    assert {tp: states[tp].position for tp in states} == {T0: 7, U0: -1}


def test_a_pattern_matches_whole_names_and_follows_the_metadata():
    """Given a pattern, when a matching topic is created, then the consumer joins again with it. PROTOCOL 9.1,
    9.4."""
    bench = Bench(topics={"t": 1, "tt": 1, "at": 1}, metadata_max_age_ms=10_000, enable_auto_commit=False)
    bench.call("subscribe_pattern", "t+")
    bench.join_as_follower()
    bench.respond_to_sync(("t", 0))
    assert bench.requests(m.MetadataRequest)[0].topics is None
    assert bench.requests(m.JoinGroupRequest)[0].reason == "the first join"
    bench.topics |= {"ttt": 1}
    bench.respond_to(m.HeartbeatRequest)
    bench.sleep(10_000, polling=True)
    assert bench.subscription().topics == ("t", "tt", "ttt")
    assert bench.join().reason == "the subscription changed"


def test_a_pattern_looks_for_topics_before_each_round(calm):
    """Given a topic that matches and that the consumer does not know, when another member starts a round,
    then the consumer requests metadata first and joins with the topic. C-54."""
    calm.respond_to(m.HeartbeatRequest)
    calm.call("subscribe_pattern", "[a-z]")
    calm.join_as_follower()
    calm.respond_to_sync(T0)
    calm.topics["v"] = 1
    updates = len(calm.requests(m.MetadataRequest))
    del calm.responders[m.HeartbeatRequest]
    del calm.responders[m.MetadataRequest]
    calm.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    calm.polls()
    assert len(calm.requests(m.MetadataRequest)) == updates + 1
    assert calm.pending(m.JoinGroupRequest) == []
    calm.respond(m.MetadataRequest, calm.metadata(calm.sent(m.MetadataRequest).request))
    calm.polls()
    assert calm.subscription().topics == ("t", "u", "v")
    calm.refuse(m.JoinGroupRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    calm.sleep(100, polling=True)
    assert calm.pending(m.JoinGroupRequest)
    assert len(calm.requests(m.MetadataRequest)) == updates + 1


def test_a_list_of_topics_needs_no_metadata_before_a_round(bench):
    """C-54."""
    bench.stable(T0)
    updates = len(bench.requests(m.MetadataRequest))
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert bench.pending(m.JoinGroupRequest)
    assert len(bench.requests(m.MetadataRequest)) == updates


def test_fresh_metadata_are_not_requested_again_before_a_round():
    """Given a pattern and metadata younger than the backoff, then the consumer joins with them. C-54."""
    bench = Bench(enable_auto_commit=False)
    bench.call("subscribe_pattern", "t")
    bench.poll()
    bench.poll()
    assert bench.pending(m.JoinGroupRequest)
    assert len(bench.requests(m.MetadataRequest)) == 1


def test_a_pattern_waits_for_metadata():
    """Given a pattern and no metadata, then the consumer does not join, and neither a poll nor a deadline is
    due without work. PROTOCOL 9.4."""
    bench = Bench()
    del bench.responders[m.MetadataRequest]
    bench.call("subscribe_pattern", "t")
    bench.polls()
    bench.sleep(1_000, polling=True)
    assert not bench.requests(m.JoinGroupRequest)
    bench.respond(m.MetadataRequest, bench.metadata(bench.sent(m.MetadataRequest).request))
    bench.polls()
    assert bench.subscription().topics == ("t",)


def test_a_new_pattern_matches_the_known_topics_at_once(bench):
    """PROTOCOL 9.1."""
    bench.call("subscribe_pattern", "t")
    bench.polls()
    bench.call("subscribe_pattern", "u|t")
    assert bench.client._subscriptions.topics == ("t", "u")


def test_an_assignment_matches_a_list_if_it_contains_all_its_topics():
    """PROTOCOL 9.7, C-53."""
    subscriptions = Subscriptions()
    subscriptions.subscribe(["t"])
    assert subscriptions.allows([])
    assert subscriptions.allows(["t"])
    assert not subscriptions.allows(["t", "u"])


def test_an_assignment_matches_a_pattern_if_the_whole_names_of_all_its_topics_do():
    """PROTOCOL 9.7, C-53."""
    subscriptions = Subscriptions()
    subscriptions.subscribe_pattern("t+")
    assert subscriptions.allows(["t", "tt"])
    assert not subscriptions.allows(["t", "tu"])


def test_a_partition_map_lists_topics_and_numbers_in_order():
    """PROTOCOL 9.7."""
    listed = partition_map([U0, ("t", 10), ("t", 9)])
    assert list(listed.items()) == [("t", [9, 10]), ("u", [0])]


def test_partitions_that_are_not_busy_are_found_by_state():
    """Given partitions in a state, then those with a request in flight, or about to be given up, are left
    out. PROTOCOL 9.2, C-51."""
    subscriptions = Subscriptions()
    subscriptions.assign_by_user([T0, T1, U0])
    subscriptions.partitions[T0].busy = True
    subscriptions.partitions[U0].pending_revocation = True
    assert subscriptions.waiting() == {FetchState.INITIALIZING: [T1]}


def test_a_pattern_does_not_match_the_beginning_of_a_name():
    bench = Bench(topics={"t": 1, "tx": 1})
    bench.call("subscribe_pattern", "t")
    bench.polls()
    assert bench.subscription().topics == ("t",)
