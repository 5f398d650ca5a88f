"""`rebalance-lab simulate`: one run told round by round, its trace and its picture."""

import errno
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.cli import simulate as simulate_module
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.story import print_lines, story
from tests.places import ROOT, SCENARIOS
from tests.rebalance_lab.cli.commands import the_error
from tests.rebalance_lab.traces.traces import assigned, changed, generation, lost, revoked, state, trace_of

SCALE_OUT = SCENARIOS / "scale-out.yaml"


def test_a_run_is_told_round_by_round_with_causes_and_partitions(lab):
    answer = lab("simulate", SCALE_OUT, "-s", "range", "--rounds")
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "scale-out under range, seed 0"
    said = [" ".join(line.split()[1:]) for line in lines if line[:12].strip().startswith("0:")]
    assert [text.split(":")[0] for text in said] == [
        "generation 1 (range)",
        "join c3",
        "generation 2 (range)",
        "crash c2, the owner of clicks 2-3",
        "generation 3 (range)",
    ]
    told = [" ".join(line.split()).replace(" (leader)", "") for line in lines]
    assert "c1 assigned clicks 0-2" in told
    assert "c2 revoked clicks 4-5; got back clicks 3; assigned clicks 2" in told
    assert "because session of c2 expired" in told
    assert sum("(leader)" in line for line in lines) == 3
    assert lines[-1].startswith("ended Stable in generation 3 after 0:03:00.000, ")


def test_cooperative_sticky_is_the_strategy_when_none_is_given(lab, small):
    answer = lab("simulate", small, "--rounds")
    assert answer.out.startswith("small under cooperative-sticky, seed 4\n")
    assert "; kept orders " in answer.out


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


def test_a_group_that_runs_already_is_told_before_the_rounds(lab, tmp_path):
    path = tmp_path / "live.json"
    path.write_text(json.dumps(RUNNING))
    answer = lab("simulate", path, "-s", "sticky", "--rounds")
    assert answer.out.splitlines()[2:-2] == [
        " 0:00:00.000  generation 7 (sticky): Stable before the run began",
        "              c1 (leader)  owns t 0-2 4",
        "              c2           owns t 3 5",
        "              c10          nothing",
    ]
    assert answer.out.splitlines()[-1].startswith("ended Stable in generation 7 after 0:02:00.000, ")
    assert json.loads(lab("simulate", path, "-s", "sticky", "--format", "json").out) == []


def test_the_words_of_a_round(capfd):
    """By hand: given up in good order, lost, assigned and kept, runs of numbers, and a round without end."""
    print_lines(
        story(
            trace_of(
                (1_000, state("PreparingRebalance", cause="x[0] joined")),
                (1_500, generation(7, "a", "b", leader="b", protocol="sticky")),
                (2_000, state("Stable")),
                (2_000, revoked("a", {"t": [9], "u": [1]})),
                (2_000, lost("b", {"t": [3]})),
                (2_000, assigned("a", 7, {"t": [0, 1, 2, 4, 5, 7]}, added={"t": [7]})),
                (2_000, assigned("b", 7, {})),
                (3_661_001, changed("crash", "a")),
                (3_661_500, state("PreparingRebalance", cause="session of a expired")),
                (3_662_000, state("PreparingRebalance", cause="session of a expired")),
                topics={"t": 10, "u": 2},
                duration_ms=4_000_000,
                messages={"Heartbeat": 1_200, "JoinGroup": 34},
            )
        ),
        simulate_module.stdout(),
    )
    assert capfd.readouterr().out.splitlines() == [
        "by-hand under range, seed 1",
        "",
        " 0:00:01.000  generation 7 (sticky): Stable after 1 s",
        "              because x[0] joined",
        "              waited 0.5 s, while work went on, then 0.5 s for the assignment of the leader",
        "              a           revoked t 9, u 1; assigned t 7; kept t 0-2 4-5",
        "              b (leader)  lost t 3",
        " 1:01:01.001  crash a",
        " 1:01:01.500  a round (no assignor): never Stable",
        "              because session of a expired",
        "",
        "ended Stable in generation 1 after 1:06:40.000, 1,234 requests",
    ]


