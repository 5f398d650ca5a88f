"""The rounds of simulated runs, what belongs to no round, and what a round waits for."""

import pytest

from coordinator_core.reading.partitions import listed
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.entries import MemberRound, Occurrence, Round
from rebalance_lab.traces.rounds import entries, rounds
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.story import story as lines_of
from tests.places import SCENARIOS

# --- the story of a scale-out: six partitions on two members, a third joins, then the second crashes


@pytest.fixture(scope="module")
def scale_out():
    registry, scenario = default_registry(), load_scenario(SCENARIOS / "scale-out.yaml")
    return {s: entries(simulate(scenario, s, registry)) for s in ("range", "cooperative-sticky")}


def outline(of):
    return [each.generation if isinstance(each, Round) else each.text for each in of]


def held(partitions):
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


def test_cooperative_sticky_takes_two_rounds_for_a_join_and_one_for_a_crash(scale_out):
    assert outline(scale_out["cooperative-sticky"]) == [
        1,
        "join c3",
        2,
        3,
        "crash c2, the owner of clicks 1 3",
        4,
    ]


def test_range_takes_one_round_for_each(scale_out):
    assert outline(scale_out["range"]) == [1, "join c3", 2, "crash c2, the owner of clicks 2-3", 3]


def test_each_round_has_its_cause_its_leader_and_its_assignor(scale_out):
    for strategy, happened in scale_out.items():
        rounds = [each for each in happened if isinstance(each, Round)]
        assert {each.protocol for each in rounds} == {strategy}
        assert all(each.leader in each.members for each in rounds)
        assert all(each.stable_ms >= each.began_ms for each in rounds)
        assert "joined" in rounds[0].causes[0]
        assert "c3" in rounds[1].causes[0]
        assert "c2" in rounds[-1].causes[0]


# --- what belongs to no round, and what a round waits for


def run_of(strategy, events, *, members=None, **changes):
    document = {
        "name": "told",
        "duration": "4m",
        "phase": "0s",
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": members or [{"id": "c", "count": 3, "topics": ["t"]}],
        "events": events,
        **changes,
    }
    registry = default_registry()
    return entries(simulate(parse_scenario(document, where="test", registry=registry), strategy, registry))


def of_kind(kind, told):
    return [entry for entry in told if isinstance(entry, kind)]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_member_that_closes_revokes_with_its_leave_and_in_no_round(strategy):
    told = run_of(strategy, [{"at": "40s", "leave": "c-1"}])
    first, leave, second = told
    assert {name: bool(member.revoked) for name, member in first.members.items()} == dict.fromkeys(
        ("c-0", "c-1", "c-2"), False
    )
    given_up = listed(first.members["c-1"].assigned)
    assert leave == Occurrence(40_000, f"leave c-1, which revoked {given_up}")
    assert "c-1" not in second.members
    assert second.causes == ["c-1 left (the consumer is being closed)"]
    assert second.left == {"c-1": "the consumer is being closed"}


def test_what_an_eager_member_revokes_before_it_causes_a_round_belongs_to_that_round():
    topics = {name: {"partitions": 2, "rate": 20} for name in ("t", "u")}
    first, _, second = run_of("range", [{"at": "40s", "subscribe": "c-0", "topics": ["u"]}], topics=topics)
    assert all(not member.revoked for member in first.members.values())
    assert second.members["c-0"].revoked == first.members["c-0"].assigned


def test_a_static_member_that_comes_back_owns_its_partitions_without_a_round():
    first, leave, restart, back = run_of(
        "range+static", [{"at": "40s", "leave": "c-1"}, {"at": "50s", "restart": "c-1"}]
    )
    given_up = listed(first.members["c-1"].assigned)
    assert first.members["c-1"] == MemberRound(assigned={"t": [2, 3]})
    assert leave.text == f"leave c-1, which revoked {given_up}"
    assert restart.text == "restart c-1"
    assert back.text.startswith(
        f"c-1 is back under its instance id and owns {given_up} without a round after "
    )


