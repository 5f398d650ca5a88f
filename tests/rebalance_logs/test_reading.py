"""Lines as people have them, and files that are no logs."""

import gzip
import io
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from coordinator_core.errors import InputError
from rebalance_logs.facts import Kind
from rebalance_logs.reading import BLOCK, facts_of, read_logs
from tests.places import DATA
from tests.rebalance_logs.test_round_trip import causes_of, diagnosis

AT_MS = round(datetime(2026, 1, 31, 12, 34, 56, 789_000, UTC).timestamp() * 1_000)
MESSAGE = "[GroupCoordinator 3]: Stabilized group pay generation 4 (__consumer_offsets-12) with 3 members"
LOGGER = "(kafka.coordinator.group.GroupCoordinator)"
LINES = {
    "log4j": f"[2026-01-31 12:34:56,789] INFO {MESSAGE} {LOGGER}",
    "with a thread": f"2026-01-31 12:34:56,789 INFO {MESSAGE} {LOGGER} [exec-1]",
    "docker": f"2026-01-31T12:34:57.1Z [2026-01-31 12:34:56,789] INFO {MESSAGE}",
    "kubectl": f"pod/kafka-0 2026-01-31T12:34:57.123456Z stdout F [2026-01-31 12:34:56,789] INFO {MESSAGE}",
    "journald": f"Jan 31 12:34:57 host kafka[812]: [2026-01-31 12:34:56,789] INFO {MESSAGE}",
    "json": f'{{"@timestamp":"2026-01-31T12:34:56.789Z","level":"INFO","message":"{MESSAGE}"}}',
    "docker json": f'{{"log":"[2026-01-31 12:34:56,789] INFO {MESSAGE}\\n","time":"2026-01-31T12:34:57Z"}}',
    "json of a pod": f'kafka-0 {{"ts":1769862896.789,"msg":"{MESSAGE}"}}',
    "csv": f'"2026-01-31T12:34:56.789Z","kafka-0","{MESSAGE}"',
    "epoch": f"1769862896.789 {MESSAGE}",
    "epoch in milliseconds": f"1769862896789 {MESSAGE}",
    "with a zone": f"2026-01-31T14:34:56.789+02:00 {MESSAGE}",
    "with a zone in the west": f"2026-01-31T07:04:56.789-05:30 {MESSAGE}",
    "windows": f"[2026-01-31 12:34:56,789] INFO {MESSAGE}\r",
}


def only(path):
    (fact,) = read_logs([str(path)]).facts
    return fact


@pytest.mark.parametrize("wrapped", LINES.values(), ids=LINES)
def test_the_message_and_its_own_time_are_found_in_any_wrapping(wrapped, tmp_path):
    (tmp_path / "x.log").write_text(f"{wrapped}\n")
    fact = only(tmp_path)
    assert (fact.kind, fact.group, fact.generation) == (Kind.GENERATION, "pay", 4)
    assert fact.at_ms == AT_MS


@pytest.mark.parametrize(("part", "ms"), [("", 0), (".5", 500), (".05", 50), (".0051", 5)])
def test_a_fraction_of_a_second_has_any_number_of_digits(part, ms):
    (fact,) = facts_of([f"2026-01-31T12:34:56{part}Z {MESSAGE}"])
    assert fact.at_ms % 1_000 == ms


def test_a_time_without_a_year_is_of_this_year():
    (fact,) = facts_of([f"Nov  3 12:34:57 host kafka[812]: {MESSAGE}"])
    at = datetime.fromtimestamp(fact.at_ms / 1_000, UTC)
    assert (at.year, at.month, at.day, at.hour) == (datetime.now(UTC).year, 11, 3, 12)


def test_times_without_a_zone_are_in_the_given_one(tmp_path):
    (tmp_path / "x.log").write_text(LINES["log4j"])
    zone = timezone(timedelta(hours=2))
    assert read_logs([str(tmp_path)], zone=zone).facts[0].at_ms == AT_MS - 2 * 3_600_000


