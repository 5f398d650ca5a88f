"""What helps against a cause, and what it would cost: as far as the logs show it."""

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_logs.causes import diagnose
from rebalance_logs.facts import Fact, Kind, Source
from rebalance_logs.findings import Cause, Trigger
from rebalance_logs.groups import GroupLog, Member
from rebalance_logs.remedies import Case, remedies_of
from rebalance_logs.report import not_shown, sentences
from tests.rebalance_logs.kafka_lines import logs_of
from tests.rebalance_logs.test_causes import DOCUMENT, found
from tests.rebalance_logs.test_round_trip import diagnosis

LONG = DOCUMENT | {"duration": "12m"}


def only(diagnosis, cause):
    (each,) = [each for each in diagnosis.causes if each.cause is cause]
    return each


def settings(cause):
    return [remedy.setting for remedy in cause.remedies]


@pytest.mark.parametrize(("down", "helps"), [("1s", True), ("20s", False)])
def test_static_members_help_if_they_are_away_for_less_than_restarts_cost(down, helps, tmp_path):
    rolling = {"at": "60s", "rolling_restart": {"every": "60s", "down": down}}
    cause = only(found(tmp_path, rolling, duration="6m"), Cause.ROLLING_RESTART)
    assert ("group.instance.id" in settings(cause)) == helps
    assert (
        cause.in_vain.startswith("Static members would not help: partitions would stand still for") != helps
    )


@pytest.mark.parametrize(
    ("away", "expected"),
    [
        ("5s", ["group.instance.id"]),
        ("60s", ["group.instance.id", "session.timeout.ms"]),
        ("400s", []),
    ],
)
def test_a_session_is_made_longer_for_who_comes_back_unless_that_takes_too_long(away, expected, tmp_path):
    back = int(away[:-1]) + 60
    events = [{"at": "60s", "crash": "b"}, {"at": f"{back}s", "restart": "b"}]
    many = {"t": {"partitions": 60, "rate": 600}}
    cause = only(found(tmp_path, *events, duration="12m", topics=many), Cause.SESSION_EXPIRED)
    kept = [name for name in settings(cause) if name != "partition.assignment.strategy"]
    assert kept == expected or "Static members would not help" in cause.in_vain
    if not expected:
        assert cause.in_vain.startswith("No setting helps against an absence of 4")


def test_no_setting_helps_who_was_away_for_long_also_if_it_is_not_known_what_that_cost(tmp_path):
    events = [{"at": "60s", "crash": "b"}, {"at": "460s", "restart": "b"}]
    scenario = parse_scenario(
        DOCUMENT | {"events": events, "duration": "12m"}, where="test", registry=default_registry()
    )
    run = logs_of(scenario, "range")
    for name in [name for name in run.lines if name != "broker"]:
        del run.lines[name]
    cause = only(diagnosis(run.write(tmp_path)), Cause.SESSION_EXPIRED)
    assert cause.stopped_ms is None
    assert not settings(cause)
    assert cause.in_vain.startswith("No setting helps against an absence of 4")


def case(cause, *, session_ms=None, library="java", paused_ms=None, consumer=False):
    """A cause of the member ``c``, which has a setting, a library, and may have stood still."""
    at_ms = 1_000_000
    awake = [Fact(at_ms + (paused_ms or 0), Kind.UNKNOWN_MEMBER, Source(0, 1), library=library)]
    settings = {} if session_ms is None else {"session.timeout.ms": str(session_ms)}
    member = Member("c", library, facts=awake if paused_ms is not None else [], settings=settings)
    group = GroupLog(
        "g", [Fact(0, Kind.JOINED, Source(0, 1))], {"c": member}, {}, is_consumer_protocol=consumer
    )
    return Case(group, cause, [member], [Trigger(cause, at_ms, ["c"])])


