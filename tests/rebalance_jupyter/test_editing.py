"""Changes of a document: events in the order of their times, and the texts that it has had."""

import pytest

from rebalance_jupyter.editing import (
    Versions,
    document_in,
    events_in,
    first_member,
    first_topic,
    with_event,
    without_event,
)

DOCUMENT = {"name": "n", "events": [{"at": "2m", "crash": "c-1"}, {"at": 30_000, "calm": True}]}


def test_events_are_listed_by_their_times_with_their_places_in_the_document():
    listed = [(event.number, event.at, event.text) for event in events_in(DOCUMENT)]
    assert listed == [(1, "30000", "calm: true"), (0, "2m", "crash: c-1")]


def test_an_event_is_added_in_the_order_of_times_and_after_those_of_the_same_time():
    changed = with_event(DOCUMENT, 120_000, {"leave": "c-2"})
    assert changed["events"] == [
        {"at": 30_000, "calm": True},
        {"at": "2m", "crash": "c-1"},
        {"at": "2m", "leave": "c-2"},
    ]
    assert len(DOCUMENT["events"]) == 2


@pytest.mark.parametrize("event", ["leave", 3, None, {}, {"crash": "c-1"}, {"at": "soon", "crash": "c-1"}])
def test_an_event_that_is_none_is_listed_last_and_can_be_removed(event):
    document = {"name": "n", "events": [event, {"at": "1s", "calm": True}]}
    assert [listed.number for listed in events_in(document)] == [1, 0]
    assert without_event(document, 0)["events"] == [{"at": "1s", "calm": True}]


def test_a_long_event_is_shortened():
    (event,) = events_in({"events": [{"at": "1s", "leave": [f"c-{n}" for n in range(100)]}]})
    assert len(event.text) == 83
    assert event.text.endswith("...")


@pytest.mark.parametrize("text", ["", "name: [", "- a\n- b\n", "only text"])
def test_a_text_without_a_mapping_has_no_document(text):
    assert document_in(text) is None


@pytest.mark.parametrize("document", [{}, {"topics": 3, "members": 4}, {"topics": {"t": 1}, "members": [2]}])
def test_a_malformed_document_has_an_empty_first_topic_and_member(document):
    assert (first_topic(document), first_member(document), events_in({"events": 3})) == ({}, {}, [])


def test_texts_are_undone_and_done_again_and_a_new_one_drops_those_undone():
    versions = Versions("a")
    assert (versions.can_undo, versions.can_redo) == (False, False)
    versions.add("b")
    versions.add("b")
    versions.add("c")
    assert [versions.step(-1), versions.step(-1), versions.step(-1)] == ["b", "a", "a"]
    assert (versions.can_undo, versions.can_redo) == (False, True)
    assert versions.step(1) == "b"
    versions.add("d")
    assert (versions.can_undo, versions.can_redo, versions.step(1)) == (True, False, "d")
    assert versions.step(-1) == "b"
