"""Weights that travel in the protocol: members report what they measured, the leader assigns by it."""

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import measure
from tests.examples import rest_slow
from tests.places import SCENARIOS
from tests.rebalance_lab.simulation import runs
from tests.rebalance_lab.simulation.runs import settled as run
from tests.rebalance_lab.verdicts.compared import least_largest_load

SKEWED = [100, 10, 10, 10]
NOTHING_YET = "nothing known yet"


def scenario_of(rates, *events, members="ab", process_rates=(), duration="3m"):
    """Members of one topic; `process_rates` of the first of them."""
    listed = [{"id": name, "topics": ["t"]} for name in members]
    for member, rate in zip(listed, process_rates, strict=False):
        member["process_rate"] = rate
    topics, config = {"t": {"partitions": len(rates), "rates": rates}}, {"session.timeout.ms": "10s"}
    return runs.scenario_of(*events, members=listed, topics=topics, config=config, duration=duration)


def joins(name, at="90s"):
    return {"at": at, "join": {"id": name, "topics": ["t"]}}


def computed(trace):
    """What the leader said of each assignment, in order."""
    return [line.event for line in trace.events if isinstance(line.event, ev.AssignmentComputed)]


def sources(trace):
    return [event.report["weights"] for event in computed(trace)]


def loads(trace, rates):
    """By records/s, the partitions of each member in each settled assignment, the heaviest first."""
    found = []
    for settled in History(trace).settled:
        owned = {member: [] for member in settled.members}
        for tp, member in settled.owners.items():
            owned[member].append(rates[tp.partition])
        found.append(sorted((sorted(each, reverse=True) for each in owned.values()), reverse=True))
    return found


# --- from counting to weighing


@pytest.mark.parametrize(
    ("strategy", "source"), [("optimal", "reported-rates"), ("lag-aware", "reported-work")]
)
def test_a_group_counts_at_first_and_weighs_once_members_have_measured(strategy, source):
    """The first join knows nothing; in the second everybody has had its partitions for a minute."""
    trace = run(scenario_of(SKEWED, joins("c")), strategy)
    assert sources(trace) == [NOTHING_YET, source]
    assert loads(trace, SKEWED) == [[[100, 10], [10, 10]], [[100], [10, 10], [10]]]


def test_what_the_host_knows_counts_from_the_first_round_on():
    trace = run(scenario_of(SKEWED, joins("c")), "optimal+weights=scenario-rates")
    assert sources(trace) == ["scenario-rates", "scenario-rates"]
    assert loads(trace, SKEWED) == [[[100], [10, 10, 10]], [[100], [10, 10], [10]]]


def test_without_weights_it_counts_and_goes_on_counting():
    trace = run(scenario_of(SKEWED, joins("c")), "optimal+weights=none")
    assert all("weights" not in event.report for event in computed(trace))
    assert [sorted(map(len, each)) for each in loads(trace, SKEWED)] == [[2, 2], [1, 1, 2]]


def test_the_report_of_an_assignment_says_how_good_it_is():
    first, second = computed(run(scenario_of(SKEWED, joins("c")), "optimal"))
    assert (first.report["largest_load"], first.report["optimality_gap"]) == (2.0, 0.0)
    assert second.report["largest_load"] == pytest.approx(100, rel=0.01)
    assert second.report["optimality_gap"] == 0.0


@pytest.mark.parametrize("strategy", ["optimal+cooperative", "lag-aware+cooperative"])
def test_a_cooperative_group_weighs_too(strategy):
    trace = run(scenario_of(SKEWED, joins("c")), strategy)
    assert sources(trace)[0] == NOTHING_YET
    assert loads(trace, SKEWED)[-1] == [[100], [10, 10], [10]]


def test_an_assignor_that_sends_bytes_of_its_own_keeps_them():
    """Sticky's memory travels behind the report: the fewest partitions move, as without."""
    rates = [1] * 6
    scenario = scenario_of(rates, joins("c"))
    for strategy in ("sticky+weights=reported-rates", "sticky"):
        before, after = History(run(scenario, strategy)).settled
        assert sum(after.owners[tp] != member for tp, member in before.owners.items()) == 2


