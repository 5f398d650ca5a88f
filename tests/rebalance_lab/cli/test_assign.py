"""`rebalance-lab assign`: groups in JSON Lines in, the same lines with their assignments out."""

import gzip
import json
import subprocess

import pytest

from rebalance_lab.cli import assign as assign_module
from tests.places import placeless
from tests.rebalance_lab.cli.commands import COMMAND, environment, in_a_process, the_error

NAMES = "average, average-by-circle, cooperative-sticky, lag-aware, optimal, range, range-848, "
NAMES += "rendezvous, roundrobin, sticky, sticky-balanced, uniform-848"
ALIASES = {"eager", "incremental", "rocketmq", "watcher"}
WITH_ALIASES = ", ".join(sorted({*NAMES.split(", "), *ALIASES}))


def group(**more):
    return {
        "topics": {"t": {"partitions": 3}, "u": {"partitions": 1}},
        "members": [{"id": "C1", "topics": ["t"]}, {"id": "C0", "topics": ["t", "u"]}],
        **more,
    }


RANGE = {"C1": [["t", 2]], "C0": [["t", 0], ["t", 1], ["u", 0]]}


def lines(*documents):
    return b"".join(json.dumps(each).encode() + b"\n" for each in documents)


def documents(answer):
    return [json.loads(line) for line in answer.out.splitlines()]


# --- lines that are groups


def test_a_line_comes_back_with_its_assignment_and_all_it_had(lab):
    """Fields that are not the contract's stay, in their places; members are in the line's order."""
    line = group(name="é \U0001f600", assignor="range", expected=None, chain=[1, 2.5, {"x": []}], big=2**70)
    answer = lab("assign", stdin=lines(line))
    assert (answer.status, answer.err) == (0, "")
    (given,) = documents(answer)
    assert given == line | {"assignment": RANGE}
    assert list(given) == [*line, "assignment"]
    assert list(given["assignment"]) == ["C1", "C0"]


@pytest.mark.parametrize("option", ["-a", "-s", "--assignor"])
def test_lines_keep_their_order(lab, option):
    answer = lab("assign", option, "range", stdin=lines(*(group(name=n) for n in range(20))))
    assert [each["name"] for each in documents(answer)] == list(range(20))


def test_each_line_has_its_own_assignor(lab):
    answer = lab("assign", stdin=lines(group(assignor="range"), group(assignor="roundrobin")))
    first, second = (each["assignment"] for each in documents(answer))
    assert first == RANGE
    assert second == {"C1": [["t", 1]], "C0": [["t", 0], ["t", 2], ["u", 0]]}


def test_the_assignor_of_the_command_line_wins_over_the_lines(lab):
    """Even over one that there is not; the line's own word is left as it was."""
    answer = lab(
        "assign", "--assignor", "range", stdin=lines(group(assignor="roundrobin"), group(assignor="?"))
    )
    assert answer.status == 0
    assert [(each["assignor"], each["assignment"]) for each in documents(answer)] == [
        ("roundrobin", RANGE),
        ("?", RANGE),
    ]


def test_what_a_line_said_of_an_assignment_or_an_error_is_replaced(lab):
    line = group(assignor="range", assignment={"C9": []}, error="of an earlier run")
    (given,) = documents(lab("assign", stdin=lines(line)))
    assert given["assignment"] == RANGE
    assert "error" not in given


def test_what_is_owned_stays_under_sticky(lab):
    line = group(
        members=[
            {"id": "a", "topics": ["t"], "owned": [["t", 2]], "generation": 3},
            {"id": "b", "topics": ["t"], "owned": [["t", 0]], "generation": 3},
        ]
    )
    (given,) = documents(lab("assign", "-a", "sticky", stdin=lines(line)))
    assert ["t", 2] in given["assignment"]["a"]
    assert ["t", 0] in given["assignment"]["b"]


def test_a_group_of_nobody_and_a_topic_of_nothing_are_groups(lab):
    nobody, nothing = group(members=[]), group(topics={})
    answer = lab("assign", "-a", "range", stdin=lines(nobody, nothing))
    assert [each["assignment"] for each in documents(answer)] == [{}, {"C1": [], "C0": []}]


