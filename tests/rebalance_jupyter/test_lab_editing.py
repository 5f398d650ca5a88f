"""The bench as an editor of its scenario: controls, events, undo, and ways back from an invalid document."""

import pytest
import yaml

from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import Lab
from rebalance_jupyter.editing import OF_MEMBERS
from rebalance_jupyter.lab import MOST_EVENTS
from rebalance_lab.scenarios.files import load_scenario_text
from tests.rebalance_jupyter.bench import SMALL, document_of, events_of, said
from tests.rebalance_jupyter.samples import NOBODY

# --- controls


def test_controls_show_what_the_document_says_and_to_look_is_not_to_edit(lab):
    assert (lab.members.value, lab.partitions.value, lab.rate.value) == (2, 4, 40)
    written = "# mine\n" + SMALL.replace("rate: 40", "rate: 40.50").replace("count: 2", "count: 700")
    lab.document.value = written
    assert (lab.members.value, lab.rate.value, lab.target.options[:2]) == (700, 40.5, ("c-0", "c-1"))
    assert lab.document.value == written


@pytest.mark.parametrize(
    ("control", "value", "expected"),
    [
        ("members", 5, {"members": [{"id": "c", "count": 5, "topics": ["t"], "process_rate": 100}]}),
        ("partitions", 9, {"topics": {"t": {"partitions": 9, "rate": 40}}}),
        ("rate", 72.5, {"topics": {"t": {"partitions": 4, "rate": 72.5}}}),
    ],
)
def test_a_control_changes_its_own_field_only(lab, control, value, expected):
    getattr(lab, control).value = value
    assert document_of(lab) == {**yaml.safe_load(SMALL), **expected}
    assert load_scenario_text(lab.document.value, "scenario")


@pytest.mark.parametrize(
    ("before", "after", "off"),
    [
        ("{partitions: 4, rate: 40}", "{partitions: 2, rates: [1, 2]}", (False, True, True)),
        ("rate: 40", "rate: 40, backlog: [1, 2, 3, 4]", (False, True, False)),
        ("rate: 40", "rate: 40, racks: [[a], [b], [a], [b]]", (False, True, False)),
        ("rate: 40", "rate: 40, backlog: 40", (False, False, False)),
        ("count: 2", "owned: {t: [0]}", (True, True, False)),
    ],
)
def test_controls_of_what_is_said_of_each_partition_are_off(before, after, off):
    lab = Lab(SMALL.replace(before, after))
    assert said(lab.document_error) == ""
    assert (lab.members.disabled, lab.partitions.disabled, lab.rate.disabled) == off
    if not lab.rate.disabled:
        lab.rate.value = 70
        assert "rate: 70" in lab.document.value
    lab.document.value = SMALL
    assert (lab.members.disabled, lab.partitions.disabled, lab.rate.disabled) == (False, False, False)


def test_a_number_that_cannot_be_read_is_refused_and_the_document_stays(lab):
    lab.members.text.value = "2.5"
    assert said(lab.members.error).startswith("found 2.5, expected a whole number from 1 to ")
    assert lab.document.value == SMALL
    lab.members.text.value = "4"
    assert document_of(lab)["members"][0]["count"] == 4


def test_a_strategy_is_added_from_the_list(lab):
    lab.assignor.value = "stick"
    assert lab.strategies.value == "range"
    lab.assignor.value = "sticky"
    assert (lab.strategies.value, lab.assignor.value) == ("range\nsticky", "")
    assert set(lab.assignor.options) == set(default_registry().assignors())


# --- events


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        ("join", "extra", {"join": {"id": "extra", "topics": ["t"], "process_rate": 100}}),
        ("join", "", {"join": {"id": "new-0", "topics": ["t"], "process_rate": 100}}),
        ("leave", "c-0", {"leave": "c-0"}),
        ("crash", "c-1", {"crash": "c-1"}),
        ("restart", "c-1", {"restart": "c-1"}),
        ("pause", "c-0", {"pause": "c-0", "for": "30s"}),
        ("freeze", "c-0", {"freeze": "c-0", "for": "30s"}),
        ("cut", "c-0", {"cut": "c-0", "for": "30s"}),
        ("subscribe", "c-0", {"subscribe": "c-0", "topics": ["t"]}),
        ("remove_member", "c-0", {"remove_member": "c-0"}),
        ("add_partitions", "", {"add_partitions": {"t": 8}}),
        ("create_topic", "", {"create_topic": {"new-0": {"partitions": 6}}}),
        ("create_topic", "orders", {"create_topic": {"orders": {"partitions": 6}}}),
        ("delete_topic", "", {"delete_topic": "t"}),
        ("rolling_restart", "", {"rolling_restart": {"every": "10s", "down": "3s"}}),
        ("coordinator_failover", "", {"coordinator_failover": {"down": "3s"}}),
        ("calm", "", {"calm": True}),
    ],
)
def test_every_kind_of_event_is_added_at_the_cursor_and_runs(ready, kind, target, expected):
    ready.view.at = 12_500
    assert ready.add_event.description == "add at 12500ms"
    ready.kind.value, ready.target.value = kind, target
    ready.add_event.click()
    assert said(ready.event_error) == ""
    assert events_of(ready) == [{"at": "12500ms", **expected}]
    ready.run()
    assert (said(ready.document_error), ready.view.errors) == ("", [])
    assert 12_500 in [line.at_ms for line in ready.traces[0].events]