def test_lags_are_weights_where_lags_are_asked_for():
    """Two partitions of one rate; the slow member falls behind on its own, and the next round knows it."""
    scenario = scenario_of([50, 50, 1], joins("c", "60s"), process_rates=(10, 10))
    trace = run(scenario, "lag-aware+weights=reported-lags")
    assert sources(trace) == [NOTHING_YET, "reported-lags"]
    assert loads(trace, [50, 50, 1])[-1] == [[50], [50], [1]]


# --- capacities


def test_what_a_process_can_handle_is_its_capacity():
    """Six equal partitions on members of 40 and 20 records/s; known from the first join on."""
    trace = run(scenario_of([10] * 6, process_rates=(40, 20)), "optimal")
    (settled,) = History(trace).settled
    owned = list(settled.owners.values())
    assert (owned.count("a"), owned.count("b")) == (4, 2)


def test_capacities_count_only_when_everybody_has_one():
    trace = run(scenario_of([10] * 6, process_rates=(40,)), "optimal")
    assert loads(trace, [10] * 6) == [[[10, 10, 10], [10, 10, 10]]]


# --- memory


RATES = [70, 50, 30, 20, 10, 10, 5, 5]


def test_a_leader_remembers_the_rates_of_a_member_that_crashed():
    """Given a round in which all reported, then one crashes without a word: the survivors cannot report its
    partitions, and the leader still assigns them by their rates."""
    calm = scenario_of(RATES, joins("d", "60s"), members="abc", duration="4m")
    leaders = [event.client for event in computed(run(calm, "optimal"))]
    assert len(set(leaders)) == 1
    victim = next(name for name in "abc" if name not in leaders)
    crash = {"at": "2m", "crash": victim}
    trace = run(scenario_of(RATES, joins("d", "60s"), crash, members="abc", duration="4m"), "optimal")
    last = History(trace).last_settled
    weights = {tp: RATES[tp.partition] for tp in last.owners}
    assert set(last.members) == set("abcd") - {victim}
    largest = max(map(sum, loads(trace, RATES)[-1]))
    assert largest == least_largest_load(weights, last.members) == 70
    assert computed(trace)[-1].report["largest_load"] == pytest.approx(70, rel=0.01)


# --- nothing is left to chance


@pytest.mark.parametrize("strategy", rest_slow(["lag-aware+cooperative", "lag-aware", "optimal"]))
def test_equal_runs_give_equal_traces_byte_for_byte(strategy):
    """C-84: reports and the solver included."""
    scenario = load_scenario(SCENARIOS / "mixed-subscriptions.yaml")
    first, second = (run(scenario, strategy) for _ in range(2))
    assert first.encode() == second.encode()


# --- what it is good for


def ten_minutes_of_skewed_load():
    """Three of ten partitions are heavy; an assignor that counts gives two of them to one member."""
    events = [joins("e", "60s"), {"at": "3m", "crash": "b"}, {"at": "5m", "restart": "b"}]
    events[0]["join"]["process_rate"] = 70
    rates = [60, 50, 2, 2, 2, 50, 2, 2, 2, 2]
    return scenario_of(rates, *events, members="abcd", process_rates=[70] * 4, duration="10m")


def test_weighing_beats_counting():
    """Less of the load on one member, and less lag, than under all four that count partitions. The tables of
    the assignors' README show the same for a day of real traffic."""
    weighing = ["optimal", "lag-aware"]
    counting = ["range", "roundrobin", "sticky", "cooperative-sticky"]
    runs = {name: run(ten_minutes_of_skewed_load(), name) for name in (*weighing, *counting)}
    figures = {name: measure(trace, default_registry()) for name, trace in runs.items()}
    for name in ("weighted_imbalance", "max_lag", "weighted_optimality_gap"):
        worst = max(figures[strategy][name] for strategy in weighing)
        assert worst < min(figures[strategy][name] for strategy in counting)


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["scenario-lags", "reported-rates"])
def test_a_cooperative_group_comes_to_rest_though_its_loads_never_do(provider):
    scenario = load_scenario(SCENARIOS / "mixed-subscriptions.yaml")
    trace = simulate(scenario, f"optimal+cooperative+weights={provider}", default_registry())
    rounds = [line for line in trace.events if isinstance(line.event, ev.GenerationStarted)]
    assert trace.ended.group_state == "Stable"
    assert (
        len(rounds) <= 3 * 7
    )  # a change, its follow-up, and one more for loads that changed between the two
