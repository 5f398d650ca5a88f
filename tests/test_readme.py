"""The documents: commands print what the documents show, examples work, links and paths exist."""

import ast
import re
import shlex
import types
from collections import Counter
from importlib import import_module
from itertools import groupby

import pytest

from coordinator_core import Cluster, GroupSubscription, Subscription, TopicInfo, default_registry
from coordinator_core.protocol.events import AssignmentComputed
from coordinator_core.registry.registry import installed_registry
from rebalance_conformance import check_assignor
from rebalance_conformance.checks import CHECKS
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.simulation.run import simulate
from rebalance_spark.schema import SCORE_COLUMNS
from tests.documents import (
    COMPARISON,
    DOCUMENTS,
    anchors,
    assert_prints,
    blocks,
    commands,
    defined,
    imports,
    links,
    name_of,
)
from tests.examples import WEEKLY
from tests.places import ROOT
from tests.rebalance_lab.cli.commands import figures_of

README = ROOT / "README.md"
ASSIGNORS = ROOT / "assignors" / "README.md"
SCENARIOS = ROOT / "plugins" / "rebalance_lab" / "scenarios" / "README.md"
METRICS = ROOT / "plugins" / "rebalance_lab" / "verdicts" / "README.md"
COMMANDS = ROOT / "plugins" / "rebalance_lab" / "cli" / "README.md"
CONFORMANCE = ROOT / "plugins" / "rebalance_conformance" / "README.md"
SPARK = ROOT / "plugins" / "rebalance_spark" / "README.md"

LONG = (
    "mentions-night",
    "mentions-day",
    "killed-pods",
    "compare deploy.yaml",
    "rolling-deploy",
    "check ",
    "advise",
    "--seeds 10",
    "-s idea.py",
)
"""Parts of the commands that take long."""

LONGEST = (
    "-s optimal -s optimal+strict",
    "compare killed-pods -s range -s cooperative-sticky -s range+static",
)
"""Parts of commands that differ from another one of the documents in strategies and seeds only."""

PLACE = re.compile(r"`((?:assignors|coordinator_core|notebooks|plugins|tests)/[\w./-]*)`")

each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)


def cases():
    """The commands of the documents; test_tables runs those of COMPARISON, for further figures too."""
    for path in DOCUMENTS:
        if path == COMPARISON:
            continue
        for command in commands(path):
            marks = [pytest.mark.slow] if any(name in command.line for name in LONG) else []
            yield pytest.param(command, id=str(command), marks=WEEKLY if _is_longest(command.line) else marks)


def _is_longest(line):
    return any(part in line for part in LONGEST)