def test_lines_are_numbered_across_blocks(tmp_path):
    filler = "[2026-01-31 12:34:56,000] INFO nothing of interest here\n"
    count = BLOCK // len(filler) + 10
    (tmp_path / "x.log").write_text(f"{filler * count}{LINES['log4j']}\n")
    logs = read_logs([str(tmp_path)])
    assert logs.facts[0].source.line == count + 1
    assert logs.files[0].lines == count + 1


def test_compressed_files_and_standard_input_are_read(tmp_path, monkeypatch):
    (tmp_path / "x.log.gz").write_bytes(gzip.compress(LINES["log4j"].encode()))
    assert only(tmp_path).at_ms == AT_MS

    class Input:
        buffer = io.BufferedReader(io.BytesIO(LINES["log4j"].encode()))

    monkeypatch.setattr("sys.stdin", Input)
    assert only("-").at_ms == AT_MS


def test_settings_follow_the_line_that_announces_them(tmp_path):
    (tmp_path / "x.log").write_text(
        "[2026-01-31 12:34:56,789] INFO ConsumerConfig values: \n\tclient.id = c-1\n\tgroup.id = pay\n"
        "\tgroup.instance.id = null\n\tclient.rack = \n\tsession.timeout.ms = 6000\n (org.apache.kafka)\n"
    )
    fact = only(tmp_path)
    assert (fact.kind, fact.client, fact.instance_id) == (Kind.SETTINGS, "c-1", "")
    assert fact.settings["session.timeout.ms"] == "6000"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (bytes(range(256)) * 50, "a binary file"),
        (b"\x1f\x8b garbage that is not gzip", "cannot be read"),
        (b"", ""),
        (b"one line of garbage \xff\xfe without any end", ""),
    ],
)
def test_what_is_no_log_is_listed_with_its_problem(content, problem, tmp_path):
    (tmp_path / "x").write_bytes(content)
    logs = read_logs([str(tmp_path)])
    assert logs.facts == []
    assert logs.files[0].problem.startswith(problem)


def test_logs_in_utf_16_are_read(tmp_path):
    (tmp_path / "x.log").write_bytes(f"{LINES['log4j']}\n".encode("utf-16"))
    assert only(tmp_path).at_ms == AT_MS


def test_paths_without_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="a folder without files"):
        read_logs([str(tmp_path)])
    with pytest.raises(InputError, match="no such file or folder"):
        read_logs([str(tmp_path / "none")])


def merged(folder, wrapped):
    """The lines of several processes in one file, in order of time, each in its wrapping."""
    lines = [
        (line[:23], wrapped(path.stem.replace("b", ""), line))
        for path in sorted((DATA / "logs" / "kafka-python-comeback").glob("*.log"))
        for line in path.read_text().splitlines()
    ]
    (folder / "all.log").write_text("".join(f"{text}\n" for _, text in sorted(lines, key=lambda x: x[0])))
    return diagnosis(folder)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda name, line: f"[pod/{name}/app] {line}",
        lambda name, line: f"{name}  | {line}",
        lambda name, line: f"{name} app {line}",
        lambda name, line: json.dumps({"message": line, "pod": name}),
        lambda name, line: json.dumps({"log": line, "kubernetes": {"pod_name": name, "host": "node-7"}}),
    ],
    ids=["kubectl", "compose", "stern", "JSON", "fluentd"],
)
def test_processes_in_one_file_are_told_apart_by_their_wrapping(wrapped, tmp_path):
    apart, together = diagnosis(DATA / "logs" / "kafka-python-comeback"), merged(tmp_path, wrapped)
    assert set(together.group.members) == {"c-0", "c-1", "c-2", "c-3"}
    assert causes_of(together) == causes_of(apart)
    assert together.stopped_ms == pytest.approx(apart.stopped_ms, rel=0.02)