def test_json_is_the_rounds(lab):
    rounds = json.loads(lab("simulate", SCALE_OUT, "-s", "range", "--format", "json").out)
    assert [each["generation"] for each in rounds] == [1, 2, 3]
    assert rounds[1]["members"]["c3"] == {
        "revoked": {},
        "lost": {},
        "assigned": {"clicks": [4, 5]},
        "kept": {},
        "held": {},
        "notes": [],
    }
    assert set(rounds[0]) >= {
        "began_ms",
        "causes",
        "generation",
        "protocol",
        "leader",
        "stable_ms",
        "members",
        "report",
    }
    facts = {name: rounds[1][name] for name in ("aborted", "joined", "left", "moved")}
    assert facts == {"aborted": "", "joined": ["c3"], "left": {}, "moved": 3}
    assert list(rounds[1]["waited_for"].values()) == ["the last of 3 to join"]


def test_a_run_has_its_costliest_round_and_a_line_for_each(lab):
    answer = lab("simulate", SCALE_OUT, "-s", "range")
    assert answer == lab("simulate", SCALE_OUT, "-s", "range", "--brief")
    title, verdict, _, head, *lines, _, end = answer.out.splitlines()
    assert re.fullmatch(
        r"  Partitions stopped for [\d.]+ s in sum; most of it, [\d.]+ s, ended with generation 3: session of"
        r" c2 expired\.",
        verdict,
    )
    assert (title, answer.err) == ("scale-out under range, seed 0", "")
    assert " ".join(head.split()) == "began gen. took moved stopped in sum waited for because"
    assert [(line.split()[1], *line.split()[4:6]) for line in lines] == [
        ("1", "0", "0"),
        ("2", "3", "6"),
        ("3", "2", "6"),
    ]
    causes = [(r"\s+", "c1 joined"), (r"c[12]\s+", "c3 joined"), (r"c[13]\s+", "session of c2 expired")]
    for (names, cause), line in zip(causes, lines, strict=True):
        assert re.search(rf" s  {names}{cause}$", line)
    assert end.startswith("ended Stable in generation 3 after 0:03:00.000, ")


def test_brief_json_is_the_rounds_without_their_members(lab):
    whole = json.loads(lab("simulate", SCALE_OUT, "-s", "range", "--format", "json").out)
    brief = json.loads(lab("simulate", SCALE_OUT, "-s", "range", "--format", "json", "--brief").out)
    for entry in whole:
        del entry["members"], entry["report"]
    assert brief == whole


def test_messages_stand_in_the_story_and_beside_the_rounds_of_json(lab, small):
    text = lab("simulate", small, "--messages").out
    assert "a JoinGroup (the first join): MEMBER_ID_REQUIRED after " in text
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


def test_a_picture_has_a_lane_for_each_partition(lab, small, tmp_path):
    path = tmp_path / "run.svg"
    assert lab("simulate", small, "-s", "range", "--picture", path).status == 0
    root = ET.fromstring(path.read_text())
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "small under range"
    assert [text for text in texts if text.startswith("orders-")] == [f"orders-{n}" for n in range(4)]
    assert {"A a", "B b", "leave b", "nobody"} <= set(texts)


def test_the_picture_of_the_readme_is_as_the_command_draws_it(lab, tmp_path):
    path = tmp_path / "run.svg"
    lab("simulate", SCENARIOS / "scale-out.yaml", "-s", "cooperative-sticky", "--picture", path)
    assert path.read_text() == (ROOT / "notebooks" / "pictures" / "scale-out.svg").read_text()


def test_a_picture_has_so_many_lanes_and_no_more(lab, small, tmp_path, monkeypatch):
    monkeypatch.setattr(simulate_module, "MOST_LANES", 3)
    path = tmp_path / "run.svg"
    lab("simulate", small, "--picture", path)
    assert path.read_text().count('text-anchor="end">orders-') == 3


