"""Groups whose coordinator computes the assignments, in the simulator (PROTOCOL 11.2)."""

import pytest

from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.rounds import rounds
from tests.places import SCENARIOS

CLASSIC, SERVER_SIDE = "range", "range+server-side"
JOINED = {"classic": "CompletingRebalance", "server-side": "Assigning"}
"""The state of a group whose members have all joined."""


@pytest.fixture(scope="module")
def registry():
    return default_registry()


def document(latency_ms=20, events=(), **changes):
    return {
        "name": "two",
        "duration": "3m",
        "topics": {"P": {"partitions": 6, "rate": 60}},
        "members": [{"id": name, "topics": ["P"], "client": "rebalance-lab"} for name in ("c1", "c2")],
        "events": list(events),
        "network": {"latency": [latency_ms, latency_ms]},
        "config": {"session.timeout.ms": 10_000},
        **changes,
    }


def run(registry, given, strategy=SERVER_SIDE):
    """Return the trace of a scenario in which the rules of the protocol hold."""
    scenario = parse_scenario(given, where="test", registry=registry) if isinstance(given, dict) else given
    watch = Invariants(registry)
    trace = simulate(scenario, strategy, registry, watch=watch)
    assert (watch.violations, watch.settled()) == ([], [])
    return trace


def shares(trace):
    """Return when each member of each generation got its share, and the share."""
    assigned = [line for line in trace.events if isinstance(line.event, ev.Assigned)]
    return {(line.event.generation, line.event.client): (line.at_ms, line.event.owned) for line in assigned}


CHANGES = (
    {"at": "30s", "join": {"id": "c3", "topics": ["P"], "client": "rebalance-lab"}},
    {"at": "60s", "leave": "c1"},
    {"at": "90s", "crash": "c2"},
)


@pytest.mark.parametrize("latency_ms", [1, 7, 50, 200])
def test_each_member_has_its_share_two_latencies_earlier_than_with_a_sync(registry, latency_ms):
    """Given a fixed latency and no loss, then the owners are those of `range`, and every share is there two
    latencies earlier, counted from the time at which all have joined. PROTOCOL 11.2."""
    given = document(latency_ms, CHANGES)
    taken = {}
    for strategy in (CLASSIC, SERVER_SIDE):
        trace = run(registry, given, strategy)
        joined_ms = {
            line.event.generation: line.at_ms
            for line in trace.events
            if isinstance(line.event, ev.GroupStateChanged) and line.event.after == JOINED[trace.protocol]
        }
        taken[strategy] = {
            key: (at_ms - joined_ms[key[0]], owned) for key, (at_ms, owned) in shares(trace).items()
        }
    classic, server_side = taken[CLASSIC], taken[SERVER_SIDE]
    assert len(classic) == 2 + 3 + 2 + 1
    assert server_side == {key: (ms - 2 * latency_ms, owned) for key, (ms, owned) in classic.items()}


@pytest.mark.parametrize("down", [False, True], ids=["", "while no broker coordinates"])
def test_the_coordinator_notices_new_partitions_and_the_next_heartbeats_announce_the_round(registry, down):
    """The metadata of members are five minutes old at the most; nobody waits for that. PROTOCOL 11.2."""
    failover = [{"at": "60s", "coordinator_failover": {"down": "20s"}}] if down else []
    trace = run(registry, document(events=[*failover, {"at": "70s", "add_partitions": {"P": 8}}]))
    noticed_ms = 80_100 if down else 70_000
    (at_ms, _), (later_ms, owned) = shares(trace)[1, "c1"], shares(trace)[2, "c1"]
    assert at_ms < noticed_ms < later_ms < noticed_ms + 3_500  # heartbeat.interval.ms and the round
    assert owned == {"P": [0, 1, 2, 3]}
    (_, second) = rounds(trace, registry)
    assert second.causes[0] == "partitions of a subscribed topic changed"


def test_the_worked_example(registry):
    """Given two members, when a third joins, then there is one round, everybody stops, and no SyncGroup is
    sent. PROTOCOL 11.2."""
    trace = run(registry, load_scenario(SCENARIOS / "third-joins.yaml"))
    assert "SyncGroup" not in trace.ended.messages
    assert "JoinGroup" not in trace.ended.messages
    assert trace.ended.messages["Join"] > 0
    _, second = rounds(trace, registry)
    assert second.causes[0].startswith("c3 ")
    assert {name: change.assigned for name, change in second.members.items()} == {
        "c1": {"P": [0, 1]},
        "c2": {"P": [2, 3]},
        "c3": {"P": [4, 5]},
    }
    assert {name: change.revoked for name, change in second.members.items() if change.revoked} == {
        "c1": {"P": [0, 1, 2]},
        "c2": {"P": [3, 4, 5]},
    }
    assert (second.leader, second.generation) == ("", 2)