# --- where they come from


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read_as_standard_input_is(lab, tmp_path, packed):
    data = lines(group(assignor="range"))
    path = tmp_path / ("groups.jsonl.gz" if packed else "groups.jsonl")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert lab("assign", path) == lab("assign", "-", stdin=data) == lab("assign", stdin=data)
    assert documents(lab("assign", path)) == [group(assignor="range", assignment=RANGE)]


def test_the_last_line_needs_no_end(lab):
    answer = lab("assign", "-a", "range", stdin=lines(group(), group()).rstrip())
    assert len(documents(answer)) == 2
    assert answer.out.endswith("}\n")


# --- lines that are not


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"topics": ', "line 2: found what is not JSON (Input data was truncated)"),
        (b"\xff\xfe", "line 2: found what is not JSON"),
        (b"[" * 100_000, "line 2: found what is not JSON"),
        (b"NaN", "line 2: found what is not JSON"),
        (b"[1, 2]", "line 2: found a list of 2, expected a group as a JSON object"),
        (b"null", "line 2: found nothing, expected a group as a JSON object"),
        (b'"x"', "line 2: found 'x', expected a group as a JSON object"),
        (b"{}", "line 2: topics: found nothing"),
        (
            lines({"topics": {"t": {"partitions": -1}}, "members": []}),
            "line 2: topics.t.partitions: found -1",
        ),
        (
            lines({"topics": {"t": {"partitions": 2**31 - 1}}, "members": []}),
            "line 2: topics: found 2,147,483,647",
        ),
        (lines(group(assignor="nope")), f"found 'nope', expected one of {WITH_ALIASES}"),
        (lines(group()), f"line 2: assignor: found nothing, expected one of {NAMES}, here or as --assignor"),
    ],
)
def test_a_line_that_fails_says_why_and_the_others_go_on(lab, line, error):
    good = group(assignor="range")
    answer = lab("assign", stdin=lines(good) + line.rstrip() + b"\n" + lines(good))
    assert answer.status == 1
    assert answer.err == 'error: 1 of 3 lines failed; see their "error"\n'
    first, failed, last = documents(answer)
    assert first == last == good | {"assignment": RANGE}
    assert error in failed["error"]
    assert "assignment" not in failed


def test_a_group_that_fails_keeps_what_it_had(lab):
    (failed,) = documents(lab("assign", stdin=lines(group(name="x", assignor="nope", assignment={}))))
    assert failed.pop("error")
    assert failed == group(name="x", assignor="nope")


def test_blank_lines_are_left_out_and_counted(lab):
    answer = lab("assign", "-a", "range", stdin=b"\n  \n" + lines(group()) + b"\r\n" + b"{\n\n")
    good, failed = documents(answer)
    assert good["assignment"] == RANGE
    assert failed["error"].startswith("line 5: ")
    assert "1 of 2 lines failed" in answer.err


def test_a_line_may_be_as_long_as_the_limit_and_no_longer(lab, monkeypatch):
    line = lines(group(assignor="range"))
    monkeypatch.setattr(assign_module, "LONGEST_LINE", len(line))
    monkeypatch.setattr(assign_module, "_CHUNK", 16)
    longer = line.rstrip() + b" " * 50 + b"\n"
    answer = lab("assign", stdin=line + longer + line + longer.rstrip(b"\n"))
    assert answer.status == 1
    first, second, third, last = documents(answer)
    assert first["assignment"] == third["assignment"] == RANGE
    limit = f"expected at most {len(line):,} bytes"
    assert second == {"error": f"line 2: found a line of {len(longer):,} bytes, {limit}"}
    assert last == {"error": f"line 4: found a line of {len(longer) - 1:,} bytes, {limit}"}


def test_a_last_line_without_an_end_may_be_as_long_as_the_limit(lab, monkeypatch):
    line = lines(group(assignor="range")).rstrip()
    monkeypatch.setattr(assign_module, "LONGEST_LINE", len(line))
    assert lab("assign", stdin=line).status == 0


