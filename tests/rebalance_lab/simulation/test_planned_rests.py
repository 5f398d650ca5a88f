"""Plans without traces: the same metrics as those of the traces, in whatever happens."""

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.counting import Results, _order_of, counting, keeps_topics
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.planning.planned_rests import planned_ledgers
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import measure
from tests.examples import scaled

REGISTRY = default_registry()
RESULTS = Results()
COUNTING = [
    *("range", "roundrobin", "sticky", "cooperative-sticky"),
    *("range+static", "sticky+static", "cooperative-sticky+static"),
]
PATIENCE = ("session.timeout.ms", "max.poll.interval.ms", "metadata.max.age.ms")
RACKS = ("r1", "r2")


def with_traces(scenario, strategies=COUNTING):
    return [History(plan(scenario, name, REGISTRY)).ledger for name in strategies]


def without_traces(scenario, strategies=COUNTING):
    records = [counting(REGISTRY.strategy(name), REGISTRY) for name in strategies]
    return planned_ledgers(scenario, records, REGISTRY, RESULTS)


def figures(ledger):
    return measure(ledger, REGISTRY, planned=True)


def spans(ledger):
    """The owners of each partition in order, with their times."""
    partitions = ledger.index.partitions(np.arange(ledger.index.size, dtype=np.int32))
    return {tp: owners for tp in partitions if (owners := ledger.of(tp))}


def same(some, others):
    """Whether all owners and figures are equal; no figure equals no figure."""
    for one, other in zip(some, others, strict=True):
        assert spans(one) == spans(other)
        assert figures(one) == pytest.approx(figures(other), rel=0, abs=0, nan_ok=True)
    return True


def scenario_of(members, events=(), **changes):
    document = {
        "name": "group",
        "duration": "10m",
        "topics": {"t": {"partitions": 5, "rate": 100}, "u": {"partitions": 3, "rates": [9, 1, 0]}},
        "members": members,
        "events": list(events),
        "config": dict(zip(PATIENCE, (10_000, 30_000, 20_000), strict=True)),
    }
    return parse_scenario(document | changes, where="group", registry=REGISTRY)


@st.composite
def scenarios(draw):
    """Members with topics, patterns, racks and instance ids, to which anything happens at any time."""
    members = [draw(described(f"m{i}")) for i in range(draw(st.integers(1, 4)))]
    changes = {}
    if draw(st.booleans()):
        some = st.lists(st.lists(st.sampled_from(RACKS), min_size=1), min_size=5, max_size=5)
        changes["topics"] = {"t": {"partitions": 5, "rate": 7, "racks": draw(some)}, "u": {"partitions": 3}}
    if draw(st.booleans()):
        changes["measure"] = {"from": f"{draw(st.integers(0, 200))}s"}
    if draw(st.integers(0, 3)) == 0:
        _own(draw, members)
    names, events, partitions = [member["id"] for member in members], [], 5
    for at in sorted(draw(st.lists(st.integers(0, 240), max_size=7))):
        name, kind = draw(st.sampled_from(names)), draw(st.sampled_from(KINDS))
        if kind == "join":
            names.append(f"n{len(events)}")
            event = {"join": draw(described(names[-1]))}
        elif kind == "add_partitions":
            partitions += draw(st.integers(1, 3))
            event = {"add_partitions": {"t": partitions}}
        elif kind == "rolling_restart":
            surge = draw(st.integers(0, 1))
            event = {kind: {"every": "15s", "down": "2s", "surge": surge, "kill": draw(st.booleans())}}
        elif kind == "coordinator_failover":
            event = {kind: {"down": "3s"}}
        else:
            event = {kind: name} | draw(EXTRAS.get(kind, st.just({})))
        events.append({"at": f"{at}s", **event})
    try:
        return scenario_of(members, events, **changes)
    except InputError:  # a member that is not there
        reject()


LISTS = st.sampled_from([["t"], ["u"], ["t", "u"]])
KINDS = (
    *("join", "leave", "crash", "restart", "pause", "freeze", "cut", "remove_member"),
    *("subscribe", "add_partitions", "rolling_restart", "coordinator_failover"),
)
FOR_A_WHILE = st.sampled_from(["4s", "15s", "70s"]).map(lambda text: {"for": text})
EXTRAS = dict.fromkeys(("pause", "freeze", "cut"), FOR_A_WHILE) | {
    "subscribe": LISTS.map(lambda topics: {"topics": topics})
}


