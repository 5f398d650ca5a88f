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
from tests.approved import approved
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


def group(**changes):
    """The text of the scenario with three members, with other attributes of each."""
    more = "".join(f", {name}: {value}" for name, value in changes.items())
    return GROUP.replace(", process_rate: 100", f", process_rate: 100{more}")


def config(**settings):
    return f"config: {{{', '.join(f'{name}: {value}' for name, value in settings.items())}}}\n"


def events(*listed):
    return f"events: [{', '.join(listed)}]\n"


IDLE = """\
name: idle
duration: 3m
topics: {t: {partitions: 2, rate: 300}, u: {partitions: 2, rate: 300}}
members:
  - {id: c, count: 4, topics: [t, u], process_rate: 200}
events: [{at: 60s, leave: c-3}]
"""


SESSION, POLLS = "session.timeout.ms", "max.poll.interval.ms"
CALLS = group(on_revoked="[10s, 20s]")
SLOW = GROUP.replace("id: b, topics: [t], process_rate: 100", "id: b, topics: [t], process_rate: 10")
JOINS = "{at: 60s, join: {id: d, topics: [t]}}"
EVERY = "[a, b, c]"
TRIED = {
    "nothing happens": GROUP,
    "members that are as fast as the load": GROUP.replace(", process_rate: 100", ""),
    "a member comes back": AWAY,
    "and its session is short": AWAY + config(**{SESSION: "10s"}),
    "and its session is long enough": AWAY + config(**{SESSION: "2m"}),
    "a member leaves": GROUP + events("{at: 60s, leave: b}"),
    "the group removes a member that is stuck": GROUP
    + events("{at: 60s, pause: b, for: 60s}")
    + config(**{POLLS: "20s"}),
    "a pause that does not end": GROUP + events("{at: 60s, pause: b, for: 10m}") + config(**{POLLS: "10m"}),
    "settings that are short already": GROUP
    + config(**{SESSION: "6s", "heartbeat.interval.ms": "1s", "max.poll.records": 1}),
    "batches of 10 s at most and polls of 6 s": GROUP + config(**{POLLS: "6s"}),
    "batches of 10 s at most and polls of 10 s": GROUP + config(**{POLLS: "10s"}),
    "batches of 10 s at most and polls of 11 s": GROUP + config(**{POLLS: "11s"}),
    "calls of 20 s": CALLS,
    "and a session of 20 s": CALLS + config(**{SESSION: "20s"}),
    "and a session of 23 s": CALLS + config(**{SESSION: "23s"}),
    "and polls of 20 s, too": CALLS + config(**{SESSION: "20s", POLLS: "20s"}),
    "calls of 20 s without batches and polls of 20 s": CALLS.replace("process_rate: 100, ", "")
    + config(**{POLLS: "20s"}),
    "calls of a member that joins": GROUP
    + events("{at: 60s, join: {id: d, topics: [t], on_assigned: 30s}}")
    + config(**{SESSION: "20s"}),
    "all members come back": GROUP + events(f"{{at: 60s, leave: {EVERY}}}", f"{{at: 90s, restart: {EVERY}}}"),
    "uneven rates": GROUP.replace("rate: 60", "rates: [50, 50, 1, 1, 1, 1]"),
    "as even as seven partitions can be": GROUP.replace("partitions: 6", "partitions: 7"),
    "a slow member": SLOW,
    "a load that is too much for all": SLOW.replace("rate: 60", "rate: 300"),
    "two of four members own all": IDLE,
    "and are fast enough": IDLE.replace("process_rate: 200", "process_rate: 900"),
}
UNDER = {
    "range+reconcile": [AWAY + config(**{SESSION: "10s"})],
    "cooperative-sticky+static": [AWAY],
    "lag-aware": [SLOW],
    "roundrobin": [
        GROUP,
        GROUP.replace("partitions: 6", "partitions: 8") + events("{at: 60s, leave: b}"),
    ],
    # c sees the change after 10 s, and holds its partitions meanwhile: 4 attempts in 8 s are too few
    "range+watcher": [GROUP, GROUP + events("{at: 59s, lag_view: {member: c, by: 10s}}", JOINS)],
}


def tried(text, strategy="range"):
    """The changes that are tried, each with what it changes."""
    registry = default_registry()
    scenario = load_scenario_text(text, "scenario")
    facts = facts_of(scenario, History(simulate(scenario, strategy, registry), registry))
    for change in changes(scenario, strategy, facts, registry):
        kinds = " and ".join(sorted(kind.value for kind in change.kinds))
        yield f"{change.label}: {kinds}{'' if is_one_change(change.kinds) else ' (two changes)'}"


def test_the_changes_that_are_tried_are_those_that_were_approved():
    texts = {title: "\n".join(tried(text)) for title, text in TRIED.items()}
    for strategy, scenarios in UNDER.items():
        for number, text in enumerate(scenarios, 1):
            texts[f"{strategy} ({number})"] = "\n".join(tried(text, strategy))
    approved("changes", texts)


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
    text += events(JOINS) + config(**{SESSION: f"{session_s}s", POLLS: f"{interval_s}s"})
    scenario = replace(load_scenario_text(text, "scenario"), seed=seed)
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


@pytest.mark.parametrize(
    ("seconds", "proposed"), [([60], 90), ([10, 20], 30), ([2_000], None), ([2_000, 5], 10), ([], None)]
)
def test_the_session_has_room_for_each_absence_that_it_can_outlast(seconds, proposed):
    absences = [Absence("a", 1_000 * each) for each in seconds]
    assert long_enough_ms(absences) == (proposed and 1_000 * proposed)


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