@pytest.mark.slow
def test_a_line_of_a_hundred_megabytes_fails_and_the_others_go_on():
    """It goes through a pipe piece by piece; neither side ever has all of it."""
    good, piece, pieces = lines(group(assignor="range")), b'{"x": "' + b"y" * (2**20 - 7), 100
    with subprocess.Popen(
        [*COMMAND, "assign"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        process.stdin.write(good)
        for _ in range(pieces):
            process.stdin.write(piece)
        out, err = process.communicate(b"\n" + good)
    first, failed, last = [json.loads(line) for line in out.splitlines()]
    assert first["assignment"] == last["assignment"] == RANGE
    size = pieces * 2**20 + 1
    assert failed == {"error": f"line 2: found a line of {size:,} bytes, expected at most 67,108,864 bytes"}
    assert err.decode() == 'error: 1 of 3 lines failed; see their "error"\n'
    assert process.returncode == 1


# --- wrong use


def test_an_unknown_assignor_is_wrong_use_and_says_what_there_is(lab):
    error = the_error(lab("assign", "--assignor", "rnage", stdin=lines(group())))
    assert error == "assignor: found 'rnage', expected one of 16 names (did you mean 'range'?)"


def not_packed():
    return lines(group())


def cut_short():
    return gzip.compress(lines(group()))[:40]


def damaged():
    data = bytearray(gzip.compress(lines(*(group(name=n) for n in range(500)))))
    data[30] ^= 0xFF
    data[40] ^= 0xFF
    return bytes(data)


def test_the_lines_before_a_part_that_cannot_be_unpacked_are_assigned(lab, tmp_path):
    path = tmp_path / "groups.jsonl.gz"
    path.write_bytes(gzip.compress(lines(group(name=1), group(name=2))) + gzip.compress(lines(group()))[:20])
    answer = lab("assign", "-a", "range", path)
    assert answer.status == 2
    assert [document["assignment"] for document in documents(answer)] == [RANGE, RANGE]
    assert "found what cannot be read after line 2 (" in answer.err


def test_lines_in_several_batches_keep_their_order(lab, monkeypatch):
    monkeypatch.setattr(assign_module, "_BATCH", 2)
    groups = [group(name=str(n)) for n in range(5)]
    groups[3].pop("topics")
    given = documents(lab("assign", "-a", "range", stdin=lines(*groups)))
    assert [document["name"] for document in given] == ["0", "1", "2", "3", "4"]
    assert [document.get("assignment") for document in given] == [RANGE, RANGE, RANGE, None, RANGE]
    assert given[3]["error"].startswith("line 4: topics: found nothing")


@pytest.mark.parametrize("packed", [not_packed, cut_short, damaged])
def test_a_packed_file_that_cannot_be_unpacked_is_wrong_use(lab, tmp_path, packed):
    path = tmp_path / "groups.jsonl.gz"
    path.write_bytes(packed())
    error = the_error(lab("assign", path))
    assert error.startswith(f"{path}: found what cannot be read after line 0 (")


def test_the_command_reads_standard_input_in_a_shell():
    done = in_a_process("assign", "-a", "range", stdin=lines(group()))
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["assignment"] == RANGE


# --- what an assignor says of its answer


def test_a_report_comes_beside_the_assignment(lab):
    (given,) = documents(lab("assign", "-a", "optimal", stdin=lines(group())))
    assert list(given)[-2:] == ["assignment", "report"]
    assert given["report"]["method"] == "flow"
    assert given["report"]["optimality_gap"] == 0.0


def test_weights_of_a_line_count_and_nobody_else_is_asked(lab):
    """Two heavy ones apart, where two and two would be as well balanced by number."""
    topics = {"t": {"partitions": 4, "weights": [9, 9, 1, 1]}}
    members = [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}]
    (given,) = documents(lab("assign", "-a", "optimal", stdin=lines({"topics": topics, "members": members})))
    heavy = [{p for _, p in owned} & {0, 1} for owned in given["assignment"].values()]
    assert sorted(map(len, heavy)) == [1, 1]
    assert "weights" not in given["report"]


def test_an_assignor_that_says_nothing_has_no_report_even_where_the_line_had_one(lab):
    (given,) = documents(lab("assign", "-a", "range", stdin=lines(group(report={"method": "guessed"}))))
    assert given == group(assignment=RANGE)


# --- assignors that fail

AUTHORS = """
import os
import sys
import threading

NEVER = threading.Event()


def right(cluster, group):
    return {}


def only_small(cluster, group):
    # It does with two members, and goes wrong in several ways with three.
    if len(group) <= 2:
        return {}
    wrong = sorted(group)[2]
    if wrong == "exits":
        sys.exit(3)
    if wrong == "leaves":
        os._exit(4)
    if wrong == "hangs":
        NEVER.wait()
    if wrong == "raises":
        raise KeyError("oops")
    return {"raises": 5, "nobody": []}


class Reporting:
    def assign(self, cluster, group):
        from coordinator_core.model import GroupAssignment

        assignment = GroupAssignment({})
        assignment.report = {"x": object()}
        return assignment
"""


@pytest.fixture
def authors(tmp_path):
    path = tmp_path / "authors.py"
    path.write_text(AUTHORS)
    return path


def group_with(third, **more):
    members = [{"id": m, "topics": ["t"]} for m in ("a", "b", third)]
    return group(members=members, **more)


@pytest.mark.parametrize(
    ("third", "error"),
    [
        ("raises", "raised KeyError: 'oops'"),
        ("exits", "raised SystemExit: 3"),
        ("leaves", "raised SystemExit: 4"),
        ("hangs", "no answer within 1 s"),
        ("makes-it-up", "there is no member 'raises'; there is no member 'nobody'"),
    ],
)
def test_a_group_on_which_the_assignor_fails_is_named_and_the_other_lines_go_on(lab, authors, third, error):
    named, unnamed = group_with(third, name="big one"), group_with(third)
    options = ["-a", f"{authors}:only_small", "--timeout", "1"]
    answer = lab("assign", *options, stdin=lines(group(), named, unnamed, group()))
    assert answer.status == 1
    assert answer.err == 'error: 2 of 4 lines failed; see their "error"\n'
    first, second, third_line, last = documents(answer)
    assert first == last == group(assignment={"C1": [], "C0": []})
    told = placeless if error.startswith("raised") else str
    assert told(second.pop("error")) == f"assignor 'only-small' on line 2 (big one): {error}"
    assert told(third_line.pop("error")) == f"assignor 'only-small' on line 3: {error}"
    assert (second, third_line) == (named, unnamed)


def test_a_report_that_cannot_be_written_down_fails_its_line_and_not_the_command(lab, authors):
    answer = lab("assign", stdin=lines(group(assignor=f"{authors}:Reporting"), group(assignor="range")))
    failed, good = documents(answer)
    assert "'reporting' on line 1: returned a report that is not plain values" in failed["error"]
    assert good["assignment"] == RANGE


def test_an_assignor_of_a_line_may_be_a_file(lab, authors):
    right, missing = documents(
        lab("assign", stdin=lines(group(assignor=f"{authors}:right"), group(assignor=f"{authors}:rihgt")))
    )
    assert right["assignment"] == {"C1": [], "C0": []}
    assert missing["error"].startswith(f"line 2: {authors}:rihgt: found no rihgt in it, expected one of ")


def test_a_timeout_of_nothing_waits_for_ever(lab):
    (given,) = documents(lab("assign", "-a", "range", "--timeout", "0", stdin=lines(group())))
    assert given == group(assignment=RANGE)


# --- protocols


@pytest.mark.parametrize(
    ("text", "assignor"),
    [
        ("watcher", "range"),
        ("watcher+owners=off", "range"),
        ("roundrobin+server-side", "roundrobin"),
        ("rocketmq", "average"),
        ("cooperative-sticky+delay=60s", "cooperative-sticky"),
    ],
)
def test_of_a_strategy_with_another_protocol_the_assignor_is_used(lab, text, assignor):
    """The group begins without owners, so that no partition waits for a delay."""
    answer = lab("assign", "-a", text, stdin=lines(group()))
    assert (answer.status, answer.err) == (0, "")
    (given,) = documents(answer)
    (plain,) = documents(lab("assign", "-a", assignor, stdin=lines(group())))
    found, expected = (
        {member: sorted(pairs) for member, pairs in each["assignment"].items()} for each in (given, plain)
    )
    assert found == expected


@pytest.mark.parametrize("weight", [9e99, 1e100, 1e300])
def test_weights_whose_squares_may_not_be_finite_are_refused(lab, tmp_path, weight):
    path = tmp_path / "groups.jsonl"
    members = [{"id": name, "topics": ["t"]} for name in "ab"]
    topics = {"t": {"partitions": 2, "weights": [weight, weight]}}
    path.write_text(json.dumps({"name": "g", "topics": topics, "members": members}))
    line = json.loads(lab("assign", path, "--assignor", "optimal").out)
    if weight < 1e100:
        assert line["assignment"] == {"a": [["t", 0]], "b": [["t", 1]]}
    else:
        found = f"line 1: topics.t.weights[0]: found {weight}"
        assert line["error"] == f"{found}, expected a number not negative and below 1e+100"