@pytest.mark.parametrize(
    ("session_ms", "consumer", "expected"),
    [
        (None, False, "10000"),
        (14_000, False, "7000"),
        (9_000, False, "6000"),
        (6_000, False, None),
        (3_000, False, None),
        (None, True, None),
        (45_000, True, None),
        (60_000, True, "45000"),
    ],
)
def test_a_shorter_session_is_one_that_brokers_accept(session_ms, consumer, expected):
    """group.min.session.timeout.ms is 6 s, group.consumer.min.session.timeout.ms 45 s."""
    found = remedies_of(case(Cause.SESSION_EXPIRED, session_ms=session_ms, consumer=consumer))
    assert [remedy.value for remedy in found] == [expected] * (expected is not None)


@pytest.mark.parametrize(
    ("paused_ms", "consumer", "expected"),
    [(15_000, False, "90000"), (15_000, True, "60000"), (599_000, False, "966000")],
)
def test_a_longer_session_is_one_that_brokers_accept(paused_ms, consumer, expected):
    """group.consumer.max.session.timeout.ms is 60 s."""
    found = remedies_of(case(Cause.STOOD_STILL, session_ms=45_000, paused_ms=paused_ms, consumer=consumer))
    assert [remedy.value for remedy in found] == [expected]
    many = remedies_of(case(Cause.MANY_FAILED, session_ms=60_000, consumer=consumer))
    assert [remedy.value for remedy in many] == ([] if consumer else ["120000"])


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("java", ["max.poll.interval.ms", "max.poll.records"]),
        ("kafka-python", ["max_poll_interval_ms", "max_poll_records"]),
        ("librdkafka", ["max.poll.interval.ms"]),
        ("kafkajs", ["rebalanceTimeout"]),
        ("franz-go", ["kgo.RebalanceTimeout", "PollRecords"]),
    ],
)
def test_settings_have_the_names_of_the_library_and_are_those_that_it_has(library, expected):
    found = remedies_of(case(Cause.POLL_INTERVAL, library=library))
    assert [(remedy.setting, remedy.of) for remedy in found] == [(name, library) for name in expected]


def without_settings(tmp_path, *events, **changes):
    scenario = parse_scenario(
        DOCUMENT | {"events": list(events)} | changes, where="test", registry=default_registry()
    )
    run = logs_of(scenario, "range")
    for name, lines in run.lines.items():
        run.lines[name] = [each for each in lines if "ConsumerConfig values" not in each[1]]
    return diagnosis(run.write(tmp_path))


def test_a_session_that_was_shorter_than_the_default_is_told(tmp_path):
    still = without_settings(
        tmp_path, {"at": "20s", "leave": "c"}, {"at": "40s", "freeze": "b", "for": "15s"}
    )
    cause = only(still, Cause.STOOD_STILL)
    (longer,) = [r for r in cause.remedies if r.setting == "session.timeout.ms"]
    assert int(longer.value) < 45_000
    assert any("b's session, of 6 s and at most " in text for text in not_shown(still))


def test_of_several_members_it_is_said_who_came_back(tmp_path):
    events = [{"at": "60s", "crash": "b"}, {"at": "100s", "crash": "c"}, {"at": "120s", "restart": "b"}]
    told = " ".join(sentences(found(tmp_path, *events, duration="4m"), ["x"] * 9))
    assert "b and c ended without leaving, or their heartbeats did not arrive: their sessions expired" in told
    assert "expired; b came back (generations" in told


def test_without_stopped_time_the_length_of_rounds_is_told(tmp_path):
    path = tmp_path / "server.log"
    where = "(__consumer_offsets-1)"
    path.write_text(
        "[2026-11-23 21:00:00,000] INFO [GroupCoordinator 1]: Preparing to rebalance group g in"
        f" state PreparingRebalance with old generation 1 {where} (reason: Adding new member c-1-x with group"
        " instance id None)\n[2026-11-23 21:00:03,000] INFO [GroupCoordinator 1]: Stabilized group g"
        f" generation 2 {where} with 2 members\n"
    )
    (group,) = diagnose(path)
    told = " ".join(sentences(group, ["server.log"]))
    assert "rounds of 3 s in all; what it cost is not shown" in told
