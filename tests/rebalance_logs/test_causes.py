"""What belongs to which cause."""

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_logs.causes import diagnosed
from rebalance_logs.findings import Cause
from tests.places import DATA
from tests.rebalance_logs.kafka_lines import logs_of
from tests.rebalance_logs.test_round_trip import causes_of, diagnosis

MEMBER = {"topics": ["t"], "batch": "2s", "start_up": "0s"}
DOCUMENT = {
    "name": "g",
    "duration": "120s",
    "topics": {"t": {"partitions": 6, "rate": 600}},
    "members": [{"id": "a", **MEMBER}, {"id": "b", **MEMBER}, {"id": "c", **MEMBER}],
    "config": {"max.poll.records": 100, "session.timeout.ms": "10s"},
}


def found(tmp_path, *events, strategy="range", **changes):
    scenario = parse_scenario(
        DOCUMENT | {"events": list(events)} | changes, where="test", registry=default_registry()
    )
    return diagnosis(logs_of(scenario, strategy).write(tmp_path))


def cost(diagnosis, cause):
    return next(
        each.stopped_ms for each in diagnosis.causes if each.cause is cause and each.stopped_ms is not None
    )


def test_partitions_of_who_left_belong_to_its_leaving_though_another_joined_before(tmp_path):
    join = {"at": "60s", "join": {"id": "d", **MEMBER}}
    both = found(
        tmp_path, join, {"at": "60500ms", "leave": "a"}, topics={"t": {"partitions": 60, "rate": 600}}
    )
    assert causes_of(both) == {Cause.MEMBER_JOINED: {"d"}, Cause.MEMBER_LEFT: {"a"}}
    assert cost(both, Cause.MEMBER_LEFT) > 0


def test_the_second_round_of_a_cooperative_group_is_known_without_a_reason(tmp_path):
    """As of clients that give none, and members that log none."""
    events = [{"at": "60s", "join": {"id": "d", **MEMBER}}]
    scenario = parse_scenario(DOCUMENT | {"events": events}, where="test", registry=default_registry())
    run, reason = logs_of(scenario, "cooperative-sticky"), "need to revoke partitions and re-join"
    assert any(reason in line for _, line in run.lines["broker"])
    for name, lines in run.lines.items():
        run.lines[name] = [
            (at_ms, line.replace(reason, "not provided"))
            for at_ms, line in lines
            if name == "broker" or reason not in line
        ]
    only = diagnosis(run.write(tmp_path))
    assert set(causes_of(only)) - {Cause.SLOW_BATCH} == {Cause.MEMBER_JOINED}
    assert [[t.is_follow_up for t in this.triggers] for this in only.group.rounds][-2:] == [[False], [True]]


def test_a_round_that_waits_long_for_a_batch_has_two_causes(tmp_path):
    """The member that leaves does so between two heartbeats of the slow one."""
    slow = [{"id": "a", **MEMBER, "batch": "20s"}, *DOCUMENT["members"][1:]]
    both = found(tmp_path, {"at": "65s", "leave": "c"}, members=slow, phase="0s")
    assert causes_of(both)[Cause.MEMBER_LEFT] == {"c"}
    assert causes_of(both)[Cause.SLOW_BATCH] == {"a"}
    assert cost(both, Cause.SLOW_BATCH) > cost(both, Cause.MEMBER_LEFT)
    (round_of_c,) = [this.waits for this in both.group.rounds if this.waits]
    assert [(wait.member, wait.why) for wait in round_of_c] == [("a", "batch"), ("a", "heartbeat")]


def test_many_that_fail_at_once_have_one_cause(tmp_path):
    members = [{"id": f"m-{number}", **MEMBER} for number in range(6)]
    many = found(tmp_path, {"at": "60s", "crash": ["m-1", "m-2", "m-3"]}, members=members)
    assert causes_of(many) == {Cause.MANY_FAILED: {"m-1", "m-2", "m-3"}}


def test_two_that_fail_at_once_are_two(tmp_path):
    members = [{"id": f"m-{number}", **MEMBER} for number in range(6)]
    two = found(tmp_path, {"at": "60s", "crash": ["m-1", "m-2"]}, members=members)
    assert causes_of(two) == {Cause.SESSION_EXPIRED: {"m-1", "m-2"}}