def test_a_round_whose_leader_dies_before_it_assigns_is_aborted():
    """By the crash of the leader within the milliseconds between its JoinGroup response and its SyncGroup."""
    settings = {"session.timeout.ms": "10s"}
    (generation_1,) = of_kind(Round, run_of("range", [], config=settings))
    at_ms = generation_1.began_ms + generation_1.waited_ms + 1
    crash = {"at": f"{at_ms}ms", "crash": generation_1.leader}
    aborted, crashed, after = run_of("range", [crash], config=settings)
    assert crashed.text == f"crash {generation_1.leader}"
    assert (aborted.generation, aborted.stable_ms) == (1, None)
    assert aborted.aborted == f"session of {generation_1.leader} expired"
    assert (after.generation, after.causes, after.began_ms) == (2, [aborted.aborted], aborted.aborted_ms)
    assert after.stable_ms is not None


def test_a_round_waits_for_the_last_member_that_joins():
    _, _, second = run_of("range", [{"at": "40s", "join": {"id": "d", "topics": ["t"]}}])
    assert second.joined == ["d"]
    ((name, how),) = second.waited_for.items()
    assert (name in second.members, how) == (True, "the last of 4 to join")
    assert 0 < second.waited_ms <= second.stable_ms - second.began_ms


def test_a_round_waits_for_a_member_until_its_session_expires():
    events = [{"at": "40s", "crash": "c-1"}, {"at": "41s", "join": {"id": "d", "topics": ["t"]}}]
    second = of_kind(Round, run_of("range", events, config={"session.timeout.ms": "20s"}))[1]
    assert second.causes == ["d joined"]
    assert second.waited_for == {"c-1": "session expired"}
    assert second.left == {"c-1": "session expired"}
    assert second.waited_ms > 10_000
    assert second.idle_meanwhile_ms > 2 * second.waited_ms


def test_a_round_waits_for_a_static_member_that_does_not_join_until_its_timeout():
    events = [{"at": "40s", "crash": "c-1"}, {"at": "41s", "join": {"id": "d", "topics": ["t"]}}]
    settings = {"session.timeout.ms": "60s", "max.poll.interval.ms": "20s"}
    second = of_kind(Round, run_of("range+static", events, config=settings))[1]
    assert second.waited_for == {"c-1": "did not join"}
    assert 20_000 <= second.waited_ms < 21_000


def test_the_first_round_of_an_empty_group_waits_for_nobody_in_particular():
    (first,) = run_of("range", [])
    assert (first.was_empty, first.waited_for, first.waited_ms) == (True, {}, 6_000)
    assert (first.moved, first.stopped, first.stopped_ms) == (0, 0, 0)


def test_work_goes_on_while_a_cooperative_round_waits_and_stops_for_an_eager_one():
    events = [{"at": "40s", "join": {"id": "d", "topics": ["t"]}}]
    eager = of_kind(Round, run_of("range", events))[1]
    asks, gives = of_kind(Round, run_of("cooperative-sticky", events))[1:]
    assert (eager.stopped, eager.moved) == (6, 1)
    assert eager.idle_meanwhile_ms > 0
    assert (asks.stopped, asks.moved, asks.idle_meanwhile_ms) == (0, 0, 0)
    assert (gives.stopped, gives.moved) == (1, 1)
    assert gives.stopped_ms == gives.longest_stop_ms >= gives.waited_ms


def test_added_partitions_stand_still_until_they_are_assigned():
    told = run_of("range", [{"at": "40s", "add_partitions": {"t": 8}}], config={"metadata.max.age.ms": "30s"})
    _, added, second = told
    assert added.text == "add_partitions t, which has 8 partitions now"
    assert second.stopped == 8
    assert second.longest_stop_ms == second.taken_over_ms - 40_000 or second.longest_stop_ms > 5_000


def test_the_last_member_leaves_an_empty_group_without_a_round():
    told = run_of("range", [{"at": "40s", "leave": "c"}], members=[{"id": "c", "topics": ["t"]}])
    assert [type(entry) for entry in told] == [Round, Occurrence, Occurrence]
    assert told[-1].text == "the group is Empty: c left (the consumer is being closed)"


def test_a_round_ends_with_its_coordinator():
    events = [{"at": "40s", "crash": "c-1"}, {"at": "51s", "coordinator_failover": {"down": "2s"}}]
    told = run_of("sticky", events, config={"session.timeout.ms": "10s", "heartbeat.interval.ms": "3s"})
    aborted = of_kind(Round, told)[1]
    assert (aborted.generation, aborted.left) == (0, {"c-1": "session expired"})
    assert aborted.aborted.startswith("broker ")
    assert (aborted.aborted.split()[-1], aborted.aborted_ms) == ("failed", 51_000)


