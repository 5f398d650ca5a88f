"""The command: what was done to real Java clients is the cause that it names; wrong input is one sentence."""

import gzip
import json

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab import measure
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.trace import read_trace
from rebalance_logs import diagnose
from tests.approved import approved
from tests.places import DATA

LOGS = DATA / "logs"

DONE = {
    "java-killed": ("session-expired", ["c-1"], [2]),
    "java-leave-join": ("member-left", ["c-1"], [2]),
    "java-poll-exceeded": ("poll-interval-exceeded", ["c-1"], [2, 3, 4, 5]),
    "java-rolling-static": ("rolling-restart", ["c-0", "c-1", "c-2"], []),
}


@pytest.fixture
def document(lab):
    def of(*arguments):
        answer = lab("diagnose", *arguments, "--format", "json")
        assert answer.status == 0, answer.err
        return json.loads(answer.out)

    return of


@pytest.mark.parametrize("name", DONE)
def test_the_first_cause_is_what_was_done_to_the_clients(name, document):
    found = document(LOGS / name)
    (group,) = found["groups"]
    cause, members, generations = DONE[name]
    first = group["causes"][0]
    assert (group["group"], group["protocol"]) == ("payments", "classic")
    assert (first["cause"], first["members"], first["generations"]) == (cause, members, generations)
    assert first["confidence"] == "high"
    assert 0 < len(first["evidence"]) <= 3
    assert first["stopped_partition_seconds"] > 1
    assert {file["format"] for file in found["files"]} == {"java consumer", None}


def test_the_answer_in_words_is_as_approved(lab):
    """The causes first, with their lines, what helps and what is not shown, then the rounds and the files."""
    folders = sorted(path for path in LOGS.iterdir() if path.is_dir())
    answers = {path.name: lab("diagnose", *sorted(path.glob("*.log"))).out for path in folders}
    approved("diagnoses", answers)


def test_a_killed_member_costs_what_its_partitions_missed(document):
    """It was killed at 21:23:31.186, and its four partitions had new owners at 37.712 and 37.990."""
    (first, *_) = document(LOGS / "java-killed")["groups"][0]["causes"]
    assert first["stopped_partition_seconds"] == pytest.approx(26.7, rel=0.1)


def test_a_member_that_exceeds_its_poll_interval_costs_its_partitions_from_then_on(document):
    (first, *_) = document(LOGS / "java-poll-exceeded")["groups"][0]["causes"]
    assert first["stopped_partition_seconds"] == pytest.approx(9.37, rel=0.01)


def test_one_page_has_the_answer_and_a_picture(lab):
    page = lab("diagnose", LOGS / "java-killed", "--format", "html").out
    assert "<svg" in page
    assert "session-expired: c-1" in page
    assert "lag up to" not in page  # logs do not show it
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_a_trace_and_a_scenario_are_written_and_can_be_used(tmp_path, lab):
    trace, incident = tmp_path / "t.jsonl", tmp_path / "incident.yaml"
    answer = lab("diagnose", LOGS / "java-killed", "--trace", trace, "-o", incident)
    assert answer.status == 0
    assert read_trace(trace).scenario == "payments"
    scenario = load_scenario(incident)
    assert len(scenario.events) == 1
    assert simulate(scenario, "cooperative-sticky", default_registry()).ended.generation >= 2
    assert "# These are guesses:" in incident.read_text()


def test_the_figures_of_a_trace_are_those_of_the_time_that_is_told(tmp_path, lab):
    logs, trace, seen = LOGS / "java-poll-exceeded", tmp_path / "t.jsonl", {}
    part = ("--from", "21:24:20", "--to", "2026-11-23T21:24:30")
    for times in ((), part):
        lab("diagnose", logs, *times, "--trace", trace)
        seen[times] = measure(read_trace(trace), default_registry())
    (found,) = json.loads(lab("diagnose", logs, *part, "--format", "json").out)["groups"]
    assert seen[part]["rounds"] == 2 < seen[()]["rounds"]
    stopped = sum(cause["stopped_partition_seconds"] for cause in found["causes"])
    assert seen[part]["stopped_partition_seconds"] == pytest.approx(stopped, abs=0.01)


def test_a_shift_that_is_given_is_that_of_the_file(document):
    files = document(LOGS / "java-killed", "--shift", "c-1.log=-2s")["files"]
    assert [file["shift_ms"] for file in files if file["path"].endswith("c-1.log")] == [-2_000]


def test_only_what_lies_between_two_times_is_read(document):
    found = document(LOGS / "java-poll-exceeded", "--from", "21:24:20", "--to", "2026-11-23T21:24:30")
    assert [r["generation"] for r in found["groups"][0]["rounds"]] == [4, 5]


def test_nothing_found_is_an_answer(tmp_path, lab):
    (tmp_path / "x.log").write_text("nothing of interest\n" * 3)
    answer = lab("diagnose", tmp_path)
    assert answer.status == 1
    assert "No line of these logs is about a group" in answer.out
    assert "nothing about a group in 3 lines of " in " ".join(answer.out.split())


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["nowhere"], "nowhere: found no such file or folder"),
        (
            [LOGS / "java-killed", "--group", "other"],
            "--group: found 'other', expected a group of these logs: payments",
        ),
        ([LOGS / "java-killed", "--timezone", "Mars"], "--timezone: found 'Mars'"),
        ([LOGS / "java-killed", "--timezone", "+99:00"], "--timezone: found '+99:00'"),
        ([LOGS / "java-killed", "--from", "noon"], "--from: found 'noon'"),
        ([LOGS / "java-killed", "--from", "21:30", "--to", "21:20"], "--from, --to: found 21:30 and 21:20"),
        (
            [LOGS / "java-killed", "--from", "2027-01-01T00:00"],
            "--from, --to: found 2027-01-01T00:00 to, expected a part of the time of these logs:"
            " 2026-11-23T21:23:17 to 2026-11-23T21:23:37",
        ),
        ([LOGS / "java-killed", "--shift", "x=2s"], "--shift: found 'x=2s'"),
    ],
)
def test_wrong_use_is_one_error(arguments, found, lab):
    answer = lab("diagnose", *arguments)
    assert (answer.status, answer.out) == (2, "")
    (line,) = answer.err.splitlines()
    assert line.startswith(f"error: {found}")


def test_a_program_gets_the_same_answer():
    (found,) = diagnose(LOGS / "java-killed")
    assert (str(found.causes[0].cause), found.causes[0].members) == ("session-expired", ["c-1"])
    assert found.trace.scenario == "payments"


def test_the_lines_that_show_the_causes_are_notes_at_their_times_in_the_trace(tmp_path):
    packed = tmp_path / "c-2.log.gz"
    packed.write_bytes(gzip.compress((LOGS / "java-killed" / "c-2.log").read_bytes()))
    (found,) = diagnose(LOGS / "java-killed" / "c-0.log", packed)
    (at_ms, note), *_ = (each for each in found.notes() if "c-2.log.gz" in each[1])
    assert note.startswith(
        "c-2.log.gz:127 INFO [Consumer clientId=c-2, groupId=payments] Request joining group"
    )
    (round_ms,) = [
        event.at_ms
        for event in found.trace.events
        if getattr(event.event, "after", "") == "PreparingRebalance" and event.event.generation == 2
    ]
    assert 0 <= at_ms - round_ms < 2_000
    assert not any("Subscribed" in text for _, text in found.notes())  # of the start, which costs nothing
