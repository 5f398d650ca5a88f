"""Who may import whom (the house in CONTRIBUTING): an import that goes the other way is a design error."""

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from tests.places import ROOT

CORE, LAB = "coordinator_core", "rebalance_lab"

BASE = {"errors", "java", "model", "packing", "reading"}
ASSIGNING = BASE | {"assigning"}
REGISTRY = ASSIGNING | {"registry"}
PROTOCOL = BASE | {"protocol"}
FAMILIES = REGISTRY | PROTOCOL | {"coordinator", "client", "families"}

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
    "families": FAMILIES,
    "lab scenarios": FAMILIES,
    "lab traces": FAMILIES | {"lab scenarios"},
    "lab simulation": FAMILIES | {"lab scenarios", "lab traces"},
    "lab verdicts": FAMILIES | {"lab scenarios", "lab traces", "lab simulation"},
    "lab scoring": FAMILIES | {"lab scenarios", "lab traces", "lab simulation", "lab verdicts"},
    "lab fuzzing": FAMILIES | {"lab scenarios", "lab traces", "lab simulation", "lab verdicts"},
    "lab cli": FAMILIES | {"lab scenarios", "lab traces", "lab simulation", "lab verdicts", "lab fuzzing"},
}
"""The rooms from the bottom up, with those that each may import. Think before a line gets longer."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def room_of(path: Path) -> str:
    return room_named(module_of(path).split("."))


def room_named(parts: Sequence[str]) -> str:
    """Return the room of a module: of the core and of the lab a folder, else the package."""
    if parts[0] in (CORE, LAB) and len(parts) > 1:
        return parts[1] if parts[0] == CORE else f"lab {parts[1]}"
    return parts[0]


def module_of(path: Path) -> str:
    relative = path.relative_to(ROOT / "plugins" if (ROOT / "plugins") in path.parents else ROOT)
    return ".".join(relative.with_suffix("").parts).removesuffix(".__init__")


def imported_names(path: Path) -> list[str]:
    names = []
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def imported_rooms(path: Path) -> set[str]:
    ours = (name.split(".") for name in imported_names(path))
    return {room_named(parts) for parts in ours if parts[0] in PACKAGES}


PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))
HOUSE = [*sorted((ROOT / "assignors").rglob("*.py")), *sorted((ROOT / CORE).rglob("*.py")), *PLUGINS]
PACKAGES = {module_of(path).split(".")[0] for path in HOUSE}
FILES = [p for p in HOUSE if room_of(p) == "assignors" or module_of(p).startswith((f"{CORE}.", f"{LAB}."))]


def offenders(allowed_by_file: Mapping[Path, set[str]], kind: str = "") -> dict[str, set[str]]:
    """Return the rooms that each file imports against the rules, those of a kind where one is given."""
    found = {
        named(path): {room for room in imported_rooms(path) - allowed if room.startswith(kind)}
        for path, allowed in allowed_by_file.items()
    }
    return {name: rooms for name, rooms in found.items() if rooms}


def test_imports_go_the_way_of_the_house():
    assert offenders({path: MAY_IMPORT[room_of(path)] | {room_of(path)} for path in FILES}) == {}


def test_a_plugin_imports_no_other_but_the_lab():
    plugins = [path for path in PLUGINS if not module_of(path).startswith(LAB)]
    own = {path: {module_of(path).split(".")[0]} for path in plugins}
    own |= {path: {"rebalance_spark"} for path in plugins if room_of(path) == "pyspark_rebalance"}
    assert offenders(own, "rebalance_") == {}


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import one another in a circle."""
    graph = nx.DiGraph((name, other) for name, others in imports.items() for other in others)
    return sorted(sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1)


def test_no_modules_import_one_another_in_a_circle():
    """Not even for type checking only, or inside functions. Faces of packages import when they are asked."""
    modules = {module_of(path): path for path in HOUSE}
    imports = {}
    for module, path in modules.items():
        names = imported_names(path)
        whole = {name.rpartition(".")[0] for name in names if name not in modules}
        imports[module] = (whole | set(names)) & modules.keys() - {module, *PACKAGES}
    assert circles(imports) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]


def test_every_room_stands_in_the_table():
    assert {room_of(p) for p in FILES} == set(MAY_IMPORT)


PURE = [
    "assignors",
    *(f"{CORE}/{room}" for room in ("coordinator", "client", "families", "protocol")),
    *(f"plugins/{LAB}/{room}" for room in ("scenarios", "simulation", "traces")),
    "plugins/rebalance_uncoordinated",
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
        paths = sorted((ROOT / CORE / room).rglob("*.py"))
        assert [named(path) for path in paths if other in imported_rooms(path)] == []


FAMILY_WORDS = re.compile(
    r"(Join|Sync)Group|(PREPARING|COMPLETING)_REBALANCE|(Preparing|Completing)Rebalance|(?<!UN)STABLE"
    r"|AwaitingSync|GroupState\."
)


AROUND = [f"{CORE}/client", f"{CORE}/coordinator", *(f"plugins/{LAB}/{r}" for r in ("scenarios", "traces"))]


@pytest.mark.parametrize("room", AROUND)
def test_a_room_around_the_families_names_none_of_their_requests_and_states(room):
    """Modules outside the rooms of the families name no JoinGroup, no SyncGroup and no state of a group, and
    import no family's room."""
    for path in sorted((ROOT / room).glob("*.py")):
        text = path.read_text()
        assert FAMILY_WORDS.findall(text) == [], path
        assert f"{room.replace('/', '.')}.classic" not in text, path


def test_no_file_of_the_program_is_longer_than_six_hundred_lines():
    long = {named(p): n for p in HOUSE if (n := len(p.read_text().splitlines())) > 600}
    assert long == {}
