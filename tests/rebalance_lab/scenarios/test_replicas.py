"""Where replicas are: scenarios say it, leaders learn it from metadata, a metric counts it."""

from math import isnan

import pytest

from coordinator_core.errors import InputError
from coordinator_core.model import TopicInfo
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.groups import parse_group, scenario_document
from rebalance_lab.scenarios.replicas import topic_infos
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.measuring import measure

ALTERNATING = [["b"], ["a"], ["b"], ["a"]]
RUNS = pytest.mark.parametrize("run", [simulate, plan], ids=["simulate", "plan"])


def member(name, rack=None, **fields):
    return {"id": name, "topics": ["t"], **({} if rack is None else {"rack": rack}), **fields}


TWO = (member("a", "a"), member("b", "b"))


def scenario_of(*events, racks=ALTERNATING, members=TWO):
    document = {
        "name": "two",
        "duration": "12m",
        "topics": {"t": {"partitions": 4, "rate": 40, "racks": racks}},
        "members": list(members),
        "events": list(events),
    }
    if racks is None:
        del document["topics"]["t"]["racks"]
    return parse_scenario(document, where="here")


def figure(trace):
    return measure(trace, default_registry())["cross_rack_partitions"]


def owners(trace):
    owned = {}
    for line in trace.events:
        if isinstance(line.event, ev.Assigned):
            owned[line.event.client] = line.event.owned["t"]
    return owned


@RUNS
@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky", "optimal"])
def test_who_minds_racks_gives_partitions_to_members_beside_a_replica(run, strategy):
    trace = run(scenario_of(), strategy, default_registry())
    assert owners(trace) == {"a": [1, 3], "b": [0, 2]}
    assert figure(trace) == 0


@RUNS
def test_who_does_not_mind_racks_is_seen_in_the_figure(run):
    trace = run(scenario_of(), "roundrobin", default_registry())
    assert owners(trace) == {"a": [0, 2], "b": [1, 3]}
    assert figure(trace) == 4


@RUNS
def test_added_partitions_have_no_known_replicas_and_do_not_count(run):
    trace = run(
        scenario_of({"at": "1m", "add_partitions": {"t": 6}}), "cooperative-sticky", default_registry()
    )
    assert sorted(n for numbers in owners(trace).values() for n in numbers) == [0, 1, 2, 3, 4, 5]
    assert figure(trace) == 0


@RUNS
@pytest.mark.parametrize("racks", [None, [[]] * 4])
def test_partitions_of_unknown_racks_give_no_figure(run, racks):
    trace = run(scenario_of(racks=racks), "sticky", default_registry())
    assert isnan(figure(trace))
    assert b"racks" not in trace.encode().splitlines()[0]


@RUNS
def test_members_without_racks_give_no_figure(run):
    assert isnan(figure(run(scenario_of(members=[member("c", count=2)]), "range", default_registry())))


@RUNS
def test_a_member_without_a_rack_is_nowhere_else(run):
    scenario = scenario_of(racks=[["b"]] * 4, members=[member("a", "a"), member("none")])
    trace = run(scenario, "range", default_registry())
    assert figure(trace) == len(owners(trace)["a"]) == 2


def test_a_trace_keeps_racks_when_it_is_written_and_read(tmp_path):
    trace = simulate(scenario_of(), "range", default_registry())
    file = tmp_path / "trace.jsonl"
    file.write_bytes(trace.encode())
    assert read_trace(file) == trace
    assert trace.started.racks == {"t": (("b",), ("a",), ("b",), ("a",))}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_that_runs_with_racks_stays_as_it_is(strategy):
    """The leader's metadata tell nothing new, so nobody joins again."""
    running = [member("a", "a", owned={"t": [1, 3]}), member("b", "b", owned={"t": [0, 2]})]
    trace = simulate(scenario_of(members=running), strategy, default_registry())
    assert measure(trace, default_registry())["rounds"] == 0
    assert figure(trace) == 0


@pytest.mark.parametrize(
    ("racks", "said"),
    [
        ([["a"]], "topics.t.racks: found a list of 1, expected a list of 4, one per partition"),
        ("a", "topics.t.racks: found 'a', expected a list of lists of racks"),
        ([["a"], ["a"], ["a"], [7]], "topics.t.racks[3][0]: found 7, expected a rack"),
        ([["a"], ["a"], ["a"], "a"], "topics.t.racks[3]: found 'a', expected a list of racks"),
    ],
)
def test_racks_that_are_none_are_refused(racks, said):
    with pytest.raises(InputError, match="racks") as refused:
        scenario_of(racks=racks)
    assert said in str(refused.value)


def test_topics_are_as_their_metadata_tell():
    assert topic_infos({"t": 3, "u": 1}, {"t": (("a",), ("b",))}) == {
        "t": TopicInfo(3, (("a",), ("b",), ())),
        "u": TopicInfo(1),
    }


def test_a_group_document_keeps_its_racks_as_a_scenario():
    group = {
        "name": "x",
        "topics": {"t": {"partitions": 2, "racks": [["a", "b"], None]}, "u": {"partitions": 1}},
        "members": [{"id": "m", "topics": ["t", "u"], "rack": "a"}],
    }
    document = scenario_document(parse_group(group, "here"), "x")
    assert document["topics"]["t"]["racks"] == [["a", "b"], []]
    assert "racks" not in document["topics"]["u"]
    assert parse_scenario(document, where="here").racks == {"t": (("a", "b"), ())}