def test_processes_that_new_ones_replace_in_pairs_are_a_rolling_restart(tmp_path):
    events = [
        each
        for n, old in enumerate("abc")
        for each in (
            {"at": f"{40 + 20 * n}s", "join": {"id": f"new-{n}", **MEMBER}},
            {"at": f"{50 + 20 * n}s", "leave": old},
        )
    ]
    names = {"a", "b", "c", "new-0", "new-1", "new-2"}
    assert causes_of(found(tmp_path, *events))[Cause.ROLLING_RESTART] == names


def test_a_round_that_outlasts_the_removal_of_a_member_waits_for_the_next(tmp_path):
    """The session of b ends after the round has begun, and the batch of a later."""
    slow = [{"id": "a", **MEMBER, "batch": "40s"}, *DOCUMENT["members"][1:]]
    events = [{"at": "58s", "crash": "b"}, {"at": "60s", "join": {"id": "d", **MEMBER}}]
    both = found(tmp_path, *events, members=slow, phase="0s")
    (waits,) = [this.waits for this in both.group.rounds if this.waits]
    assert (waits[0].member, waits[0].why) == ("a", "batch")


def test_who_stood_still_and_came_back_did_not_end(tmp_path):
    still = found(tmp_path, {"at": "40s", "freeze": "b", "for": "30s"})
    assert causes_of(still) == {Cause.STOOD_STILL: {"b"}}
    (only,) = [each for each in still.causes if each.stopped_ms is not None]
    assert {(r.setting, r.of) for r in only.remedies} >= {("session.timeout.ms", "java")}


def test_members_that_come_and_go_for_good_are_scaling(tmp_path):
    joins = [{"at": f"{40 + 10 * n}s", "join": {"id": f"new-{n}", **MEMBER}} for n in range(3)]
    leaves = [{"at": f"{80 + 10 * n}s", "leave": f"new-{n}"} for n in range(3)]
    scaled = causes_of(found(tmp_path, *joins, *leaves))
    assert set(scaled) - {Cause.SLOW_BATCH} == {Cause.AUTOSCALING}


def test_a_coordinator_that_fails_over_is_named_beside_what_began_the_round(tmp_path):
    moved = found(
        tmp_path, {"at": "60s", "coordinator_failover": {"down": "2s"}}, {"at": "61s", "leave": "a"}
    )
    assert causes_of(moved) == {Cause.MEMBER_LEFT: {"a"}, Cause.FAILOVER: set()}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_partitions_that_are_added_are_a_change_of_metadata(strategy, tmp_path):
    config = DOCUMENT["config"] | {"metadata.max.age.ms": "5s"}
    more = found(tmp_path, {"at": "60s", "add_partitions": {"t": 9}}, strategy=strategy, config=config)
    assert set(causes_of(more)) - {Cause.SLOW_BATCH} == {Cause.METADATA}


def test_a_changed_subscription_is_named(tmp_path):
    topics = {"t": {"partitions": 6, "rate": 600}, "u": {"partitions": 3, "rate": 30}}
    changed = found(tmp_path, {"at": "60s", "subscribe": "b", "topics": ["t", "u"]}, topics=topics)
    assert causes_of(changed) == {Cause.SUBSCRIPTION: {"b"}}


def test_static_members_that_are_restarted_need_no_round(tmp_path):
    rolling = found(
        tmp_path, {"at": "40s", "rolling_restart": {"every": "15s", "down": "3s"}}, strategy="range+static"
    )
    assert causes_of(rolling) == {Cause.ROLLING_RESTART: {"a", "b", "c"}}
    assert len(rolling.group.rounds) == 1


def test_two_processes_with_one_instance_id_are_named_without_a_round(tmp_path):
    run = logs_of(
        parse_scenario(DOCUMENT | {"events": []}, where="test", registry=default_registry()), "range+static"
    )
    (name, line) = next(
        (file, text) for file, lines in run.lines.items() for _, text in lines if "instanceId=" in text
    )
    where = line[: line.index("]") + 1]
    fenced = f"{where} The group instance id Optional[x] has been fenced by another instance"
    run.lines[name].append((60_000, fenced))
    assert causes_of(diagnosis(run.write(tmp_path))) == {Cause.INSTANCE_SHARED: {name}}


