"""Groups that go from one of Kafka's protocols to the other while they run (PROTOCOL 11.9)."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from rebalance_lab import default_registry, simulate
from rebalance_lab.fuzzing.checks import examine
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import Run
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import check_trace
from rebalance_lab.traces.trace import read_trace

STAYS = {"every": "10s", "down": "2s"}


def scenario_of(restart, *, duration="2m", more=(), **fields):
    document = {
        "name": "m",
        "duration": duration,
        "topics": {"orders": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c", "count": 3, "topics": ["orders"], "start_up": "0s"}],
        "events": [{"at": "20s", "rolling_restart": restart}, *more],
        **fields,
    }
    return parse_scenario(document, where="m", registry=default_registry())


def run(strategy, protocol, **given):
    return simulate(scenario_of({**STAYS, "protocol": protocol}, **given), strategy, default_registry())


def states(trace):
    return [line.event.after for line in trace.events if isinstance(line.event, ev.GroupStateChanged)]


def causes(trace):
    return [line.event.cause for line in trace.events if isinstance(line.event, ev.GroupStateChanged)]


def protocols(trace):
    started = [line.event for line in trace.events if isinstance(line.event, ev.GenerationStarted)]
    return list(dict.fromkeys(event.protocol for event in started))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "sticky"])
def test_a_classic_group_ends_as_one_of_the_consumer_protocol(strategy):
    trace = run(strategy, "consumer")
    assert trace.protocol == "migration"
    assert causes(trace).count("Upgrade group m from classic to consumer") == 1
    assert protocols(trace)[-1] == "uniform-848"
    assert check_trace(trace) == []
    assert not History(trace).now.idle


@pytest.mark.parametrize("assignor", ["uniform-848", "cooperative-sticky"])
def test_a_group_of_the_consumer_protocol_ends_as_a_classic_one(assignor):
    trace = run(f"{assignor}+reconcile", "classic")
    assert causes(trace).count("Downgrade group m from consumer to classic") >= 1
    assert "PreparingRebalance" in states(trace)
    assert "Assigning" not in states(trace)[-3:]
    assert check_trace(trace) == []
    assert not History(trace).now.idle


def test_static_members_go_over_without_a_round():
    trace = run("sticky+static", "consumer")
    assert causes(trace)[-1] == "Upgrade group m from classic to consumer"
    assert protocols(trace) == ["sticky"]
    assert check_trace(trace) == []


def test_a_group_goes_there_and_back():
    back = {"at": "70s", "rolling_restart": {**STAYS, "protocol": "classic"}}
    trace = run("range", "consumer", duration="3m", more=[back])
    ways = [cause.split()[0] for cause in causes(trace) if cause.split()[0] in ("Upgrade", "Downgrade")]
    assert list(dict.fromkeys(ways)) == ["Upgrade", "Downgrade"]
    assert check_trace(trace) == []


def test_a_policy_that_forbids_it_keeps_new_members_out():
    trace = run("range", "consumer", config={"group.consumer.migration.policy": "downgrade"})
    seen = states(trace)
    assert "Empty" in seen[: seen.index("Assigning")]


def test_a_restart_with_the_protocol_that_members_have_changes_nothing():
    trace = run("range", "classic")
    assert "Assigning" not in states(trace)
    plain = simulate(scenario_of(STAYS), "range", default_registry())
    assert states(trace) == states(plain)


def test_its_trace_can_be_written_and_read(tmp_path):
    trace = run("range", "consumer")
    (tmp_path / "t.jsonl").write_bytes(trace.encode())
    again = read_trace(tmp_path / "t.jsonl")
    assert again == trace
    assert History(again).family.name == "migration"


def test_a_run_is_sound_by_every_check_of_fuzz():
    scenario = scenario_of({**STAYS, "protocol": "consumer"}, network={"loss": 0.02})
    strategy = default_registry().strategy("cooperative-sticky")
    assert examine(scenario, strategy, default_registry()).defect is None


@pytest.mark.parametrize("strategy", ["range+watcher", "range+peers", "range+server-side"])
def test_other_protocols_have_no_such_way(strategy):
    with pytest.raises(InputError, match="expected a strategy of classic or reconcile"):
        run(strategy, "consumer")


def test_a_delay_has_no_meaning_on_the_way():
    with pytest.raises(InputError, match="a delay under the protocol 'migration'"):
        run("cooperative-sticky+delay=60s", "consumer")


def test_there_is_no_plan_without_messages():
    with pytest.raises(InputError, match="expected a simulation with messages"):
        plan(
            scenario_of({**STAYS, "protocol": "consumer"}),
            default_registry().strategy("range"),
            default_registry(),
        )


def test_members_of_the_consumer_protocol_have_no_assignors_of_their_own():
    with pytest.raises(InputError, match=r"events\[0\].rolling_restart: found assignors"):
        scenario_of({**STAYS, "protocol": "consumer", "assignors": ["range"]})


def test_no_strategy_names_the_way():
    with pytest.raises(InputError):
        default_registry().strategy("range+migration")
    assert "migration" not in default_registry().protocols()


@pytest.mark.parametrize("protocol", ["", "kip-848"])
def test_a_wrong_protocol_is_an_error_with_its_place(protocol):
    with pytest.raises(InputError, match=r"events\[0\].rolling_restart.protocol"):
        scenario_of({**STAYS, "protocol": protocol})


def test_only_members_of_the_classic_protocol_wait_in_rounds():
    run = Run(scenario_of({**STAYS, "protocol": "consumer"}), "range", default_registry())
    run.advance(19_000)
    assert all(process._late._every_ms for process in run.consumers.values())
    run.advance(60_000)
    assert not any(process._late._every_ms for process in run.consumers.values())
