"""The changes that are worth a trial on a scenario, and the trials of what a change costs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.changes import (
    Absence,
    Change,
    Kind,
    Trouble,
    changes,
    delay_ms,
    facts_of,
    is_one_change,
    long_enough_ms,
    troubles,
)
from tests.examples import scaled

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


def group(**changes):
    """The text of the scenario with three members, with other attributes of each."""
    more = "".join(f", {name}: {value}" for name, value in changes.items())
    return GROUP.replace(", process_rate: 100", f", process_rate: 100{more}")


def test_static_members_are_tried_with_a_session_that_is_longer_than_the_absence():
    found = tried(AWAY + SHORT_SESSION)
    assert found["range+static"].kinds == {Kind.STATIC}
    longer = found["range+static with session.timeout.ms=90s"]
    assert longer.kinds == {Kind.STATIC, Kind.LONG_SESSION}
    assert is_one_change(longer.kinds)


def test_the_session_that_is_made_longer_is_that_of_the_protocol():
    """Groups that are reconciled do not read session.timeout.ms."""
    found = tried(AWAY + SHORT_SESSION, "range+reconcile")
    assert "range+reconcile+static with group.consumer.session.timeout.ms=90s" in found
    assert not any(" session.timeout.ms" in label for label in found)


def test_a_session_that_is_long_enough_is_not_made_longer():
    long = AWAY + "config: {session.timeout.ms: 2m}\n"
    assert not any(Kind.LONG_SESSION in change.kinds for change in tried(long).values())


def test_a_delay_is_tried_with_a_cooperative_assignor_if_members_come_back():
    assert tried(AWAY)["cooperative-sticky+delay=90s"].kinds == {Kind.COOPERATIVE, Kind.DELAY}
    assert not any(Kind.DELAY in change.kinds for change in tried(GROUP).values())


def test_static_members_are_tried_only_if_a_member_comes_back():
    assert not any("static" in label for label in tried(GROUP + "events: [{at: 60s, leave: b}]\n"))
    stuck = GROUP + "events: [{at: 60s, pause: b, for: 60s}]\nconfig: {max.poll.interval.ms: 20s}\n"
    assert "range+static" in tried(stuck), "the group removed it, and it joined again"


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


def test_batches_that_outlast_the_poll_interval_are_made_smaller_or_given_more_time():
    """500 records take 5 s: a batch may take twice as long."""
    found = tried(GROUP + "config: {max.poll.interval.ms: 6s}\n")
    assert found["range with max.poll.interval.ms=15s"].kinds == {Kind.LONG_POLL_INTERVAL}
    assert found["range with max.poll.records=299"].kinds == {Kind.RECORDS}
    assert not any("max.poll.interval.ms" in label for label in tried(GROUP))


def test_a_call_that_outlasts_the_session_or_the_poll_interval_gets_longer_ones():
    calls = group(on_revoked="[10s, 20s]")
    assert "range with session.timeout.ms=30s" in tried(calls + "config: {session.timeout.ms: 20s}\n")
    found = tried(calls + "config: {session.timeout.ms: 20s, max.poll.interval.ms: 20s}\n")
    both = found["range with max.poll.interval.ms=45s, session.timeout.ms=30s"]
    assert is_one_change(both.kinds)
    assert not any("session.timeout.ms=30s" in label for label in tried(calls))


def test_the_calls_of_members_that_join_later_count():
    joins = "events: [{at: 60s, join: {id: d, topics: [t], on_assigned: 30s}}]\n"
    assert "range with session.timeout.ms=45s" in tried(GROUP + joins + "config: {session.timeout.ms: 20s}\n")


LATE = (
    GROUP
    + """\
events:
  - {at: 59s, lag_view: {member: c, by: 10s}}
  - {at: 60s, join: {id: d, topics: [t]}}