def test_a_part_of_the_time_has_its_own_causes_and_knows_what_was_before(tmp_path):
    events = ({"at": "40s", "leave": "a"}, {"at": "80s", "crash": "b"})
    whole = found(tmp_path, *events)
    part = diagnosed(whole.group, whole.base_ms + 75_000)
    assert causes_of(whole) == {Cause.MEMBER_LEFT: {"a"}, Cause.SESSION_EXPIRED: {"b"}}
    assert causes_of(part) == {Cause.SESSION_EXPIRED: {"b"}}
    assert cost(part, Cause.SESSION_EXPIRED) == cost(whole, Cause.SESSION_EXPIRED)
    assert [each.cause for each in part.causes] == [Cause.SESSION_EXPIRED]
    (of_whole,) = [each for each in whole.causes if each.cause is Cause.SESSION_EXPIRED]
    assert part.causes[0].remedies == of_whole.remedies
    late = diagnosed(whole.group, whole.base_ms + 85_000)
    before_ms = sum(85_000 - (s.from_ms - part.base_ms) for s in part.stops if s.from_ms < late.from_ms)
    assert 0 < late.stopped_ms == part.stopped_ms - before_ms


def test_an_empty_group_that_starts_again_stands_still_for_its_initial_delay(tmp_path):
    names = ["a", "b", "c"]
    back = found(
        tmp_path,
        *({"at": "40s", "leave": name} for name in names),
        *({"at": "50s", "restart": name} for name in names),
        config=DOCUMENT["config"] | {"group.initial.rebalance.delay.ms": "3s"},
    )
    # six partitions wait for two delays: members that join in the first make the coordinator wait once more
    assert cost(back, Cause.INITIAL_DELAY) == pytest.approx(6 * 2 * 3_000, abs=200)
    (delay,) = [each for each in back.causes if each.cause is Cause.INITIAL_DELAY and each.stopped_ms]
    assert {(r.setting, r.of) for r in delay.remedies} == {("group.initial.rebalance.delay.ms", "broker")}


@pytest.mark.parametrize("without", ["This means the time between", "sending LeaveGroup request"])
def test_either_line_of_a_leave_for_max_poll_interval_is_enough(without, tmp_path):
    for path in (DATA / "logs" / "java-poll-exceeded").glob("*.log"):
        lines = path.read_text().splitlines(keepends=True)
        (tmp_path / path.name).write_text("".join(line for line in lines if without not in line))
    assert Cause.MEMBER_LEFT not in causes_of(diagnosis(tmp_path))
    assert causes_of(diagnosis(tmp_path))[Cause.POLL_INTERVAL] == {"c-1"}


def test_an_old_client_whose_commit_came_too_late_exceeded_max_poll_interval(tmp_path):
    """Its lines have no member ids, and the logs begin with them."""
    where = "[2026-03-01 10:00:50,757] INFO [Consumer clientId=c-8, groupId=pay]"
    (tmp_path / "c-8.log").write_text(
        f"{where} Offset commit failed on partition t-1 at offset 9: The coordinator is not aware of this"
        f" member.\n{where} Asynchronous auto-commit of offsets {{}} failed: Commit cannot be completed since"
        " the group has already rebalanced and assigned the partitions to another member. This means that the"
        " time between subsequent calls to poll() was longer than the configured max.poll.interval.ms\n"
        f"{where} Revoking previously assigned partitions [t-0, t-1]\n"
        f"{where} (Re-)joining group\n"
        f"{where.replace('50', '53')} Successfully joined group with generation 4731\n"
    )
    assert causes_of(diagnosis(tmp_path)) == {Cause.POLL_INTERVAL: {"c-8"}}


def test_a_killed_process_that_is_back_before_its_session_expires_was_dead_for_most_of_it():
    back = diagnosis(DATA / "logs" / "kafka-python-comeback")
    assert causes_of(back) == {Cause.SESSION_EXPIRED: {"c-1"}}
    # what the members measured; the logs show neither the session nor the interval of heartbeats
    assert back.stopped_ms == pytest.approx(36_201, rel=0.06)
    (first, *_) = back.causes
    assert [(r.setting, r.of) for r in first.remedies][:1] == [("group_instance_id", "kafka-python")]
    assert [[(wait.member, wait.why) for wait in this.waits] for this in back.group.rounds] == [
        [],
        [("c-1", "session")],
    ]
