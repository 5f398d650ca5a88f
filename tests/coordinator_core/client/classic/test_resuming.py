"""Resumed memberships: a consumer continues where a completed round has left it."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.generation import Generation
from coordinator_core.client.states import FetchState
from coordinator_core.errors import InputError
from coordinator_core.model import Cluster
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, Bench, cooperative

MEMBER = Generation(7, "m1", "dealing")


def resumed(positions=None, *, subscribed=("t",), topics=("t",), bench=None, generation=MEMBER, **given):
    """A consumer that was a member before, and has not been polled since."""
    bench = bench or Bench(enable_auto_commit=False)
    bench.subscribe(*subscribed)
    positions = {T0: 5, T1: 9} if positions is None else positions
    given = {"topics": topics, "last_response_ms": 0} | given
    bench.call("resume_membership", generation, positions, **given)
    return bench


def test_a_resumed_member_is_stable_and_owns_its_partitions():
    bench = resumed()
    assert bench.state is MemberState.STABLE
    assert bench.client.generation == MEMBER
    assert bench.owned == [T0, T1]


def test_a_resumed_member_reports_no_added_partitions():
    assert resumed().events == [
        ev.ClientStateChanged(client="c", before="unjoined", after="stable"),
        ev.Joined(client="c", member_id="m1", generation=7, protocol="dealing", leader=False),
        ev.Assigned(client="c", generation=7, added={}, owned={"t": [0, 1]}),
    ]


def test_a_resumed_member_sends_no_join_and_requests_no_offsets():
    bench = resumed()
    bench.respond_to(m.HeartbeatRequest)
    bench.live(60_000)
    requests = {type(send.request) for send in bench.log}
    assert requests == {m.FindCoordinatorRequest, m.MetadataRequest, m.HeartbeatRequest}
    assert bench.state is MemberState.STABLE


def test_a_resumed_member_has_the_given_positions():
    bench = resumed({T0: 5, T1: 9})
    states = bench.client.partitions
    assert {tp: (s.fetch_state, s.position) for tp, s in states.items()} == {
        T0: (FetchState.FETCHING, 5),
        T1: (FetchState.FETCHING, 9),
    }


def test_resuming_calls_the_assignor_and_not_the_listener():
    """PROTOCOL 9.7: the assignor remembers; nothing is new to the application."""
    bench = resumed()
    assert bench.assignors[0].calls == [("on_assignment", [T0, T1], 7)]
    assert bench.calls == []


def test_heartbeats_of_a_resumed_member_follow_the_last_response():
    """PROTOCOL 9.9."""
    bench = resumed(last_response_ms=-2_000)
    bench.polls()
    bench.sleep(999)
    assert bench.requests(m.HeartbeatRequest) == []
    bench.sleep(1)
    (beat,) = bench.requests(m.HeartbeatRequest)
    assert (beat.generation_id, beat.member_id) == (7, "m1")


@pytest.mark.parametrize(
    ("bench", "owned", "claimed"),
    [(Bench(enable_auto_commit=False), [], []), (cooperative(enable_auto_commit=False), [T0, T1], [T0, T1])],
    ids=["eager", "cooperative"],
)
def test_a_resumed_member_takes_part_in_the_next_round(bench, owned, claimed):
    """PROTOCOL 9.5, 9.6."""
    resumed(bench=bench, generation=MEMBER._replace(protocol=bench.assignors[0].name))
    bench.polls()
    bench.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert bench.owned == owned
    assert bench.join().member_id == "m1"
    assert (sorted(bench.subscription().owned), bench.subscription().generation) == (claimed, 7)
    bench.respond_to_join(generation=8)
    bench.respond_to_sync(T1)
    assert (bench.owned, bench.client.generation.number) == ([T1], 8)


def test_a_resumed_leader_watches_the_topics_of_its_group():
    """Given the topics of the assignment, when the metadata are equal, then nothing happens; when they
    differ, the leader joins again. PROTOCOL 9.4, C-54."""
    bench = resumed(based_on=Cluster({"t": 4, "u": 2}), bench=Bench(metadata_max_age_ms=20_000))
    assert bench.client.is_leader
    assert bench.events_of(ev.Joined)[0].leader
    bench.respond_to(m.HeartbeatRequest, m.OffsetCommitRequest)
    bench.live(30_000)
    assert {topic for request in bench.requests(m.MetadataRequest) for topic in request.topics} == {"t", "u"}
    assert bench.requests(m.JoinGroupRequest) == []
    bench.topics["u"] = 3
    bench.live(30_000)
    assert bench.join().reason == "partitions of a subscribed topic changed"


def test_a_resumed_leader_notices_new_partitions_in_the_first_metadata():
    bench = resumed(based_on=Cluster({"t": 3}))
    bench.polls()
    assert bench.join().reason == "partitions of a subscribed topic changed"


def test_a_resumed_member_with_another_subscription_joins_again():
    """PROTOCOL 9.4."""
    bench = resumed(subscribed=("t", "u"), topics=("t",))
    bench.polls()
    assert bench.join().reason == "the subscription changed"


def test_a_resumed_pattern_matches_the_topics_of_the_join_until_metadata_arrive():
    bench = Bench(enable_auto_commit=False)
    bench.topics = {"t": 4, "u": 2}
    bench.call("subscribe_pattern", "[tu]")
    bench.call("resume_membership", MEMBER, {T0: 0}, topics=["t", "u"], last_response_ms=0)
    bench.polls()
    assert bench.requests(m.JoinGroupRequest) == []
    assert bench.owned == [T0]


REFUSED = {
    "no subscription": (Bench(), MEMBER, "a consumer without a subscription"),
    "partitions of its own": (Bench(), MEMBER, "a consumer without a subscription"),
    "a join in flight": (Bench(), MEMBER, "a consumer that is preparing-rebalance"),
    "a membership": (Bench(), MEMBER, "a consumer that is stable"),
    "no generation": (Bench(), MEMBER._replace(number=-1), "no generation"),
    "no member id": (Bench(), MEMBER._replace(member_id=""), "no generation"),
    "an assignor it has not": (Bench(), MEMBER._replace(protocol="range"), "the assignor 'range'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_membership_is_refused(case):
    bench, generation, found = REFUSED[case]
    if case == "partitions of its own":
        bench.call("assign", [T0])
    elif case == "a membership":
        bench.stable(T0)
    elif case != "no subscription":
        bench.subscribe("t")
    if case == "a join in flight":
        bench.polls()
    with pytest.raises(InputError) as caught:
        bench.call("resume_membership", generation, {}, topics=["t"], last_response_ms=0)
    assert (caught.value.where, caught.value.found) == ("resume_membership", found)