def test_every_kind_there_is_can_be_added_and_a_late_view_where_the_protocol_has_views(lab):
    assert set(lab.kind.options) == set(default_registry().scenario_events())
    lab.strategies.value, lab.kind.value, lab.target.value = "watcher", "lag_view", "c-0"
    lab.add_event.click()
    assert [event["lag_view"] for event in events_of(lab)] == [{"member": "c-0", "by": "10s"}]
    lab.run()
    assert (said(lab.document_error), lab.view.errors) == ("", [])


@pytest.mark.parametrize("kind", OF_MEMBERS)
def test_an_event_of_nobody_is_refused_beside_the_button(lab, kind):
    lab.kind.value = kind
    for target, problem in (("", "no member"), ("nobody", "nobody")):
        lab.target.value = target
        lab.add_event.click()
        assert problem in said(lab.event_error)
        assert lab.document.value == SMALL
    lab.target.value = "c-0"
    lab.add_event.click()
    assert (said(lab.event_error), len(events_of(lab))) == ("", 1)


@pytest.mark.parametrize(
    ("scenario", "like"),
    [
        (SMALL.replace("count: 2", "rack: a, owned: {t: [0]}"), {"rack": "a", "process_rate": 100}),
        (NOBODY, {}),
    ],
    ids=["a group that owns something", "a group without members"],
)
def test_who_joins_is_like_the_first_member_and_owns_nothing_yet(scenario, like):
    lab = Lab(scenario, ["range"])
    lab.add_event.click()
    lab.add_event.click()
    joined = [event["join"] for event in events_of(lab)]
    assert joined == [{"id": f"new-{number}", "topics": ["t"], **like} for number in (0, 1)]
    assert "&" not in lab.document.value
    assert lab.target.options[-2:] == ("new-0", "new-1")
    lab.run()
    assert len(lab.traces) == 1


TIMED = SMALL + "events:\n  - {at: 20s, crash: c-1}\n  - {at: 5s, calm: true}\n"


def listed(lab):
    """The events beside the document, as a person reads them."""
    return [said(row.children[1]) for row in lab.events.children]


def remove(lab, number):
    lab.events.children[number].children[0].click()


def test_events_are_listed_by_their_times_added_where_they_belong_and_removed_by_their_buttons():
    lab = Lab(TIMED, ["range"])
    lab.view.at = 10_000
    lab.add_event.click()
    assert [event["at"] for event in events_of(lab)] == ["5s", "10s", "20s"]
    first, second, third = listed(lab)
    assert (first, third) == ("5s calm: true", "20s crash: c-1")
    assert second.startswith("10s join: {id: new-2, topics: [t]")
    remove(lab, 0)
    remove(lab, 0)
    assert events_of(lab) == [{"at": "20s", "crash": "c-1"}]
    remove(lab, 0)
    assert (events_of(lab), lab.events.children, said(lab.document_error)) == ([], (), "")


def test_a_long_list_of_events_is_cut_and_counts_the_rest():
    many = "".join(f"  - {{at: {n}s, calm: true}}\n" for n in range(MOST_EVENTS + 2))
    lab = Lab(f"{SMALL}events:\n{many}", ["range"])
    assert len(lab.events.children) == MOST_EVENTS + 1
    assert said(lab.events.children[-1]) == "and 2 more in the scenario"


# --- invalid documents, and ways back


@pytest.mark.parametrize("text", ["name: [", "topics: 3\nmembers: {}\n", "members: [3]\ntopics: {t: 4}\n"])
def test_controls_and_events_leave_a_malformed_document_alone(lab, text):
    lab.document.value = text
    lab.members.value, lab.partitions.value, lab.rate.value = 3, 5, 70
    lab.add_event.click()
    assert lab.document.value == text


def test_controls_and_buttons_can_take_back_what_made_the_document_invalid(lab):
    lab.document.value = TIMED
    lab.members.value = 1
    assert "c-1" in said(lab.document_error)
    lab.members.value = 2
    assert (said(lab.document_error), document_of(lab)) == ("", yaml.safe_load(TIMED))
    lab.document.value = TIMED.replace("c-1", "c-9")
    remove(lab, 1)
    assert (said(lab.document_error), events_of(lab)) == ("", [{"at": "5s", "calm": True}])
    lab.document.value = SMALL.replace("partitions: 4", "partitions: 9").replace("40s", "4 weeks")
    lab.rate.value = 70
    assert document_of(lab)["topics"] == {"t": {"partitions": 9, "rate": 70}}


def test_changes_are_undone_and_done_again(lab):
    assert (lab.undo_button.disabled, lab.redo_button.disabled) == (True, True)
    lab.members.value = 3
    lab.document.value = TIMED
    lab.undo_button.click()
    assert (document_of(lab)["members"][0]["count"], lab.members.value) == (3, 3)
    lab.undo_button.click()
    assert (lab.document.value, lab.members.value) == (SMALL, 2)
    assert (lab.undo_button.disabled, lab.redo_button.disabled) == (True, False)
    lab.redo_button.click()
    lab.redo_button.click()
    assert (lab.document.value, lab.redo_button.disabled) == (TIMED, True)
