"""The documents of the repository: their blocks, commands and links."""

import ast
import os
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tests.approved import APPROVE
from tests.places import ROOT

FOLDERS = ("assignors", "coordinator_core", "notebooks", "plugins", "tests")
_FOUND = [p for top in FOLDERS for p in sorted((ROOT / top).rglob("*.md"))]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *(p for p in _FOUND if "node_modules" not in p.parts)]
COMPARISON = ROOT / "plugins" / "rebalance_lab" / "COMPARISON.md"
OURS = ("coordinator_core", "rebalance_")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$\n*", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, and the block of output that follows it directly ("" if none does)."""

    path: Path
    language: str
    text: str
    output: str


class Command(NamedTuple):
    """A command line and the output that its document shows ("" if it shows none)."""

    path: Path
    line: str
    output: str

    def __str__(self) -> str:
        return f"{name_of(self.path)}: {self.line}"


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, *languages: str) -> list[Block]:
    """The blocks of a document in some languages, in their order."""
    found = list(_BLOCK.finditer(path.read_text()))
    return [
        Block(path, match[1], match[2], _output(match, after))
        for match, after in zip_longest(found, found[1:])
        if match[1] in languages
    ]


def defined(*code: Block) -> dict[str, Any]:
    """The names that blocks of Python define, which are run in their order, as a reader would copy them."""
    names: dict[str, Any] = {"__name__": "copied"}
    for block in code:
        exec(block.text, names)
    return names


def commands(path: Path) -> list[Command]:
    """The commands of a document that run as they stand: lines of ``sh`` blocks that call the program."""
    listed = []
    for block in blocks(path, "sh"):
        lines = [line.strip() for line in block.text.splitlines()]
        called = [line for line in lines if line.startswith(("rebalance-lab", "echo"))]
        listed += [Command(path, line, "") for line in called[:-1]]
        listed += [Command(path, line, block.output) for line in called[-1:]]
    return listed


def assert_prints(command: Command, answer: Any) -> None:
    """Check that a command has ended well, at most with warnings, and has printed the output of its document.

    With `APPROVE` its document is written anew, by one process at a time.
    """
    errors = [line for line in answer.err.splitlines() if not line.startswith("warning: ")]
    assert (answer.status, errors) == (0, [])
    assert answer.out
    if command.output:
        printed = [line.rstrip() for line in answer.out.strip().splitlines()]
        if os.environ.get(APPROVE):
            text = command.path.read_text()
            assert text.count(command.output) == 1
            command.path.write_text(text.replace(command.output, "\n".join(printed) + "\n"))
        else:
            assert printed == command.output.splitlines()


def links(path: Path) -> list[str]:
    """The targets of a document's links to files of the repository."""
    return [target for target in _LINK.findall(path.read_text()) if "://" not in target]


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    headings = [re.sub(r"[^\w\- ]", "", text.lower()) for text in _HEADING.findall(path.read_text())]
    return {text.replace(" ", "-") for text in headings}


def imports(code: str) -> list[tuple[str, str]]:
    """The names that a piece of Python imports from this distribution: (module, name)."""
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS)
        for alias in node.names
    ]


def _output(match: re.Match[str], after: re.Match[str] | None) -> str:
    return after[2] if after is not None and not after[1] and after.start() == match.end() else ""
