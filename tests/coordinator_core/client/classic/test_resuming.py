"""A membership that is resumed: a consumer goes on where a round that is over has left it."""

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.client.generation import Generation
from coordinator_core.client.states import FetchState
from coordinator_core.errors import InputError
from coordinator_core.model import Cluster
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import COORDINATOR, T0, T1, U0, Bench, cooperative
from tests.coordinator_core.client.doubles import Workshop

MEMBER = Generation(7, "m1", "dealing")


def resumed(positions=None, *, subscribed=("t",), topics=("t",), bench=None, generation=MEMBER, **given):
    """A consumer that was a member before, and has not been polled since."""
    bench = bench or Bench(enable_auto_commit=False)
    bench.subscribe(*subscribed)
    positions = {T0: 5, T1: 9} if positions is None else positions
    given = {"topics": topics, "last_response_ms": 0} | given
    bench.call("resume_membership", generation, positions, **given)
    return bench


def test_it_is_stable_in_its_generation_and_owns_what_it_owned():
    bench = resumed()
    assert bench.state is MemberState.STABLE
    assert bench.client.generation == MEMBER
    assert bench.owned == [T0, T1]


def test_it_says_so_and_adds_nothing():
    assert resumed().events == [
        ev.ClientStateChanged(client="c", before="unjoined", after="stable"),
        ev.Joined(client="c", member_id="m1", generation=7, protocol="dealing", leader=False),
        ev.Assigned(client="c", generation=7, added={}, owned={"t": [0, 1]}),
    ]


def test_it_sends_no_join_and_asks_for_no_offsets():
    bench = resumed()
    bench.serve(m.HeartbeatRequest)
    bench.live(60_000)
    asked = {type(send.request) for send in bench.log}
    assert asked == {m.FindCoordinatorRequest, m.MetadataRequest, m.HeartbeatRequest}
    assert bench.state is MemberState.STABLE


def test_its_positions_are_those_it_was_given():
    bench = resumed({T0: 5, T1: 9})
    states = bench.client.partitions
    assert {tp: (s.fetch_state, s.position) for tp, s in states.items()} == {
        T0: (FetchState.FETCHING, 5),
        T1: (FetchState.FETCHING, 9),
    }


def test_who_works_on_its_partitions_can_begin_at_once():
    source = Workshop()
    resumed({T0: 5}, bench=Bench(source=source, enable_auto_commit=False))
    assert source.calls == [("started", {T0: 5})]


def test_a_member_that_owns_nothing_is_one_too():
    bench = resumed({})
    assert (bench.state, bench.owned) == (MemberState.STABLE, [])
    bench.polls()
    assert bench.requests(m.JoinGroupRequest) == []


def test_its_assignor_is_told_and_its_listener_is_not():
    """PROTOCOL 9.7: the assignor remembers; nothing is new to the application."""
    bench = resumed()
    assert bench.assignors[0].calls == [("on_assignment", [T0, T1], 7)]
    assert bench.calls == []


def test_its_heartbeats_count_from_when_the_coordinator_was_heard():
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
def test_a_round_that_follows_is_a_round_like_any(bench, owned, claimed):
    """PROTOCOL 9.5, 9.6."""
    resumed(bench=bench, generation=MEMBER._replace(protocol=bench.assignors[0].name))
    bench.polls()
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.polls()
    assert bench.owned == owned
    assert bench.join().member_id == "m1"
    assert (sorted(bench.subscription().owned), bench.subscription().generation) == (claimed, 7)
    bench.join_answered(generation=8)
    bench.synced(T1)
    assert (bench.owned, bench.client.generation.number) == ([T1], 8)