def test_a_member_that_is_back_before_its_session_expires_has_joined_left_and_returned():
    events = [{"at": "40s", "crash": "c-1"}, {"at": "45s", "restart": "c-1"}]
    second = of_kind(Round, run_of("range", events, config={"session.timeout.ms": "20s"}))[1]
    assert (second.joined, second.left, second.returned) == (["c-1"], {"c-1": "session expired"}, ["c-1"])
    assert second.waited_for == {"c-1": "session expired"}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("name", ["leave", "scale-out", "bounce", "shop"])
def test_the_stops_and_moves_of_all_rounds_are_those_that_the_metrics_count(name, strategy):
    """Each stop of these runs ends in a round, and none begins before the group first rests."""
    registry = default_registry()
    trace = simulate(load_scenario(SCENARIOS / f"{name}.yaml"), strategy, registry)
    told, figures = of_kind(Round, entries(trace)), measure(trace, registry)
    assert sum(entry.stopped_ms for entry in told) / 1_000 == pytest.approx(
        figures["stopped_partition_seconds"]
    )
    assert max(entry.longest_stop_ms for entry in told) / 1_000 == figures["longest_stop_seconds"]
    assert sum(entry.moved for entry in told) == figures["moved_partitions"]


def test_a_stop_that_ends_without_a_round_belongs_to_the_change_that_ends_it():
    told = run_of("range", [{"at": "40s", "pause": "c-1", "for": "20s"}])
    assert [entry.text for entry in of_kind(Occurrence, told)] == [
        "pause c-1, the owner of t 2-3",
        "resume c-1 (pause), after 20 s without work on t 2-3",
    ]
    assert [entry.stopped for entry in of_kind(Round, told)] == [0]


def test_a_member_that_runs_closes_before_it_is_restarted():
    told = run_of("range", [{"at": "40s", "restart": "c-1"}])
    assert [entry.text for entry in of_kind(Occurrence, told)] == [
        "restart c-1, which closed first and revoked t 2-3"
    ]


CROWD = {
    "members": [{"id": "c", "count": 6, "topics": ["t", "u"]}],
    "topics": {name: {"partitions": 24, "rate": 240} for name in ("t", "u")},
}
JOINS = [{"at": "120s", "join": [{"id": name, "topics": ["t", "u"]} for name in ("x", "y", "z")]}]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "watcher", "rocketmq"])
def test_the_changes_of_a_round_lead_from_what_a_member_owned_to_what_it_owns(strategy):
    """Also if a member gets partitions several times in a round, as without a coordinator."""
    owned = {}
    crash = {"at": "60s", "crash": "c-2"}
    for entry in of_kind(Round, run_of(strategy, [crash, *JOINS], seed=5, **CROWD)):
        for client in entry.left:
            owned[client] = set()
        for client, member in entry.members.items():
            kept, new = held(member.kept), held(member.assigned)
            given_up = held(member.revoked) | held(member.lost)
            assert not kept & (new | given_up)
            assert not held(member.held) & (kept | new | given_up)
            assert kept | given_up == owned.get(client, set())
            owned[client] = kept | new
    assert sorted(set.union(*owned.values())) == [(topic, n) for topic in ("t", "u") for n in range(24)]


@pytest.mark.parametrize("strategy", ["watcher", "rocketmq"])
def test_each_generation_and_each_new_member_is_in_a_round(strategy):
    told = of_kind(Round, run_of(strategy, JOINS, **CROWD))
    numbers = [number for entry in told for number in entry.generations]
    assert numbers == list(range(1, told[-1].generation + 1))
    assert sorted(name for entry in told for name in entry.joined) == [*(f"c-{n}" for n in range(6)), *"xyz"]


def test_a_round_of_members_that_are_told_one_by_one_has_the_cause_that_they_were_told():
    """PROTOCOL 11.7: a broker tells a member of a closed connection before the last broker drops it."""
    document = {
        "name": "lists",
        "duration": "40s",
        "topics": {"clicks": {"partitions": 4, "rate": 100}},
        "members": [{"id": "c1", "topics": ["clicks"]}, {"id": "c2", "topics": ["clicks"]}],
        "events": [{"at": "20s", "crash": "c2"}],
    }
    registry = default_registry()
    trace = simulate(parse_scenario(document, where="lists", registry=registry), "rocketmq", registry)
    last = rounds(trace)[-1]
    assert last.causes == ["c2: its connection was closed"]
    told = "\n".join(str(body) for _, body, _ in lines_of(trace))
    assert "because c2: its connection was closed\n" in told
