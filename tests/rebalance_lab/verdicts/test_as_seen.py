"""A real group beside the simulation of its strategy."""

import json
import re

import pytest

from rebalance_lab.verdicts.as_seen import Seen
from tests.places import DATA

LOGS = DATA / "logs"


STOPPED = "stopped_partition_seconds"


def seen_of(rounds, stopped, ends):
    """What was seen and simulated of each metric; ``ends``: the range of the simulated stopped time."""
    figures = {"rounds": rounds, STOPPED: stopped}
    return Seen("range", figures, {"rounds": (rounds[1], rounds[1]), STOPPED: ends})


def test_a_prediction_within_a_quarter_is_told_with_its_error():
    seen = seen_of((2, 2), (8.0, 10.0), (7.5, 12.0))
    assert seen.missed == []
    assert seen.texts() == ["rounds 2 (2 simulated, +0%)", "stopped partition seconds 8 (10 simulated, +25%)"]


def test_figures_that_a_model_misses_are_in_the_document_with_their_ranges():
    document = seen_of((4, 0), (8.0, 10.1), (9.0, 12.0)).as_document()
    assert document["missed"] == ["rounds", STOPPED]
    assert (document["least"][STOPPED], document["greatest"][STOPPED]) == (9.0, 12.0)


def test_nothing_where_nothing_was_seen_is_no_miss():
    assert seen_of((0, 0), (1.0, 1.0), (1.0, 1.0)).missed == []
    assert seen_of((0, 1), (1.0, 1.0), (1.0, 1.0)).missed == ["rounds"]


def test_the_day_of_a_real_group_is_compared_under_another_strategy(lab, tmp_path):
    """Three static Java clients were restarted: the simulation stops partitions for as long as was seen."""
    trace, incident = tmp_path / "seen.jsonl", tmp_path / "incident.yaml"
    assert lab("diagnose", LOGS / "java-rolling-static", "--trace", trace, "-o", incident).status == 0
    answer = lab("compare", incident, "--as-seen", trace, "-s", "range", "--seeds", "3", "--format", "json")
    document = json.loads(answer.out)
    found = document["as_seen"]
    assert found["strategy"] == "range"
    assert found["seen"]["rounds"] == found["simulated"]["rounds"] == 0
    assert found["simulated"][STOPPED] == pytest.approx(found["seen"][STOPPED], rel=0.1)
    assert found["missed"] == []
    assert document["know"][0]["text"].startswith("range as seen: rounds 0 (")


def test_the_trace_of_another_group_is_refused(lab, tmp_path):
    trace, incident = tmp_path / "seen.jsonl", tmp_path / "incident.yaml"
    assert lab("diagnose", LOGS / "java-killed", "--trace", trace, "-o", incident).status == 0
    incident.write_text(incident.read_text().replace("c-", "other-").replace("payments", "orders"))
    answer = lab("compare", incident, "--as-seen", trace, "-s", "range")
    assert answer.status == 2
    expected = "that of orders, with other-0, other-1 and other-2"
    assert f"--as-seen: found the trace of payments, with c-0, c-1 and c-2, expected {expected}" in answer.err


def test_nothing_is_chosen_on_the_figures_of_a_model_that_misses(lab, tmp_path):
    trace, incident = tmp_path / "seen.jsonl", tmp_path / "incident.yaml"
    assert lab("diagnose", LOGS / "java-rolling-static", "--trace", trace, "-o", incident).status == 0
    text = incident.read_text()
    incident.write_text(text.replace("rolling_restart", "crash") if "rolling_restart" in text else text)
    slow = re.sub("batch_overhead: .*", "batch_overhead: 20s", incident.read_text())
    incident.write_text(slow + "\nname: other\n" if "name:" not in slow else slow)
    options = ("-s", "range", "-s", "sticky", "--seeds", "6", "--format", "json")
    (verdict,) = json.loads(lab("compare", incident, "--as-seen", trace, *options).out)["verdict"]
    assert verdict["text"].startswith("Nothing is chosen: the model misses the real group in ")


def test_a_trace_of_an_unknown_assignor_is_refused(lab, tmp_path):
    trace = tmp_path / "seen.jsonl"
    assert lab("diagnose", LOGS / "java-killed", "--trace", trace).status == 0
    trace.write_text(trace.read_text().replace('"strategy":"cooperative-sticky"', '"strategy":"theirs"'))
    answer = lab("compare", "bounce", "--as-seen", trace, "-s", "range")
    assert answer.status == 2
    assert "expected the trace of a group whose assignor is known" in answer.err
