"""The table of faults: a file in ``rooms`` for each room, of the form that tests/README.md describes."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.places import ROOT

ROOMS = Path(__file__).parent / "rooms"
MARKS = ("@", "-", "+", "survives:")


class MutantError(Exception):
    """Reports a line of the table that is not of its form, or does not fit the program."""


class Mutant(NamedTuple):
    room: str
    name: str
    """Says what is wrong, in words joined by hyphens."""
    path: str
    """The file with the fault, from the repository's root."""
    tests: tuple[str, ...]
    """Files or tests of the fast tests, from the repository's root, that must fail."""
    line: str
    """The line as it stands, without its indentation."""
    fault: str
    before: str = ""
    """The line before it, if the line occurs more than once."""
    survives: str = ""
    """The reason why no test can fail."""

    def applied(self, source: str) -> str:
        """Return the source with the fault.

        Raises:
            MutantError: if the line is not in the source exactly once.
        """
        lines = source.split("\n")
        found = [
            number
            for number, (before, line) in enumerate(pairwise(["", *lines]))
            if line.strip() == self.line and self.before in ("", before.strip())
        ]
        if len(found) != 1:
            times = "is not there" if not found else f"is there {len(found)} times"
            raise MutantError(f"{self.path}: {times}: {self.line}")
        old = lines[found[0]]
        lines[found[0]] = old[: len(old) - len(old.lstrip())] + self.fault
        return "\n".join(lines)


def rooms() -> list[str]:
    return sorted(path.stem for path in ROOMS.glob("*.txt"))


def mutants(room: str) -> list[Mutant]:
    """Read the faults of a room.

    Raises:
        MutantError: if the room's file is not of the form, or a name occurs twice.
    """
    found = list(_read(room, (ROOMS / f"{room}.txt").read_text(encoding="utf-8").split("\n")))
    twice = [name for name, count in Counter(mutant.name for mutant in found).items() if count > 1]
    if twice:
        raise MutantError(f"{room}: {', '.join(twice)}: there more than once")
    return found


def _read(room: str, lines: list[str]) -> Iterator[Mutant]:
    path, tests = "", ()
    entry: dict[str, str] = {}
    for number, text in enumerate([*lines, ""], 1):
        kind, _, rest = text.partition(" ")
        if kind == "in":
            path, tests = rest, ()
        elif kind == "by":
            tests = tuple(f"tests/{name}" for name in rest.split())
        elif text:
            entry[kind if kind in MARKS else "name"] = rest if kind in MARKS else text
        elif entry:
            if not (path and tests and {"name", "-", "+"} <= entry.keys()):
                raise MutantError(f"{room}.txt, line {number}: the fault above is not whole: {entry}")
            optional = entry.get("@", ""), entry.get("survives:", "")
            yield Mutant(room, entry["name"], path, tests, entry["-"], entry["+"], *optional)
            entry = {}


def errors(mutant: Mutant) -> Iterator[str]:
    """Yield why a fault is none, does not fit the program, or cannot be tried."""
    where = f"{mutant.room} {mutant.name}"
    try:
        mutant.applied((ROOT / mutant.path).read_text(encoding="utf-8"))
    except (MutantError, OSError) as error:
        yield f"{where}: {error}"
    if mutant.line == mutant.fault:
        yield f"{where}: the fault is the line itself"
    for name in mutant.tests:
        if not (ROOT / name.partition("::")[0]).exists():
            yield f"{where}: there is no {name}"