def test_the_leader_watches_the_topics_of_its_group():
    """Given topics as they were assigned, when metadata say the same, then nothing happens; when they say
    otherwise, the leader joins again. PROTOCOL 9.4, C-54."""
    bench = resumed(based_on=Cluster({"t": 4, "u": 2}), bench=Bench(metadata_max_age_ms=20_000))
    assert bench.client.is_leader
    assert bench.events_of(ev.Joined)[0].leader
    bench.serve(m.HeartbeatRequest, m.OffsetCommitRequest)
    bench.live(30_000)
    assert {topic for asked in bench.requests(m.MetadataRequest) for topic in asked.topics} == {"t", "u"}
    assert bench.requests(m.JoinGroupRequest) == []
    bench.topics["u"] = 3
    bench.live(30_000)
    assert bench.join().reason == "partitions of a subscribed topic changed"


def test_a_topic_that_has_grown_while_nobody_watched_is_noticed_by_the_first_metadata():
    bench = resumed(based_on=Cluster({"t": 3}))
    bench.polls()
    assert bench.join().reason == "partitions of a subscribed topic changed"


def test_who_follows_does_not_watch():
    """C-54."""
    bench = resumed(bench=Bench(metadata_max_age_ms=20_000))
    bench.serve(m.HeartbeatRequest, m.OffsetCommitRequest)
    bench.topics["t"] = 9
    bench.live(60_000)
    assert bench.requests(m.JoinGroupRequest) == []


def test_who_has_subscribed_to_something_else_since_joins_again():
    """PROTOCOL 9.4."""
    bench = resumed(subscribed=("t", "u"), topics=("t",))
    bench.polls()
    assert bench.join().reason == "the subscription changed"


def test_the_order_of_topics_is_no_other_subscription():
    bench = resumed({U0: 0}, subscribed=("u", "t"), topics=("u", "t"))
    bench.polls()
    assert bench.requests(m.JoinGroupRequest) == []


def test_a_pattern_stands_for_the_topics_it_matched_until_metadata_say_more():
    bench = Bench(enable_auto_commit=False)
    bench.topics = {"t": 4, "u": 2}
    bench.call("subscribe_pattern", "[tu]")
    bench.call("resume_membership", MEMBER, {T0: 0}, topics=["t", "u"], last_response_ms=0)
    bench.polls()
    assert bench.requests(m.JoinGroupRequest) == []
    assert bench.owned == [T0]


def test_what_the_assignor_raises_goes_to_the_application():
    """C-52."""

    class Failing:
        name = "dealing"

        def assign(self, cluster, group):
            return {}

        def on_assignment(self, partitions, generation):
            raise ValueError("no memory")

    bench = resumed(bench=Bench(assignors=[Failing()]))
    assert [str(error) for error in bench.errors] == ["no memory"]
    assert bench.owned == [T0, T1]


def test_a_coordinator_that_knows_nothing_of_it_makes_it_join_anew():
    """PROTOCOL 9.9, C-46."""
    bench = resumed()
    bench.polls()
    bench.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.state is MemberState.UNJOINED
    bench.polls()
    assert (bench.join().member_id, bench.calls) == ("", [("lost", [T0, T1])])
    assert bench.sent(m.JoinGroupRequest).node == COORDINATOR


REFUSED = {
    "no subscription": (Bench(), MEMBER, "a consumer without a subscription"),
    "partitions of its own": (Bench(), MEMBER, "a consumer without a subscription"),
    "a join under way": (Bench(), MEMBER, "a consumer that is preparing-rebalance"),
    "a membership": (Bench(), MEMBER, "a consumer that is stable"),
    "no generation": (Bench(), MEMBER._replace(number=-1), "no generation"),
    "no member id": (Bench(), MEMBER._replace(member_id=""), "no generation"),
    "an assignor it has not": (Bench(), MEMBER._replace(protocol="range"), "the assignor 'range'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_resumed_is_refused(case):
    bench, generation, found = REFUSED[case]
    if case == "partitions of its own":
        bench.call("assign", [T0])
    elif case == "a membership":
        bench.stable(T0)
    elif case != "no subscription":
        bench.subscribe("t")
    if case == "a join under way":
        bench.polls()
    with pytest.raises(InputError) as caught:
        bench.call("resume_membership", generation, {}, topics=["t"], last_response_ms=0)
    assert (caught.value.where, caught.value.found) == ("resume_membership", found)
