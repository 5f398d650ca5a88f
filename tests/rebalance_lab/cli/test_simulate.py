"""`rebalance-lab simulate`: a run in words, as rounds, and as its trace."""

import errno
import json
import os
import shlex
from dataclasses import replace
from pathlib import Path

from rebalance_lab.cli import simulate as simulate_module
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.runs import Run
from tests.approved import approved
from tests.places import SCENARIOS
from tests.rebalance_lab.cli.commands import the_error

SCALE_OUT = SCENARIOS / "scale-out.yaml"
RUNNING = {
    "name": "live",
    "duration": "2m",
    "topics": {"t": {"partitions": 6, "rate": 60}},
    "members": [
        {"id": "c1", "topics": ["t"], "owned": {"t": [0, 1, 2, 4]}, "generation": 7},
        {"id": "c2", "topics": ["t"], "owned": {"t": [3, 5]}, "generation": 7},
        {"id": "c10", "topics": ["t"], "owned": {}, "generation": 7},
    ],
}
COMMANDS = (
    *(f"simulate scale-out.yaml -s range{more}" for more in ("", " --rounds", " --format json")),
    "simulate scale-out.yaml -s optimal --rounds",
    *(f"simulate small.yaml{more}" for more in (" --rounds", " --messages", " --seed 9")),
    "simulate small.yaml -s range+cooperative --rounds",
    *(f"simulate live.json -s sticky{more}" for more in (" --rounds", " --format json")),
)


def test_what_is_printed_was_approved(lab, small, tmp_path, monkeypatch):
    """Also of the default strategy, and of a group that runs already, which is told before the rounds."""
    (tmp_path / "scale-out.yaml").write_text(SCALE_OUT.read_text())
    (tmp_path / "live.json").write_text(json.dumps(RUNNING))
    monkeypatch.chdir(tmp_path)
    answers = {command: lab(*shlex.split(command)) for command in COMMANDS}
    assert {(answer.status, answer.err) for answer in answers.values()} == {(0, "")}
    approved("simulations", {command: answer.out.rstrip("\n") for command, answer in answers.items()})


def test_messages_stand_beside_the_rounds_of_json(lab, small):
    whole = json.loads(lab("simulate", small, "--messages", "--format", "json").out)
    assert whole["rounds"] == json.loads(lab("simulate", small, "--format", "json").out)
    first = next(each for each in whole["messages"] if each["request"] == "JoinGroup")
    assert (first["said"], first["error"]) == ("the first join", "MEMBER_ID_REQUIRED")
    assert first["answered_ms"] > first["sent_ms"]


def test_jsonl_is_the_trace_as_it_is_kept(lab, small, tmp_path):
    path = tmp_path / "trace.jsonl"
    answer = lab("simulate", small, "--format", "jsonl", "--trace", path)
    assert answer.out == path.read_text()
    trace = read_trace(path)
    assert trace.strategy == "cooperative-sticky"
    assert trace.encode() == path.read_bytes()
    assert len(trace.events) == len(answer.out.splitlines())


def test_a_scenario_may_come_from_standard_input(lab, small):
    assert lab("simulate", "-", stdin=small.read_bytes()) == lab("simulate", small)


def test_a_disk_that_is_full_leaves_what_was_there(lab, small, tmp_path, monkeypatch):
    path = tmp_path / "result"
    path.write_text("of an earlier run")

    def full(self, data):
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "(No space left on device)" in the_error(lab("simulate", small, "--trace", path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result", "small.yaml"]
    assert path.read_text() == "of an earlier run"


def test_a_run_that_fails_is_one_error_and_status_1(lab, small, monkeypatch, tmp_path):
    monkeypatch.setattr(simulate_module, "run_one", lambda *_, **__: Run("range", error="it broke"))
    answer = lab("simulate", small, "-s", "range", "--trace", tmp_path / "t")
    assert answer == (1, "", "error: strategy 'range': it broke\n")
    assert not (tmp_path / "t").exists()


def test_a_group_that_does_not_work_at_the_end_is_an_error_after_the_story_and_status_1(
    lab, small, monkeypatch
):
    story = lab("simulate", small, "-s", "range").out
    run_one = simulate_module.run_one

    def with_finding(*args, **options):
        return replace(run_one(*args, **options), findings=("partition orders-1 has no owner",))

    monkeypatch.setattr(simulate_module, "run_one", with_finding)
    answer = lab("simulate", small, "-s", "range")
    assert answer == (1, story, "error: strategy 'range': partition orders-1 has no owner\n")


def test_an_assignor_that_hangs_is_one_error_and_status_1(lab, small, tmp_path):
    path = tmp_path / "stuck.py"
    path.write_text("import threading\n\ndef stuck(cluster, group):\n    threading.Event().wait()\n")
    answer = lab("simulate", small, "-s", f"{path}:stuck", "--timeout", "0.05", "--trace", tmp_path / "t")
    assert (answer.status, answer.out) == (1, "")
    (line,) = answer.err.splitlines()
    assert line.startswith(
        f"error: strategy '{path}:stuck': assignor 'stuck' on group 'small' in generation 1 "
    )
    assert line.endswith(": no answer within 0.05 s")
    assert not (tmp_path / "t").exists()


def test_every_message_changes_no_result(lab, every_message):
    command = ("simulate", SCALE_OUT, "--format", "jsonl")
    assert lab(*command, "--every-message") == lab(*command)
    assert every_message == [True, False]