@pytest.mark.parametrize("name", ["scale-out", "leave", "bounce", "mixed-subscriptions"])
def test_the_owners_at_the_end_are_those_of_the_classic_protocol(registry, name):
    """Given any small scenario, then each partition ends with the owner that `range` gives it."""
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")

    def ended(strategy):
        owned = {}
        for line in run(registry, scenario, strategy).events:
            if isinstance(line.event, ev.Assigned):
                owned[line.event.client] = line.event.owned
            elif isinstance(line.event, ev.MemberStopped):
                owned.pop(line.event.client, None)
        return sorted(map(str, owned.values()))

    assert ended(SERVER_SIDE) == ended(CLASSIC)


# --- a coordinator that dies


def dying(monkeypatch, generation, *, stores):
    """Let the broker die once, when a generation reaches the replicas: after it is stored, or before."""
    appended, died = Brokers._appended, []

    def die(brokers, broker, append):
        stored = [r.value.generation for r in append.records if isinstance(r, GroupRecord)]
        if died or generation not in stored:
            appended(brokers, broker, append)
            return
        died.extend(stored)
        if stores:
            brokers.log.append(append.partition, append.records)
        brokers.fail_over(3_000)

    monkeypatch.setattr(Brokers, "_appended", die)
    return died


@pytest.mark.parametrize("stores", [True, False])
def test_an_assignment_counts_if_and_only_if_it_is_stored(registry, monkeypatch, stores):
    """Given the coordinator dies between storing and answering, then its successor answers with the stored
    assignment, in the same generation, without another round. Given it dies before, then its successor has
    the generation before, and no generation starts twice. PROTOCOL 11.2."""
    died = dying(monkeypatch, 2, stores=stores)
    trace = run(registry, load_scenario(SCENARIOS / "third-joins.yaml"))
    assert died == [2]
    (elected,) = (line.event for line in trace.events if isinstance(line.event, ev.CoordinatorElected))
    found = elected.group_state, elected.generation, len(elected.members)
    assert found == (("Stable", 2, 3) if stores else ("Stable", 1, 2))
    assert last_shares(trace) == {"c1": (2, [0, 1]), "c2": (2, [2, 3]), "c3": (2, [4, 5])}
    started = [line.event.generation for line in trace.events if isinstance(line.event, ev.GenerationStarted)]
    assert started == ([1] if stores else [1, 2])


@pytest.mark.parametrize("after_ms", [-200, -30, -1, 0, 1, 10, 19, 20, 21, 39, 40, 41, 59, 60, 61, 100])
def test_a_failover_at_any_moment_of_a_round_breaks_no_rule(registry, after_ms):
    """Given the coordinator fails shortly before, during or after the round for a third member, then one
    assignment counts in the end. PROTOCOL 11.2."""
    before = run(registry, document(events=CHANGES[:1]))
    changes = [line for line in before.events if isinstance(line.event, ev.GroupStateChanged)]
    joined_ms = [line.at_ms for line in changes if line.event.after == "Assigning"][-1]
    failing = {"at": joined_ms + after_ms, "coordinator_failover": {"down": "3s"}}
    trace = run(registry, document(events=(*CHANGES[:1], failing)))
    assert last_shares(trace) == {"c1": (2, [0, 1]), "c2": (2, [2, 3]), "c3": (2, [4, 5])}


def last_shares(trace):
    """Return the last generation of each member, with its share."""
    return {client: (generation, owned["P"]) for (generation, client), (_, owned) in shares(trace).items()}


# --- what goes together


def test_members_have_no_assignors_of_their_own(registry):
    members = [{"id": "c1", "topics": ["P"], "assignors": ["range", "sticky"]}]
    with pytest.raises(InputError, match="the assignor is the coordinator's"):
        run(registry, document(members=members))


@pytest.mark.parametrize("modifier", ["static", "delay=300s"])
def test_modifiers_of_the_classic_protocol_are_refused(registry, modifier):
    with pytest.raises(InputError, match="expected a modifier that the protocol 'server-side'"):
        run(registry, document(), f"cooperative-sticky+server-side+{modifier}")


def test_a_group_cannot_run_already(registry):
    members = [{"id": "c1", "topics": ["P"], "owned": {"P": [0]}}]
    with pytest.raises(InputError, match="a group begins with the joins of its members"):
        run(registry, document(members=members))


@pytest.mark.parametrize(
    "strategy", ["sticky+server-side", "cooperative-sticky+server-side", "optimal+server-side"]
)
def test_any_assignor_runs_in_the_coordinator(registry, strategy):
    trace = run(registry, document(events=CHANGES), strategy)
    assert trace.ended.group_state == "Stable"
    assert trace.ended.generation == 4