def test_the_seed_of_the_command_line_takes_the_place_of_the_scenarios(lab, small):
    assert lab("simulate", small, "--seed", "9").out.startswith("small under cooperative-sticky, seed 9\n")


def test_a_scenario_may_come_from_standard_input(lab, small):
    assert lab("simulate", "-", stdin=small.read_bytes()) == lab("simulate", small)


@pytest.mark.parametrize("option", ["--trace", "--picture"])
def test_what_is_written_replaces_what_was_there(lab, small, tmp_path, option):
    path = tmp_path / "result.svg"
    path.write_text("of an earlier run")
    assert lab("simulate", small, option, path).status == 0
    assert path.read_bytes()[:1] in (b"{", b"<")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result.svg", "small.yaml"]


@pytest.mark.parametrize("option", ["--trace", "--picture"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no/such/folder/result.svg", "No such file or directory"),
        ("folder.svg", "Is a directory"),
        ("small.yaml/result.svg", "Not a directory"),
        ("x" * 300 + ".svg", "File name too long"),
    ],
)
def test_what_cannot_be_written_is_one_error_and_leaves_nothing(
    lab, small, tmp_path, monkeypatch, option, name, why
):
    (tmp_path / "folder.svg").mkdir()
    monkeypatch.chdir(tmp_path)
    error = the_error(lab("simulate", small, option, name))
    assert error == f"{name}: found a path that cannot be written ({why}), expected a file"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["folder.svg", "small.yaml"]


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
    from rebalance_lab.verdicts.runs import Run

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


# --- what assignors say, and assignors that fail


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({}, ""),
        ({"method": "flow"}, "found by flow"),
        (
            {"method": "solver", "optimality_gap": 0.0123, "weights": "reported-rates", "bound": 4.0},
            "found by solver, gap 1.2 %, weights: reported-rates",
        ),
        ({"optimality_gap": 0.0}, "gap 0 %"),
        ({"weights": "nothing known yet"}, "weights: nothing known yet"),
        ({"optimality_gap": "small", "method": ["a", 1]}, "found by ['a', 1]"),
        ({"optimality_gap": None}, ""),
    ],
)
def test_a_round_says_what_its_assignor_said_in_a_line(capfd, report, said):
    """Whatever an author puts into it."""
    computed = ev.AssignmentComputed(
        client="a", generation=1, assignor="mine", members={}, payload_bytes=1, report=report
    )
    print_lines(
        story(
            trace_of(
                (1_000, state("PreparingRebalance", cause="a joined")),
                (1_000, generation(1, "a")),
                (1_020, computed),
                (1_050, state("Stable")),
                topics={"t": 1},
            )
        ),
        simulate_module.stdout(),
    )
    told = capfd.readouterr().out.splitlines()
    lines = ["              because a joined", *([f"{'':>14}{said}"] if said else []), ""]
    assert told[3 : 3 + len(lines)] == lines


def test_under_an_assignor_that_weighs_every_round_says_where_the_weights_are_from(lab):
    lines = lab("simulate", SCALE_OUT, "-s", "optimal", "--rounds").out.splitlines()
    said = [line.strip() for line in lines if "weights: " in line]
    assert said[0].endswith("gap 0 %, weights: nothing known yet")
    assert len(said) == 3
    assert all(line.endswith(", weights: reported-rates") for line in said[1:])


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


def test_modifiers_count_beside_the_timeout_that_every_run_has(lab, small):
    assert (
        "generation 1 (range-cooperative): "
        in lab("simulate", small, "-s", "range+cooperative", "--rounds").out
    )


def test_every_message_changes_no_result(lab, every_message):
    command = ("simulate", SCALE_OUT, "--format", "jsonl")
    assert lab(*command, "--every-message") == lab(*command)
    assert every_message == [True, False]
