"""The load that a page is given, beside what the trace says."""

from coordinator_core.protocol import events as ev
from rebalance_jupyter.load import MOST_RATES
from rebalance_jupyter.view_model import view_model
from tests.rebalance_jupyter.samples import ran
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

HOT = [10.0, 10.0, 200.0]


def members(trace):
    return {member["name"]: member for member in view_model(trace).document["members"]}


def of_two(*more):
    return trace_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        (0, ev.RatesChanged(topic="t", rates=HOT)),
        round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2]}}),
        *more,
        topics={"t": 3},
    )


def test_the_load_of_a_member_is_the_sum_of_the_rates_of_its_partitions_and_ends_with_it():
    trace = of_two(
        (4_000, ev.RatesChanged(topic="t", rates=[1.0, 2.0, 4.0])),
        round_at(5_000, 2, {"a": {"t": [0]}, "b": {"t": [1, 2]}}),
        (9_000, ev.MemberStopped(client="a", how="crashed")),
    )
    assert [member["load"] for member in members(trace).values()] == [
        [[1_000, 20.0], [4_000, 3.0], [5_000, 1.0], [9_000, 0]],
        [[1_000, 200.0], [4_000, 4.0], [5_000, 6.0]],
    ]
    trace = trace_of((0, started("a", "t")), round_at(1_000, 1, {"a": {"t": [0]}}), topics={"t": 1})
    assert (view_model(trace).document["rates"], members(trace)["a"]["load"]) == ({}, [])


def test_rates_are_sent_once_for_partitions_that_have_the_same():
    assert view_model(of_two()).document["rates"] == {"t": [[0, HOT]]}
    assert view_model(ran()).document["rates"] == {"clicks": [[0, 100.0]]}


def test_what_a_member_can_handle_is_that_of_its_last_start():
    begun = [
        ev.MemberStarted(client="a", instance_id=None, topics=["t"], process_rate=r) for r in (5.0, None)
    ]
    trace = trace_of((0, begun[0]), (3_000, begun[1]), topics={"t": 1})
    assert members(trace)["a"]["process_rate"] == [[0, 5.0], [3_000, None]]


def test_of_many_rates_those_of_the_largest_sums_are_sent():
    count = MOST_RATES // 10
    changed = [
        (at_ms, ev.RatesChanged(topic="t", rates=[float(at_ms % 7)] * (count - 1) + [1.0]))
        for at_ms in range(20)
    ]
    sent = view_model(trace_of(*changed, topics={"t": count})).document["rates"]["t"]
    assert len(sent) == 10
    assert [6, [6.0] * (count - 1) + [1.0]] in sent
