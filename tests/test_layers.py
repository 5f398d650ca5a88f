"""Who may import whom (the house in the README): an import that goes the other way is a design error."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.places import ROOT

CORE = ROOT / "coordinator_core"

BASE = {"errors", "java", "model", "packing", "reading"}
ASSIGNING = BASE | {"assigning"}
REGISTRY = ASSIGNING | {"registry"}
PROTOCOL = BASE | {"protocol"}
FAMILIES = REGISTRY | PROTOCOL | {"coordinator", "client", "families"}
DOCUMENTS = FAMILIES | {"documents"}
TRACES = DOCUMENTS | {"traces"}
SIMULATION = TRACES | {"simulation"}
SCORING = ASSIGNING | REGISTRY | PROTOCOL | {"traces", "scoring"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "java": set(),
    "model": {"errors", "java"},
    "packing": {"errors", "java", "model"},
    "reading": {"errors", "java", "model"},
    "assigning": BASE,
    "registry": ASSIGNING,
    "assignors": REGISTRY,
    "protocol": BASE,
    "coordinator": PROTOCOL,
    "client": PROTOCOL | {"assigning"},
    "documents": DOCUMENTS,
    "traces": TRACES,
    "families": FAMILIES,
    "simulation": SIMULATION,
    "scoring": SCORING,
    "reports": SIMULATION | SCORING,
    "cli": SIMULATION | SCORING | {"reports"},
}
"""The rooms from the bottom up, with those that each may import. Think before a line gets longer."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def room_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    if relative.parts[0] == "assignors":
        return "assignors"
    return relative.parts[1].removesuffix(".py")


def imported_names(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for name in imported_names(path):
        parts = name.split(".")
        if parts[0] == "assignors":
            rooms.add("assignors")
        elif parts[0] == "coordinator_core":
            rooms.add(parts[1])
        elif parts[0].startswith("rebalance_"):
            rooms.add(parts[0])
    return rooms


FILES = [p for top in (CORE, ROOT / "assignors") for p in sorted(top.rglob("*.py"))]
FILES = [p for p in FILES if p != CORE / "__init__.py"]


PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


def offenders(allowed_by_file: Mapping[Path, set[str]], kind: str = "") -> dict[str, set[str]]:
    """Return the rooms that each file imports against the rules, those of a kind where one is given."""
    found = {
        named(path): {room for room in imported_rooms(path) - allowed if room.startswith(kind)}
        for path, allowed in allowed_by_file.items()
    }
    return {name: rooms for name, rooms in found.items() if rooms}


def test_imports_go_the_way_of_the_house():
    assert offenders({path: MAY_IMPORT[room_of(path)] | {room_of(path)} for path in FILES}) == {}


def test_a_plugin_imports_no_other():
    own = {path: {path.relative_to(ROOT / "plugins").parts[0]} for path in PLUGINS}
    own |= {path: {"rebalance_spark"} for path in PLUGINS if path.parent.name == "pyspark_rebalance"}
    assert offenders(own, "rebalance_") == {}


def module_of(path: Path) -> str:
    return named(path).removeprefix("plugins/").removesuffix(".py").replace("/", ".")


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports inside functions and for type checking only count; those of packages do not: they are lazy."""
    modules = {module_of(path): path for path in FILES + PLUGINS if path.name != "__init__.py"}
    imports = {
        module: {
            imported
            for name in imported_names(path)
            for imported in (name, name.rpartition(".")[0])
            if imported in modules
        }
        for module, path in modules.items()
    }
    TopologicalSorter(imports).prepare()  # or CycleError, which names the modules of a circle


def test_every_room_stands_in_the_table():
    assert {room_of(p) for p in FILES} == set(MAY_IMPORT)


PURE = [
    "assignors",
    *(
        f"coordinator_core/{room}"
        for room in ("coordinator", "client", "documents", "families", "simulation", "protocol", "traces")
    ),
]
WORLDLY = {"asyncio", "datetime", "multiprocessing", "os", "secrets", "selectors", "socket", "subprocess"}
WORLDLY |= {"threading", "time", "uuid"}


def worldly_imports(path: Path) -> set[str]:
    found = set()
    for node in nodes_of(path):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and [a.name for a in node.names] == ["UUID"]:
            continue  # the type alone writes given bits in the usual form
        found |= {name.split(".")[0] for name in names} & WORLDLY
    return found


def test_no_clock_thread_socket_or_entropy_below_the_command_line():
    paths = [path for place in PURE for path in sorted((ROOT / place).rglob("*.py"))]
    assert {named(path): found for path in paths if (found := worldly_imports(path))} == {}


def test_coordinator_and_client_do_not_know_each_other():
    for room, other in (("coordinator", "client"), ("client", "coordinator")):
        paths = sorted((CORE / room).rglob("*.py"))
        assert [named(path) for path in paths if other in imported_rooms(path)] == []


FAMILY_WORDS = re.compile(
    r"(Join|Sync)Group|(PREPARING|COMPLETING)_REBALANCE|(Preparing|Completing)Rebalance|(?<!UN)STABLE"
    r"|AwaitingSync|GroupState\."
)


@pytest.mark.parametrize("room", ["client", "coordinator", "documents", "scoring", "traces"])
def test_a_room_around_the_families_names_none_of_their_requests_and_states(room):
    """Modules outside the rooms of the families name no JoinGroup, no SyncGroup and no state of a group, and
    import no family's room."""
    for path in sorted((CORE / room).glob("*.py")):
        text = path.read_text()
        assert FAMILY_WORDS.findall(text) == [], path
        assert f"coordinator_core.{room}.classic" not in text, path


def test_no_file_of_the_program_is_longer_than_six_hundred_lines():
    long = {named(p): n for p in FILES + PLUGINS if (n := len(p.read_text().splitlines())) > 600}
    assert long == {}
