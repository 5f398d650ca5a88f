"""What helps against a cause, and what it would cost: as far as the logs show it."""

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_logs.causes import diagnose
from rebalance_logs.report import not_shown, sentences
from rebalance_logs.triggers import Cause
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