@st.composite
def described(draw, name):
    member = {"id": name, "rack": draw(st.sampled_from([None, *RACKS]))}
    if member["rack"] is None:
        del member["rack"]
    if draw(st.booleans()):
        member["instance_id"] = f"i-{name}"
    if draw(st.integers(0, 2)):
        member |= {"process_rate": draw(st.sampled_from([90, 300])), "batch_overhead": "50ms"}
    if draw(st.integers(0, 4)) == 0:
        return member | {"topics_pattern": "t|v.*"}
    return member | {"topics": draw(LISTS)}


def _own(draw, members):
    """Let the members be a group that runs, with any owners."""
    for member in members:
        member |= {"owned": {}, "generation": 5}
    for topic, count in (("t", 5), ("u", 3)):
        for number in range(count):
            owner = draw(st.sampled_from([None, *(m for m in members if topic in m.get("topics", ()))]))
            if owner is not None:
                owner["owned"].setdefault(topic, []).append(number)


@settings(max_examples=scaled(60), derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)
@given(scenario=scenarios())
def test_the_metrics_of_a_plan_without_a_trace_are_those_of_its_trace(scenario):
    assert same(without_traces(scenario), with_traces(scenario))


def test_a_member_that_joins_as_a_round_ends_shares_the_round_that_follows():
    topics = {"topics": ["t"]}
    events = [
        {"at": "60s", "pause": "b", "for": "20s"},
        {"at": "62s", "join": {"id": "c", **topics}},
        {"at": "62s", "join": {"id": "d", **topics}},
        {"at": "68s", "restart": "b"},  # the round for which it was missing ends, and partitions are given up
    ]
    scenario = scenario_of([{"id": "a", **topics}, {"id": "b", **topics}], events)
    assert same(without_traces(scenario), with_traces(scenario))


def test_plans_leave_nothing_to_the_cyclic_collector():
    scenario = scenario_of([{"id": "a", "topics": ["t"]}], [{"at": "9m", "crash": "a"}])
    gc.collect()
    gc.disable()
    try:
        without_traces(scenario)
        assert not gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "name",
    [
        "optimal",
        "average",
        "range+cooperative",
        "cooperative-sticky+delay=1m",
        "range+reconcile",
        "range+watcher",
    ],
)
def test_a_strategy_that_reads_more_than_counts_needs_a_trace(name):
    assert counting(REGISTRY.strategy(name), REGISTRY) is None


@pytest.mark.parametrize("event", [{"delete_topic": "t"}, {"create_topic": {"v": {"partitions": 1}}}])
def test_a_scenario_with_other_topics_later_needs_traces(event):
    assert not keeps_topics(scenario_of([{"id": "a", "topics": ["u"]}], [{"at": "1m", **event}]))
    assert keeps_topics(scenario_of([{"id": "a", "topics": ["u"]}]))


BOTH = [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}]


def test_the_first_owners_of_partitions_that_are_added_have_not_moved_them():
    scenario = scenario_of(BOTH, [{"at": "60s", "add_partitions": {"t": 9}}])
    assert same(without_traces(scenario), with_traces(scenario))


def test_a_group_does_not_rest_while_one_of_its_members_is_gone():
    scenario = scenario_of(BOTH, [{"at": "60s", "crash": "b"}, {"at": "5m", "restart": "b"}])
    assert same(without_traces(scenario), with_traces(scenario))


@pytest.mark.parametrize("names", [("ba", "c", "y", "z"), ("bb", "bc", "y", "z"), ("k", "p", "q", "x")])
def test_groups_share_results_only_if_the_hashes_of_their_names_are_in_the_same_order(names):
    """Of two members with two partitions, Kafka's sticky assignors let the first in hash order keep both."""
    owned = ({"t": [0, 1]}, {"t": [2, 3]}, {"t": [4]}, {})
    members = [
        {"id": name, "topics": ["t"], "owned": has, "generation": 5}
        for name, has in zip(names, owned, strict=True)
    ]
    scenario = scenario_of(members, [{"at": "60s", "restart": names[3]}])
    assert same(without_traces(scenario), with_traces(scenario))


def test_claims_are_equal_if_their_generations_are_in_the_same_order():
    one, other = np.array([0, -1]), np.array([-1, 0])
    assert _order_of({5: one, 4: other}) == _order_of({9: one, 8: other})
    assert _order_of({5: one, 4: other}) != _order_of({4: one, 5: other})