"""
)


def test_members_whose_claims_fail_get_the_attempts_for_which_others_hold_them():
    """c sees the change after 10 s, and holds its partitions meanwhile: 4 attempts in 8 s are too few."""
    found = tried(LATE, "range+watcher")
    assert found["range+watcher with rebalance.max.retries=6"].kinds == {Kind.RETRIES}
    assert found["range+watcher with rebalance.backoff.ms=3s"].kinds == {Kind.LONG_BACKOFF}
    assert not any("retries" in label for label in tried(GROUP, "range+watcher"))


@settings(max_examples=scaled(30))
@given(
    st.sampled_from(["range", "range+static", "cooperative-sticky", "range+reconcile", "range+watcher"]),
    st.integers(2, 30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(6, 40),
    st.integers(4, 60),
    st.integers(0, 2**16),
)
def test_what_a_finding_names_is_tried(strategy, rate, revoked_s, assigned_s, session_s, interval_s, seed):
    registry = default_registry()
    text = group(on_revoked=f"{revoked_s}s", on_assigned=f"{assigned_s}s").replace("100", f"{rate}")
    config = f"config: {{session.timeout.ms: {session_s}s, max.poll.interval.ms: {interval_s}s}}\n"
    events = "events: [{at: 60s, join: {id: d, topics: [t]}}]\n"
    scenario = replace(load_scenario_text(text + events + config, "scenario"), seed=seed)
    history = History(simulate(scenario, strategy, registry), registry)
    facts = facts_of(scenario, history)
    made = [c for c in changes(scenario, strategy, facts, registry) if is_one_change(c.kinds)]
    named = " ".join(findings(history))
    for words, name in (
        ("max.poll.interval.ms longer", "max.poll.interval.ms"),
        ("max.poll.interval.ms to", "max.poll.interval.ms"),
        ("session.timeout.ms longer", "session.timeout.ms"),
    ):
        longer = [c.settings[name] for c in made if name in c.settings]
        assert words not in named or max(longer, default=0) > scenario.config[name]
    fewer = any("max.poll.records" in change.settings for change in made)
    assert fewer or "max.poll.records (now" not in named


def test_the_initial_delay_is_left_out_if_a_round_has_waited_for_it():
    label = "range with group.initial.rebalance.delay.ms=0ms"
    every = "[a, b, c]"
    empty = GROUP + f"events: [{{at: 60s, leave: {every}}}, {{at: 90s, restart: {every}}}]\n"
    assert label in tried(empty)
    assert label not in tried(GROUP)


def test_an_assignor_with_weights_is_tried_if_the_load_is_uneven():
    uneven = GROUP.replace("rate: 60", "rates: [50, 50, 1, 1, 1, 1]")
    assert tried(uneven)["optimal"].kinds == {Kind.WEIGHTS}
    assert "optimal" not in tried(GROUP)
    assert "optimal" not in tried(GROUP.replace("partitions: 6", "partitions: 7")), "the best there is"


def test_assignors_that_know_weights_are_tried_if_a_slow_member_has_more_than_it_can_handle():
    slow = GROUP.replace("id: b, topics: [t], process_rate: 100", "id: b, topics: [t], process_rate: 10")
    for name in ("optimal", "lag-aware"):
        assert tried(slow)[name].kinds == {Kind.WEIGHTS}
    assert "lag-aware" not in tried(slow, "lag-aware")
    too_much = slow.replace("rate: 60", "rate: 300")
    assert not {"optimal", "lag-aware"} & tried(too_much).keys(), "no owners can carry the load"


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
    absences = [Absence("a", 1_000 * each) for each in seconds]
    assert long_enough_ms(absences) == (proposed and 1_000 * proposed)


def test_two_changes_that_need_one_another_are_one():
    assert is_one_change(frozenset({Kind.COOPERATIVE, Kind.DELAY}))
    assert not is_one_change(frozenset({Kind.COOPERATIVE, Kind.STATIC}))
    assert not is_one_change(frozenset())


def test_a_trouble_is_that_of_a_member_with_partitions_in_a_group_at_rest():
    registry = default_registry()
    text = GROUP.replace("partitions: 6", "partitions: 2")  # range leaves the last member without any
    scenario = load_scenario_text(text, "scenario")
    history = History(simulate(scenario, "range", registry), registry)
    made = troubles(scenario, facts_of(scenario, history), 90_000)
    assert list(made) == list(Trouble)
    (event,) = made[Trouble.CRASHES].events
    assert (event.kind, event.arguments.names) == ("crash", ("a",))
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


def test_smaller_batches_are_tried_with_members_that_have_a_setting_of_their_own():
    own = ", batch_overhead: 300ms, config: {max.poll.records: 1000}}"
    text = GROUP.replace("process_rate: 100}", f"process_rate: 100{own}")
    joins = f"events: [{{at: 60s, join: {{id: d, topics: [t], process_rate: 100{own}}}]\n"
    scenario = load_scenario_text(text + joins, "s")
    registry = default_registry()
    facts = facts_of(scenario, History(simulate(scenario, "range", registry)))
    assert facts.poll_records == 1_000
    (fewer,) = [c for c in changes(scenario, "range", facts, registry) if c.kinds == {Kind.RECORDS}]
    assert fewer.settings == {"max.poll.records": 100}
    changed = fewer.of(scenario, registry)
    everybody = [*changed.members, *changed.events[0].arguments.members]
    assert [member.overrides.config["max.poll.records"] for member in everybody] == [100] * 4
    assert scenario.members[0].overrides.config["max.poll.records"] == 1_000


def test_members_without_a_setting_of_their_own_stay_as_they_are():
    scenario = load_scenario_text(GROUP, "s")
    changed = Change("range", settings={"max.poll.records": 7}).of(scenario, default_registry())
    assert (changed.members, changed.config["max.poll.records"]) == (scenario.members, 7)


IDLE = """\
name: idle
duration: 3m
topics: {t: {partitions: 2, rate: 300}, u: {partitions: 2, rate: 300}}
members:
  - {id: c, count: 4, topics: [t, u], process_rate: 200}
events: [{at: 60s, leave: c-3}]
"""


@pytest.mark.parametrize(("rate", "is_tried"), [(200, True), (900, False)])
def test_roundrobin_is_tried_where_other_owners_could_take_an_overload_away(rate, is_tried):
    """Under ``range`` two of the members own all partitions of both topics."""
    registry = default_registry()
    scenario = load_scenario_text(IDLE.replace("process_rate: 200", f"process_rate: {rate}"), "s")
    facts = facts_of(scenario, History(simulate(scenario, "range", registry)))
    tried = [c.strategy for c in changes(scenario, "range", facts, registry) if c.kinds == {Kind.EVEN}]
    assert tried == ["roundrobin"] * is_tried
