"""The clients of scenarios have their facts, and what follows from them in a run."""

from types import SimpleNamespace

import pytest

from coordinator_core.protocol import messages as m
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios import application
from rebalance_lab.scenarios.scenario import Network as Conditions
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.process.clients import CLIENTS
from rebalance_lab.simulation.process.connections import Connections, next_read_ms
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.network import Network


def exchanges_of(events, *, client, strategy="range", **document):
    """Two members with batches of five seconds, and what happens to them; all their requests."""
    exchanges = []
    fields = {"topics": ["t"], "process_rate": 10, "record_cv": 0, "batch_overhead": 0, "client": client}
    scenario = {
        "name": "s",
        "duration": "1m",
        "topics": {"t": {"partitions": 4, "backlog": 100_000}},
        "members": [{"id": "m", "count": 2, "start_up": "0s", **fields}],
        "events": events,
        "config": {"max.poll.records": 50, "heartbeat.interval.ms": "1s"},
        **document,
    }
    parsed = parse_scenario(scenario, where="s")
    simulate(parsed, strategy, default_registry(), exchanged=exchanges.append, every_message=True)
    return exchanges


def of(exchanges, client, request):
    return [e for e in exchanges if e.client == client and isinstance(e.request, request)]


def test_every_client_of_a_scenario_has_its_facts():
    assert tuple(CLIENTS) == application.CLIENTS


# --- responses to heartbeats


@pytest.mark.parametrize(
    ("arrived_ms", "read_ms"), [(1_001, 1_100), (1_100, 1_100), (1_101, 1_200), (1_000, 1_100)]
)
def test_a_response_is_read_at_the_end_of_the_wait_in_which_it_arrives(arrived_ms, read_ms):
    assert next_read_ms(1_000, arrived_ms, 100) == read_ms


def waits_until_they_join(client):
    """For some times of a join: how long after its refused heartbeat a member with short batches joins."""
    for at_ms in range(20_000, 23_000, 170):
        joins = {"at": at_ms, "join": {"id": "late", "topics": ["t"], "start_up": "0s"}}
        config = {"max.poll.records": 3, "heartbeat.interval.ms": "1s", "enable.auto.commit": False}
        exchanges = exchanges_of([joins], client=client, config=config)
        refused = [e for e in of(exchanges, "m-0", m.HeartbeatRequest) if e.response and e.response.error]
        join = of(exchanges, "m-0", m.JoinGroupRequest)[-1]
        yield join.sent_ms - refused[0].sent_ms


def test_a_java_member_reads_in_a_batch_that_a_round_began_when_its_thread_has_waited():
    assert min(waits_until_they_join("java")) >= 100
    assert min(waits_until_they_join("kafka-python")) < 100


# --- connections


def test_a_connection_that_is_forgotten_is_closed_and_the_next_one_is_another():
    clock = VirtualClock()
    network = Network(clock, Conditions(latency_ms_min=1, latency_ms_max=5), "seed 1")
    brokers = SimpleNamespace(has_servers=False)
    connections = Connections(network, brokers, "c", "process 1", rank=0)
    of_group, other = connections.to(0, True), connections.to(0, False)
    elsewhere = connections.to(1, True)
    assert connections.to(0, True) is of_group
    connections.forget(0)
    assert [each.is_open for each in (of_group, other, elsewhere)] == [False, False, True]
    assert connections.to(0, True) is not of_group
    connections.close()
    assert not elsewhere.is_open


# --- requests behind a parked one


def leave_behind_a_join(client):
    """A member leaves while its JoinGroup waits for one that is frozen."""
    events = [
        {"at": "19s", "freeze": "m-0", "for": "5s"},
        {"at": "20s", "join": {"id": "late", "topics": ["t"], "start_up": "0s", "client": client}},
        {"at": "20100ms", "leave": "late"},
    ]
    exchanges = exchanges_of(events, client=client)
    (leave,) = of(exchanges, "late", m.LeaveGroupRequest)
    assert leave.sent_ms < 21_000
    return leave.answered_ms


def test_a_leave_group_waits_behind_the_join_group_of_its_connection():
    assert leave_behind_a_join("java") > 24_000


def test_franz_go_has_a_connection_for_the_requests_that_wait_for_a_round():
    assert leave_behind_a_join("franz-go") < 21_000
