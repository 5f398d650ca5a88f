"""`rebalance-lab assign`: groups in JSON Lines in, the same lines with their assignments out."""

import gzip
import json

import pytest

from rebalance_lab.cli import assign as assign_module
from tests.approved import approved
from tests.places import placeless
from tests.rebalance_lab.cli.commands import in_a_process, the_error


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


# --- lines

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


def pair(assignor, **topic):
    return {
        "assignor": assignor,
        "topics": {"t": topic},
        "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}],
    }


OWNED = [
    {"id": name, "topics": ["t"], "owned": [["t", number]], "generation": 3}
    for name, number in (("a", 2), ("b", 0))
]
OTHERS = (
    "watcher",
    "watcher+owners=off",
    "roundrobin+server-side",
    "rocketmq",
    "cooperative-sticky+delay=60s",
)
LINES = {
    "what is not of the contract stays in its place": group(
        name="\u00e9 \U0001f600", assignor="range", expected=None, chain=[1, 2.5, {"x": []}], big=2**70
    ),
    "roundrobin": group(assignor="roundrobin"),
    "what an earlier run said is replaced": group(
        assignor="range", assignment={"C9": []}, error="of an earlier run", report={"method": "guessed"}
    ),
    "what is owned stays": group(assignor="sticky", members=OWNED),
    "nobody": group(assignor="range", members=[]),
    "nothing": group(assignor="range", topics={}),
    "a report stands beside the assignment": group(assignor="optimal"),
    "weights of the line count": pair("optimal", partitions=4, weights=[9, 9, 1, 1]),
    "weights whose squares are finite": pair("optimal", partitions=2, weights=[9e99, 9e99]),
    "a file": group(assignor="authors.py:right"),
    **{f"the assignor of {text}": group(assignor=text) for text in OTHERS},
    # those that fail
    "an unknown assignor": group(name="x", assignor="nope", assignment={}),
    "no assignor": group(),
    "another name in a file": group(assignor="authors.py:rihgt"),
    "a report that cannot be written down": group(assignor="authors.py:Reporting"),
    "weights whose squares are not finite": pair("optimal", partitions=2, weights=[1e100, 1]),
    "fewer than no partitions": pair("range", partitions=-1),
    "too many partitions": pair("range", partitions=2**31 - 1),
    "no fields": {},
    **{f"JSON that is no object: {text}": text for text in ("[1, 2]", "null", '"x"')},
    **{f"no JSON: {text}": text for text in ('{"topics": ', "NaN")},
}


def test_each_line_comes_back_as_it_was_approved(lab, tmp_path, monkeypatch):
    (tmp_path / "authors.py").write_text(AUTHORS)
    monkeypatch.chdir(tmp_path)
    texts = [each if isinstance(each, str) else json.dumps(each) for each in LINES.values()]
    answer = lab("assign", stdin="\n".join(texts).encode())
    assert answer.status == 1
    assert answer.err == f'error: 13 of {len(LINES)} lines failed; see their "error"\n'
    approved("assignments", dict(zip(LINES, answer.out.splitlines(), strict=True)))


@pytest.mark.parametrize("line", [b"\xff\xfe", b"[" * 100_000])
def test_a_line_that_fails_says_why_and_the_others_go_on(lab, line):
    good = group(assignor="range")
    first, failed, last = documents(lab("assign", stdin=lines(good) + line + b"\n" + lines(good)))
    assert first == last == good | {"assignment": RANGE}
    assert failed["error"].startswith("line 2: found what is not JSON")


@pytest.mark.parametrize("option", ["-a", "-s", "--assignor"])
def test_lines_keep_their_order(lab, option):
    answer = lab("assign", option, "range", stdin=lines(*(group(name=n) for n in range(20))))
    assert [each["name"] for each in documents(answer)] == list(range(20))


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


# --- wrong use


def test_an_unknown_assignor_is_wrong_use_and_says_what_there_is(lab):
    error = the_error(lab("assign", "--assignor", "rnage", stdin=lines(group())))
    assert error == "assignor: found 'rnage', expected one of 16 names (did you mean 'range'?)"


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


PACKED = gzip.compress(lines(*(group(name=n) for n in range(500))))


@pytest.mark.parametrize(
    "data", [lines(group()), PACKED[:40], PACKED[:30] + b"??" + PACKED[32:]], ids=["plain", "cut", "damaged"]
)
def test_a_packed_file_that_cannot_be_unpacked_is_wrong_use(lab, tmp_path, data):
    path = tmp_path / "groups.jsonl.gz"
    path.write_bytes(data)
    error = the_error(lab("assign", path))
    assert error.startswith(f"{path}: found what cannot be read after line 0 (")


def test_the_command_reads_standard_input_in_a_shell():
    done = in_a_process("assign", "-a", "range", stdin=lines(group()))
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["assignment"] == RANGE


# --- assignors that fail


def group_with(third, **more):
    members = [{"id": m, "topics": ["t"]} for m in ("a", "b", third)]
    return group(members=members, **more)


@pytest.mark.parametrize(
    ("third", "error"),
    [
        ("raises", "raised KeyError: 'oops'"),
        ("exits", "raised SystemExit: 3"),
        ("leaves", "raised SystemExit: 4"),
        ("hangs", "no answer within 0.1 s"),
        ("makes-it-up", "there is no member 'raises'; there is no member 'nobody'"),
    ],
)
def test_a_group_on_which_the_assignor_fails_is_named_and_the_other_lines_go_on(lab, authors, third, error):
    named, unnamed = group_with(third, name="big one"), group_with(third)
    options = ["-a", f"{authors}:only_small", "--timeout", "0.1" if third == "hangs" else "60"]
    answer = lab("assign", *options, stdin=lines(group(), named, unnamed, group()))
    assert answer.status == 1
    assert answer.err == 'error: 2 of 4 lines failed; see their "error"\n'
    first, second, third_line, last = documents(answer)
    assert first == last == group(assignment={"C1": [], "C0": []})
    told = placeless if error.startswith("raised") else str
    assert told(second.pop("error")) == f"assignor 'only-small' on line 2 (big one): {error}"
    assert told(third_line.pop("error")) == f"assignor 'only-small' on line 3: {error}"
    assert (second, third_line) == (named, unnamed)


def test_a_timeout_of_nothing_waits_for_ever(lab):
    (given,) = documents(lab("assign", "-a", "range", "--timeout", "0", stdin=lines(group())))
    assert given == group(assignment=RANGE)
