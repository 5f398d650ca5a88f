"""A real group beside the simulation of its strategy."""

import json

from rebalance_lab.verdicts.as_seen import Seen, as_document, sentences
from tests.places import DATA

LOGS = DATA / "logs"


def test_a_prediction_within_a_quarter_is_told_with_its_error():
    seen = Seen("range", {"rounds": (2, 2), "stopped_partition_seconds": (8.0, 10.0)})
    assert seen.missed == []
    assert sentences(seen) == [
        "Seen under range: 2 rounds (2 simulated, +0%) and 8 stopped partition seconds (10 simulated, +25%)."
    ]


def test_a_model_that_misses_is_a_warning_before_all_figures():
    seen = Seen("range", {"rounds": (4, 0), "stopped_partition_seconds": (8.0, 10.1)})
    warning, _ = sentences(seen)
    assert warning.startswith(
        "The model does not reproduce this group within 25%: look at rounds and stopped"
    )
    assert as_document(seen)["missed"] == ["rounds", "stopped_partition_seconds"]


def test_nothing_where_nothing_was_seen_is_no_miss():
    assert Seen("range", {"rounds": (0, 0)}).missed == []
    assert Seen("range", {"rounds": (0, 1)}).missed == ["rounds"]


def test_the_day_of_a_real_group_is_compared_under_another_strategy(lab, tmp_path):
    """One of three Java clients was killed: the simulation stops partitions for as long as was seen."""
    trace, incident = tmp_path / "seen.jsonl", tmp_path / "incident.yaml"
    assert lab("diagnose", LOGS / "java-killed", "--trace", trace, "-o", incident).status == 0
    answer = lab("compare", incident, "--as-seen", trace, "-s", "range", "--seeds", "3", "--format", "json")
    document = json.loads(answer.out)
    assert document["as_seen"]["strategy"] == "cooperative-sticky"
    assert document["as_seen"]["seen"]["rounds"] == document["as_seen"]["simulated"]["rounds"] == 1
    assert document["as_seen"]["missed"] == []
    assert document["answers"][0].startswith("Seen under cooperative-sticky: 1 round (")


def test_a_trace_of_an_unknown_assignor_is_refused(lab, tmp_path):
    trace = tmp_path / "seen.jsonl"
    assert lab("diagnose", LOGS / "java-killed", "--trace", trace).status == 0
    trace.write_text(trace.read_text().replace('"strategy":"cooperative-sticky"', '"strategy":"theirs"'))
    answer = lab("compare", "bounce", "--as-seen", trace, "-s", "range")
    assert answer.status == 2
    assert "expected the trace of a group whose assignor is known" in answer.err
