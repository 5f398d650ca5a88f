"""The changes that are worth a trial on a scenario, and the trials of what a change costs."""

import pytest

from coordinator_core.documents.files import load_scenario_text
from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.changes import (
    Absence,
    Change,
    Kind,
    Trouble,
    changes,
    delay_ms,
    facts_of,
    long_enough_ms,
    troubles,
)
from coordinator_core.simulation.run import simulate
from coordinator_core.traces.history import History

GROUP = """\
name: group
duration: 3m
topics:
  t: {partitions: 6, rate: 60}
members:
  - {id: a, topics: [t], process_rate: 100}
  - {id: b, topics: [t], process_rate: 100}
  - {id: c, topics: [t], process_rate: 100}
"""
AWAY = GROUP + "events: [{at: 60s, crash: b}, {at: 2m, restart: b}]\n"
SHORT_SESSION = "config: {session.timeout.ms: 10s}\n"


def tried(text, strategy="range"):
    """The labels of the changes that are tried, with their kinds."""
    registry = default_registry()
    scenario = load_scenario_text(text, "scenario")
    facts = facts_of(scenario, History(simulate(scenario, strategy, registry), registry))
    return {change.label: change for change in changes(scenario, strategy, facts, registry)}


def test_static_members_are_tried_with_a_session_that_is_longer_than_the_absence():
    found = tried(AWAY + SHORT_SESSION)
    assert found["range+static"].kinds == {Kind.STATIC}
    longer = found["range+static with session.timeout.ms=90s"]
    assert longer.kinds == {Kind.STATIC, Kind.LONG_SESSION}
    assert longer.is_one


def test_a_session_that_is_long_enough_is_not_made_longer():
    long = AWAY + "config: {session.timeout.ms: 2m}\n"
    assert not any(Kind.LONG_SESSION in change.kinds for change in tried(long).values())


def test_a_delay_is_tried_with_a_cooperative_assignor_if_members_come_back():
    assert tried(AWAY)["cooperative-sticky+delay=90s"].kinds == {Kind.COOPERATIVE, Kind.DELAY}
    assert not any(Kind.DELAY in change.kinds for change in tried(GROUP).values())


def test_a_cooperative_strategy_is_not_made_cooperative_again():
    found = tried(AWAY, "cooperative-sticky+static")
    assert not any({Kind.COOPERATIVE, Kind.STATIC} & change.kinds for change in found.values())


def test_settings_that_are_short_already_are_left():
    text = GROUP + "config: {session.timeout.ms: 6s, heartbeat.interval.ms: 1s, max.poll.records: 1}\n"
    kinds = {kind for change in tried(text).values() for kind in change.kinds}
    assert not kinds & {Kind.SHORT_SESSION, Kind.HEARTBEAT, Kind.RECORDS}


def test_smaller_batches_are_tried_if_a_batch_takes_long():
    assert "range with max.poll.records=50" in tried(GROUP)
    assert not any("records" in label for label in tried(GROUP.replace(", process_rate: 100", "")))


def test_an_assignor_with_weights_is_tried_if_the_load_is_uneven():
    uneven = GROUP.replace("rate: 60", "rates: [50, 50, 1, 1, 1, 1]")
    assert tried(uneven)["optimal"].kinds == {Kind.WEIGHTS}
    assert "optimal" not in tried(GROUP)
    assert "optimal" not in tried(GROUP.replace("partitions: 6", "partitions: 7")), "the best there is"


def test_a_sticky_assignor_is_tried_if_moves_were_avoidable():
    moved = GROUP.replace("partitions: 6", "partitions: 8") + "events: [{at: 60s, leave: b}]\n"
    assert "sticky" in tried(moved, "roundrobin")
    assert "sticky" not in tried(GROUP, "roundrobin")


def test_changes_that_a_protocol_does_not_know_are_left_out():
    kinds = {kind for change in tried(GROUP, "range+watcher").values() for kind in change.kinds}
    assert not kinds & {Kind.STATIC, Kind.COOPERATIVE, Kind.DELAY}


@pytest.mark.parametrize(
    ("seconds", "proposed"), [([60], 90), ([10, 20], 30), ([2_000], None), ([2_000, 5], 10), ([], None)]
)
def test_the_session_has_room_for_each_absence_that_it_can_outlast(seconds, proposed):
    absences = [Absence("a", 0, 1_000 * each, closed=False) for each in seconds]
    assert long_enough_ms(absences) == (proposed and 1_000 * proposed)


def test_two_changes_that_need_one_another_are_one():
    assert Change("s", frozenset({Kind.COOPERATIVE, Kind.DELAY})).is_one
    assert not Change("s", frozenset({Kind.COOPERATIVE, Kind.STATIC})).is_one
    assert not Change("s").is_one


def test_a_trouble_is_that_of_a_member_with_partitions_in_a_group_at_rest():
    registry = default_registry()
    text = GROUP.replace("partitions: 6", "partitions: 2")  # range leaves the last member without any
    scenario = load_scenario_text(text, "scenario")
    history = History(simulate(scenario, "range", registry), registry)
    made = troubles(scenario, facts_of(scenario, history), 90_000)
    assert list(made) == list(Trouble)
    (event,) = made[Trouble.CRASHES].events
    assert (event.kind, event.arguments.members) == ("crash", ("a",))
    assert made[Trouble.CRASHES].measure_from_ms == event.at_ms > history.start_up_ms
    assert made[Trouble.CRASHES].duration_ms > event.at_ms + 90_000


def test_a_group_of_one_member_has_no_troubles():
    registry = default_registry()
    alone = "\n".join(line for line in GROUP.splitlines() if "id: b" not in line and "id: c" not in line)
    scenario = load_scenario_text(f"{alone}\n", "scenario")
    history = History(simulate(scenario, "range", registry), registry)
    assert troubles(scenario, facts_of(scenario, history), 0) == {}


def test_a_delay_of_the_settings_counts():
    scenario = load_scenario_text(GROUP, "scenario")
    change = Change("cooperative-sticky+delay")
    assert delay_ms(change, scenario, default_registry()) == 300_000
