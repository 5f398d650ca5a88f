"""Commands that are used wrongly: one line on stderr, nothing on stdout, status 2, and nothing is written."""

import gzip
import shlex

from tests.approved import approved
from tests.rebalance_lab.cli.commands import the_error

STRATEGIES = (
    "nope",
    "rnage",
    "''",
    "+static",
    "range+nope",
    "range+static+x=1",
    "optimal+racks=5",
    "range+weights=x",
    "no.py:X",
    "range+static=4",
)
CHANGES = {
    "unknown-field": ("duration: 20s", "duration: 20s\nsede: 4"),
    "negative": ("partitions: 4", "partitions: -4"),
    "never-joined": ("leave: b", "leave: zed"),
    "no-csv": ("rate: 40", "rates_csv: no.csv, interval: 5m"),
    "no-yaml": ("name: small", "name: [small"),
    "no-number": ("partitions: 4", "partitions: four"),
    "unknown-event": ("leave: b", "explode: b"),
}
TEXTS = {
    "nothing": "",
    "blank": "\n\n",
    "comment": "# a comment\n",
    "list": "- a\n- list\n",
    "text": "just text",
}
CODE = {
    "raises": "1 / 0",
    "no-python": "def broken(:",
    "exits": "import sys; sys.exit(3)",
    "imports": "import no_such_module_here",
}
COMMANDS_OF_RUNS = ("compare", "simulate", "explain", "advise")
COMMANDS = (
    *(f"compare small.yaml -s range -s {strategy}" for strategy in STRATEGIES),
    *(f"compare {name}.yaml -s range" for name in (*CHANGES, *TEXTS, "large", "bytes", "not-there")),
    "compare folder",
    *(
        f"compare small.yaml -s range --set {setting}"
        for setting in ("session.timeout=6s", "session.timeout.ms=6x", "session.timeout.ms")
    ),
    *(f"simulate small.yaml --trace {name}" for name in ("no/folder/x", "folder", "small.yaml/x")),
    "compare small.yaml --trace small.yaml/below-a-file",
    "compare small.yaml --trace no/folder",
    "compare nothing.yaml --trace t",
    "compare small.yaml -s nope --trace t",
    *(f"compare small.yaml -s range -s {name}.py:X" for name in CODE),
    *(f"{command} small.yaml -s range --seed {2**63}" for command in COMMANDS_OF_RUNS),
    *(f"simulate small.yaml --format jsonl {option}" for option in ("--rounds", "--messages")),
    "simulate small.yaml -s range -s watcher",
    "simulate small.yaml -s nope",
    "simulate -",
    "advise small.yaml -s range -s sticky",
    "advise small.yaml -s nix",
    "explain small.yaml -s nix",
    "assign",
    *(
        f"assign {name}"
        for name in ("empty", "empty.gz", "blank.gz", "nope.jsonl", "nope.jsonl.gz", "folder")
    ),
)


def files_in(folder):
    """What is in a folder, without the compiled modules that imports may write."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_wrong_use_is_one_line_that_was_approved_and_writes_nothing(lab, small, tmp_path, monkeypatch):
    for name, (before, after) in CHANGES.items():
        assert before in small.read_text()
        (tmp_path / f"{name}.yaml").write_text(small.read_text().replace(before, after))
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    for name, code in CODE.items():
        (tmp_path / f"{name}.py").write_text(code)
    for name, data in (("empty.gz", b""), ("blank.gz", b"\n\n  \n")):
        (tmp_path / name).write_bytes(gzip.compress(data))
    (tmp_path / "empty").touch()
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\n")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(100_000_000)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    there = files_in(tmp_path)
    approved("wrong_use", {command: the_error(lab(*shlex.split(command))) for command in COMMANDS})
    assert files_in(tmp_path) == there
