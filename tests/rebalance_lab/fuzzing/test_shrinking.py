"""The smallest document: what is not needed for a failure is left out."""

from rebalance_lab.fuzzing.shrinking import shrink

DOCUMENT = {
    "name": "g",
    "duration": 600_000,
    "brokers": 3,
    "topics": {
        "a": {"partitions": 9, "racks": [["r1"]] * 9, "rates_rows": [[1] * 9, [2] * 9], "interval": "30s"},
        "b": {"partitions": 2, "rate": 10},
    },
    "members": [{"id": f"m{n}", "topics": ["a", "b"], "process_rate": 10} for n in range(5)],
    "events": [{"at": 1_234 * n, "crash": f"m{n}"} for n in range(1, 5)],
    "config": {"session.timeout.ms": 6_000, "max.poll.records": 5},
    "network": {"loss": 0.1},
}


def test_everything_that_is_not_needed_goes():
    needed = shrink(
        DOCUMENT, lambda document: any(event.get("crash") == "m3" for event in document["events"])
    )
    assert needed["events"] == [{"at": 0, "crash": "m3"}]
    assert needed["members"] == []
    assert needed["config"] == {}
    assert "network" not in needed
    assert list(needed["topics"].values()) == [{"partitions": 1}]
    assert needed["brokers"] == 1


def test_what_is_needed_together_stays():
    def fails(document):
        members = [member for member in document["members"] if "process_rate" in member]
        return len(members) >= 2 and document["topics"].get("a", {"partitions": 0})["partitions"] > 3

    needed = shrink(DOCUMENT, fails)
    assert [set(member) for member in needed["members"]] == [{"id", "topics", "process_rate"}] * 2
    assert needed["topics"] == {"a": {"partitions": 4}}
    assert needed["events"] == []


def test_lists_of_a_topic_have_one_element_a_partition():
    needed = shrink(DOCUMENT, lambda document: "racks" in document["topics"].get("a", ()))
    assert needed["topics"]["a"] == {"partitions": 1, "racks": [["r1"]]}


def test_events_happen_as_early_as_they_can():
    def fails(document):
        times = [event["at"] for event in document["events"]]
        return len(times) == 2 and times[1] - times[0] >= 2_000

    later = [{"at": 61_234, "crash": "m1"}, {"at": 65_000, "crash": "m2"}]
    needed = shrink(DOCUMENT | {"events": later}, fails)
    assert [event["at"] for event in needed["events"]] == [0, 3_000]


def test_nothing_smaller_is_returned_if_nothing_smaller_fails():
    assert shrink(DOCUMENT, lambda document: document == DOCUMENT) == DOCUMENT


def test_it_ends_whatever_fails():
    assert shrink(DOCUMENT, lambda document: True)["events"] == []
