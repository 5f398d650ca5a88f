"""``batch`` says how long a batch takes, and the process_rate follows from it."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate


def scenario_of(settings=None, **fields):
    member = {"topics": ["t"], **fields}
    document = {
        "name": "s",
        "duration": "2m",
        "topics": {"t": {"partitions": 3, "backlog": 100_000}},
        "members": [{"id": "c", **member}],
        "events": [{"at": "30s", "join": [{"id": "late", **member}]}],
        "config": settings or {},
    }
    return parse_scenario(document, where="s.yaml")


def members_of(scenario):
    return [*scenario.members, *scenario.events[0].arguments.members]


@pytest.mark.parametrize(
    ("config", "fields", "rate"),
    [
        ({}, {}, 250),
        ({"max.poll.records": 100}, {}, 50),
        ({"max.poll.records": 100}, {"config": {"max.poll.records": 10}}, 5),
    ],
)
def test_a_batch_of_max_poll_records_takes_its_time(config, fields, rate):
    for member in members_of(scenario_of(config, batch="2s", **fields)):
        assert member.process_rate == rate
        assert member.application.batch_overhead == (0, 0)


def test_a_batch_between_two_times_has_their_deviation():
    for member in members_of(scenario_of({"max.poll.records": 100}, batch=["1s", "3s"])):
        assert member.process_rate == 50
        # a uniform time from 1 s to 3 s deviates by 0.577 s, that of 100 records by 10 times a record's 20 ms
        assert member.application.record_cv * 20 * 10 == pytest.approx(577, abs=1)


def test_batches_take_that_time_in_a_run():
    trace = simulate(scenario_of(batch="2s", record_cv=0), "range", default_registry())
    started = [line.event for line in trace.events if isinstance(line.event, ev.ApplicationStarted)]
    assert [(event.batch_ms, event.records_per_second) for event in started] == [(2_000, 250)] * 2


def test_what_is_given_besides_stays():
    (member, _) = members_of(scenario_of(batch="2s", batch_overhead="100ms", record_cv=0.5))
    assert (member.application.batch_overhead, member.application.record_cv) == ((100, 100), 0.5)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"batch": "2s", "process_rate": 3}, "members[0]: found batch and process_rate, expected one of the"),
        ({"batch": ["1s", "3s"], "record_cv": 1}, "members[0]: found batch and record_cv, expected one of"),
        ({"batch": "0s"}, "members[0].batch: found 0ms, expected more than 0ms"),
        ({"batch": "fast"}, "members[0].batch: found 'fast', expected a duration"),
        ({"batch": ["3s", "1s"]}, "members[0].batch: found [3s, 1s], expected the shortest duration first"),
    ],
)
def test_a_wrong_time_of_a_batch_is_named(fields, found):
    with pytest.raises(InputError) as raised:
        scenario_of(**fields)
    assert found in str(raised.value)