def first_column(path, head):
    """The names in the first column of a table."""
    rows = path.read_text().split(head)[1].split("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory of the commands: the data of the tests, a scenario, and an assignor in a file."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "scenario.yaml").write_text(blocks(SCENARIOS, "yaml")[0].text)
    (tmp_path / "deploy.yaml").write_text(blocks(README, "yaml")[0].text)
    (tmp_path / "idea.py").write_text(blocks(ASSIGNORS, "python")[0].text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", list(cases()))
def test_a_command_prints_what_its_document_shows(command, lab):
    *before, last = command.line.split(" | ")
    stdin = "".join(f"{shlex.split(part)[1]}\n" for part in before)
    assert_prints(command, lab(*shlex.split(last)[1:], stdin=stdin.encode()))


@pytest.mark.usefixtures("folder")
def test_the_messages_of_a_round_are_those_of_the_command_before(lab):
    (command,) = (c for c in commands(COMMANDS) if "--messages" in c.line)
    (excerpt,) = (b.text for b in blocks(COMMANDS, "") if "SyncGroup" in b.text)
    printed = lab(*shlex.split(command.line)[1:]).out
    assert excerpt in "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def test_the_documents_show_commands_with_their_output():
    shown = [command for path in DOCUMENTS for command in commands(path) if command.output]
    assert len(shown) >= 6
    assert {command.path for command in shown} >= {README, ASSIGNORS, SCENARIOS}


def test_the_readme_is_read_in_a_minute():
    assert len(README.read_text().splitlines()) <= 150


def test_every_document_is_reached_from_the_readme():
    reached, found = set(), [README]
    while found:
        path = found.pop()
        reached.add(path)
        linked = {(path.parent / target.split("#")[0]).resolve() for target in links(path)}
        found += sorted(linked & set(DOCUMENTS) - reached)
    assert reached == set(DOCUMENTS)


def test_every_room_of_more_than_a_thousand_lines_has_a_page():
    tops = ("assignors", "coordinator_core", "plugins")
    files = [path for top in tops for path in (ROOT / top).rglob("*.py")]
    lines = Counter()
    for path in files:
        lines[path.parent] += len(path.read_text().splitlines())
    large = {room for room, count in lines.items() if count > 1_000}
    assert [name_of(room) for room in sorted(large) if not (room / "README.md").exists()] == []


@each_document
def test_the_links_of_a_document_lead_somewhere(path):
    for link in links(path):
        target, _, anchor = link.partition("#")
        linked = (path.parent / target).resolve() if target else path
        assert linked.exists(), link
        assert not anchor or anchor in anchors(linked), link


@each_document
def test_the_paths_that_a_document_names_exist(path):
    for named in PLACE.findall(path.read_text()):
        assert (ROOT / named).exists(), named


@each_document
def test_the_python_of_a_document_imports_what_exists(path):
    for block in blocks(path, "py", "python"):
        compile(block.text, name_of(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for module, name in imports(block.text):
            assert hasattr(import_module(module), name)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("path", [README, ASSIGNORS], ids=name_of)
def test_the_first_program_of_a_document_runs(path):
    exec(blocks(path, "python")[0].text, {"__name__": "example"})


def test_the_plugin_of_the_documents_is_a_plugin():
    module = types.ModuleType("busiest_first")
    exec(blocks(ASSIGNORS, "python")[0].text, module.__dict__)
    registry = installed_registry()
    registry.register(module, name="busiest-first")
    assignor = registry.assignor("busiest-first")
    cluster = Cluster({"clicks": TopicInfo(4, weights=(90.0, 50.0, 40.0, 10.0))})
    group = GroupSubscription({m: Subscription(("clicks",)) for m in ("a", "b")})
    assert assignor.assign(cluster, group) == {
        "a": [("clicks", 0), ("clicks", 3)],
        "b": [("clicks", 1), ("clicks", 2)],
    }


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_the_plugin_of_the_documents_gets_weights(lab):
    strategies = ["idea.py:BusiestFirst", "idea.py:BusiestFirst+weights=none"]
    answer = lab("compare", "scenario.yaml", "-s", strategies[0], "-s", strategies[1], "--format", "json")
    weighted, counted = (figures_of(answer)[name]["weighted_imbalance"] for name in strategies)
    assert weighted < counted - 0.1


@pytest.mark.parametrize("data", [None, b"", b"\x00\x01", b"\x00\x00\x00\x00\x00\x07"])
def test_user_data_of_the_documents_that_cannot_be_read_count_as_none(data):
    names = defined(*blocks(ASSIGNORS, "python"))
    assert names["decode"](data) == 0
    assert names["decode"](names["encode"](7)) == names["decode"](names["encode"](7) + b"later") == 7


def test_the_upgrade_of_the_documents_ends_with_the_new_assignor():
    (block,) = [b for b in blocks(ASSIGNORS, "yaml") if "rolling_restart" in b.text]
    text = block.text.replace("busiest-first", "roundrobin")
    group = """
name: upgrade
duration: 10m
topics: {t: {partitions: 6, rate: 60}}
members: [{id: c, count: 3, topics: [t]}]
"""
    trace = simulate(load_scenario_text(group + text, "upgrade.yaml"), "range", default_registry())
    chosen = [e.event.assignor for e in trace.events if isinstance(e.event, AssignmentComputed)]
    assert (chosen[0], chosen[-1]) == ("range", "roundrobin")
    assert [name for name, _ in groupby(chosen)] == ["range", "roundrobin"]


def test_the_assignor_of_the_documents_that_keeps_owners_is_sticky():
    keeper = defined(*blocks(ASSIGNORS, "python"))["Keeper"]
    sticky = ["partition-left-out", "not-sticky", "moves-too-much-on-leave", "not-sticky-in-a-group"]
    assert check_assignor(keeper, checks=sticky, examples=5).failures == ()


def test_the_scenario_of_the_documents_is_a_scenario():
    scenario = load_scenario_text(blocks(SCENARIOS, "yaml")[0].text, "README.md")
    assert len(scenario.members) == 4


def test_the_columns_of_scores_are_listed():
    rows = [
        f"| `{c.name}` | {c.type} | {c.unit} | {'yes' if c.nullable else 'no'} | {c.doc} |"
        for c in SCORE_COLUMNS
    ]
    assert "\n".join(rows) in SPARK.read_text()


def test_the_profiles_of_generate_are_listed():
    assert first_column(SPARK, "| profile of `generate` |") == list(default_registry().workloads())


def test_the_assignors_and_modifiers_are_listed():
    assert first_column(ASSIGNORS, "| assignor | |") == list(default_registry().assignors())
    text = ASSIGNORS.read_text()
    assert all(f"`+{name}" in text for name in default_registry().modifiers())


def metric_tables():
    """The table of metrics, each with its group, unit and definition, and that of their parts."""
    specs = default_registry().metrics().values()
    whole, parts = [m for m in specs if not m.part_of], [m for m in specs if m.part_of]
    names = [f"**`{m.name}`**" if m.headline else f"`{m.name}`" for m in whole]
    rows = [f"| {name} | {m.group} | {m.unit} | {m.doc} |\n" for name, m in zip(names, whole, strict=True)]
    yield "| metric | group | unit | definition |\n|---|---|---|---|\n" + "".join(rows)
    rows = [f"| `{m.name}` | {m.doc} |\n" for m in parts]
    yield "| part | definition |\n|---|---|\n" + "".join(rows)


def test_the_metrics_are_listed():
    text = METRICS.read_text()
    assert all(f"\n{table}\n" in text for table in metric_tables())


def test_the_events_are_listed():
    listed = first_column(SCENARIOS, "| event | |")
    assert set(listed) - {"for", "in_batch", "topics"} == set(default_registry().scenario_events())


def test_the_checks_of_the_conformance_suite_are_listed():
    listed = first_column(CONFORMANCE, "| checks | of |")
    assert sorted(listed) == sorted(check.name for check in CHECKS)


def test_the_commands_are_listed():
    text = (ROOT / "plugins" / "rebalance_lab" / "cli" / "README.md").read_text()
    assert all(f"`rebalance-lab {name}" in text for name in default_registry().commands())
