"""The tables of the document of protocol families: they say what the program does."""

import os
import re
import shlex
from functools import partial

import pytest

from coordinator_core.errors import InputError
from rebalance_lab import default_registry, simulate
from rebalance_lab.cli import compare
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.verdicts.tables import as_text
from tests.approved import APPROVE
from tests.documents import COMPARISON, assert_prints, commands
from tests.examples import WEEKLY
from tests.places import ROOT

DOCUMENTS = [
    ROOT / name / "README.md" for name in ("coordinator_core/families", "plugins/rebalance_uncoordinated")
]
REGISTRY = default_registry()

EVENTS = {
    "join": {"join": {"id": "c-3", "topics": ["t"]}},
    "leave": {"leave": "c-1"},
    "crash": {"crash": "c-1"},
    "restart": {"restart": "c-1"},
    "pause": {"pause": "c-1", "for": "70s"},
    "freeze": {"freeze": "c-1", "for": "70s"},
    "cut": {"cut": "c-1", "for": "150s"},
    "slow": {"slow": {"member": "c-1", "by": "2s", "for": "70s"}},
    "subscribe": {"subscribe": "c-1", "topics": ["t", "u"]},
    "remove_member": {"remove_member": "c-1"},
    "lag_view": {"lag_view": {"member": "c-1", "by": "10s"}},
    "add_partitions": {"add_partitions": {"t": 9}},
    "create_topic": {"create_topic": {"v": {"partitions": 2, "rate": 10}}},
    "delete_topic": {"delete_topic": "u"},
    "rolling_restart": {"rolling_restart": {"every": "20s", "down": "5s"}},
    "coordinator_failover": {"coordinator_failover": {"down": "3s"}},
    "log_fault": {"log_fault": {"for": "30s"}},
    "calm": {"calm": True},
}
STRATEGIES = {
    "classic": "range",
    "+delay": "cooperative-sticky+delay=60s",
    "server-side": "range+server-side",
    "reconcile": "sticky+reconcile",
    "watcher": "watcher",
    "peers": "rocketmq",
}


def table(heading, otherwise):
    """The rows of the first tables below a heading: the names in the first cell, and the others by column.

    Rows that only the families without a coordinator have are ``otherwise`` under the others.
    """
    texts = (document.read_text() for document in DOCUMENTS)
    rows, own = (cells_of(text.split(f"## {heading}\n")[1].split("\n## ")[0]) for text in texts)
    none = dict.fromkeys(next(iter(rows.values())), otherwise)
    return {name: {**rows.get(name, none), **cells} for name, cells in own.items()}


def cells_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    columns = [cell.strip("`") for cell in head[1:]]
    return {
        name: dict(zip(columns, cells, strict=True))
        for first, *cells in rows
        for name in re.findall(r"`([^`]+)`", first)
    }


TOGETHER = table("Modifiers and protocols", "no")
MEANINGS = table("Scenario events under each protocol", "an error: members have no views")


def scenario(*events, **more):
    document = {
        "name": "table",
        "duration": "6m",
        "topics": {"t": {"partitions": 6, "rate": 1200}, "u": {"partitions": 2, "rate": 10}},
        "members": [{"id": "c", "count": 3, "topics": ["t"], "process_rate": 900}],
        "events": [{"at": "60s", **event} for event in events],
        "config": {"session.timeout.ms": 10_000},
        **more,
    }
    return parse_scenario(document, where="table.yaml", registry=REGISTRY)


def test_the_tables_have_every_protocol_modifier_and_event():
    """PROTOCOL 11.1, 11.2, 11.3, 11.6, 11.7 and 11.8: every protocol has a column."""
    protocols = set(REGISTRY.protocols())
    assert all({*row} == {f"+{name}" for name in protocols} for row in TOGETHER.values())
    assert set(MEANINGS) == set(EVENTS) == set(REGISTRY.scenario_events())
    assert all({*row} == protocols | {"+delay"} for row in MEANINGS.values())
    modifiers = [name for name, spec in REGISTRY.modifiers().items() if spec.of_protocol]
    assert all(any(f"+{name}" in text for text in TOGETHER) for name in modifiers)


@pytest.mark.parametrize("text", TOGETHER)
def test_a_modifier_goes_with_the_protocols_that_the_table_names(text):
    for protocol, cell in TOGETHER[text].items():
        try:
            REGISTRY.assignor(text + protocol)
        except InputError:
            assert cell == "no", protocol
        else:
            assert cell == "yes", protocol


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_is_an_error_where_the_table_says_so(kind):
    for column, text in STRATEGIES.items():
        cell = MEANINGS[kind][column]
        refused = MEANINGS[kind]["classic"] if cell in ("as `classic`", "") else cell
        prepare = partial(family_for, scenario(EVENTS[kind]), REGISTRY.strategy(text), REGISTRY)
        if refused.startswith("an error: "):
            with pytest.raises(InputError, match=f"{kind} at 1m: found an event without a meaning"):
                prepare()
        else:
            prepare()


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("column", [column for column in STRATEGIES if column != "classic"])
def test_the_group_rests_after_every_event_that_has_a_meaning(kind, column):
    meaning = MEANINGS[kind][column]
    if (MEANINGS[kind]["classic"] if meaning == "as `classic`" else meaning).startswith("an error"):
        return
    trace = simulate(scenario(EVENTS[kind]), STRATEGIES[column], REGISTRY)
    assert trace.ended.group_state in ("Stable", "Settled")


def comparisons():
    """The commands of the comparison. Those on the longest scenarios show nothing new."""
    for command in commands(COMPARISON):
        is_long = any(name in command.line for name in ("rolling-deploy", "mentions-day"))
        marks = WEEKLY if is_long else [pytest.mark.slow]
        yield pytest.param(command, id=str(command), marks=marks)


@pytest.mark.parametrize("command", list(comparisons()))
def test_a_comparison_and_its_further_figures_are_those_of_its_command(command, lab, monkeypatch):
    monkeypatch.chdir(ROOT)
    compared = []
    monkeypatch.setattr(compare, "print_screen", noting(compared, compare.print_screen))
    assert_prints(command, lab(*shlex.split(command.line)[1:]))
    (screen,) = compared
    grid = screen.grid
    names = [setup.strategy for setup in grid.setups]
    figures = {name: partial(grid.median, candidate=number) for number, name in enumerate(names)}
    before, rest = COMPARISON.read_text().split(f"\n{command.line}\n")
    section, *others = rest.split("\n## ")
    if os.environ.get(APPROVE):
        section = with_figures(section, figures)
        COMPARISON.write_text("\n## ".join([f"{before}\n{command.line}\n{section}", *others]))
    shown = cells_of(section)
    assert {*figures} == {*shown["messages"]}
    for metric, cells in shown.items():
        assert cells == {name: as_text(figures[name](metric)) for name in cells}


def with_figures(section, figures):
    """The section with other figures in its table of further figures."""
    for metric, cells in cells_of(section).items():
        (row,) = re.findall(rf"^\| `{metric}` \|.*$", section, re.MULTILINE)
        texts = [as_text(figures[name](metric)) for name in cells]
        section = section.replace(row, f"| `{metric}` | {' | '.join(texts)} |")
    return section


def noting(notes, function):
    """The function, which notes its first argument."""

    def called(first, **options):
        notes.append(first)
        function(first, **options)

    return called
