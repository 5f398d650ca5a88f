"""`rebalance-lab compare`: strategies side by side, and what is said of wrong input."""

import csv
import io
import json
import os
import pty
import re
import subprocess
from statistics import median

import msgspec
import pytest
import yaml
from rich.console import Console

from coordinator_core.registry.hookspecs import METRIC_GROUPS
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli import compare as compare_module
from rebalance_lab.cli.compare import DEFAULT_STRATEGIES
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.aims import COLUMNS
from rebalance_lab.verdicts.finding import Changed, Finding
from rebalance_lab.verdicts.screen import screen_of
from rebalance_lab.verdicts.screen_formats import ScreenDocument
from tests.examples import rest_slow
from tests.rebalance_lab.cli.commands import (
    COMMAND,
    environment,
    figures_of,
    in_a_process,
    rows_in,
    the_error,
)
from tests.rebalance_lab.verdicts.grids import grid_of

METRICS = list(default_registry().metrics())
SPECS = list(default_registry().metrics().values())
SHOWN = [metric.name for metric in SPECS if not (metric.optional or metric.part_of)]

RAISES = """\
class Mine:
    name, version, supported_protocols = "mine", 0, ("eager",)
    def assign(self, cluster, group):
        raise ValueError("no")
"""


# --- formats


def test_all_metrics_are_shown_by_groups(lab, small):
    answer = lab("compare", small, "-s", "sticky", "-s", "range", "-j", "1", "--seeds", "2", "--all")
    lines = answer.out.splitlines()
    assert [line for line in lines if line in METRIC_GROUPS] == list(METRIC_GROUPS)
    rows = [line.split() for line in lines if line.split() and line.split()[0] in METRICS]
    parts = [row for row in rows if row[0] not in SHOWN]
    assert [row[0] for row in rows if row not in parts] == SHOWN
    assert 0 < len(parts) < 10
    assert all(set(row[3:]) != {"0"} for row in parts)


SAYING = [("compare", "-s", "range", "-s", "sticky"), ("advise",)]


def written(said):
    """The sentence of a finding, by the facts that JSON has of it."""
    facts = {
        name: [msgspec.convert(v, Changed) if isinstance(v, dict) else v for v in fact]
        if isinstance(fact, list)
        else fact
        for name, fact in said.facts.items()
    }
    return str(Finding(said.kind, facts))


@pytest.mark.parametrize("command", rest_slow(SAYING))
def test_json_has_the_facts_of_what_the_terminal_says(lab, small, command):
    verb, *more = command
    options = [verb, small, *more, "-j", "1", "--seeds", "7"]
    answer = lab(*options, "--format", "json")
    document = msgspec.json.decode(answer.out, type=ScreenDocument)
    found = [*document.verdict, *document.why, *document.tries, *document.know]
    assert [said.text for said in found] == list(map(written, found))
    lines = lab(*options).out
    assert lines.startswith(f"{document.title}\n\n")
    text = " ".join(lines.split())
    below = {"Why": document.why, "Try": document.tries, "Know": document.know}
    first = [f"{name} {said[0].text}" for name, said in below.items() if said]
    assert document.verdict
    assert first
    assert all(said in text for said in (*(said.text for said in document.verdict), *first))


def test_all_metrics_are_explained_without_a_scenario(lab):
    answer = lab("compare", "--explain-metrics")
    assert (answer.status, answer.err) == (0, "")
    text = " ".join(answer.out.split())
    assert all(f"{m.name} [{m.unit}]: {m.doc}" in text for m in SPECS)
    headings = [line for line in answer.out.splitlines() if line in METRIC_GROUPS]
    assert headings == list(METRIC_GROUPS)
    assert max(map(len, answer.out.splitlines())) <= 100


def test_json_csv_and_html_say_the_same(lab, small):
    options = ["compare", small, "--seeds", "2", "-j", "1", "-s", "range", "-s", "sticky+classic", "--format"]
    figures = figures_of(lab(*options, "json"))
    assert list(figures) == ["range", "sticky+classic"]
    assert list(figures["range"]) == METRICS
    rows = list(csv.DictReader(io.StringIO(lab(*options, "csv").out)))
    assert [row["strategy"] for row in rows] == ["range", "sticky+classic"]
    for row in rows:
        assert row["findings"] == ""
        for name, value in figures[row["strategy"]].items():
            assert (float(row[name]) if row[name] else None) == pytest.approx(value)
    html = lab(*options, "html").out
    assert html.startswith("<!doctype html>")
    assert html.count("<th scope=row>sticky+classic</th>") == 1
    assert all(f">{name}</th>" in html for name in SHOWN)


def test_a_scenario_may_come_from_standard_input(lab, small):
    options = ["-j", "1", "-s", "range", "--seeds", "2", "--format", "json"]
    assert lab("compare", "-", *options, stdin=small.read_bytes()) == lab("compare", small, *options)


def test_the_seed_of_the_command_line_takes_the_place_of_the_scenarios(lab, small, tmp_path):
    small.write_text(small.read_text() + "network: {latency: [1ms, 80ms]}\n")
    options = ["compare", small, "-j", "1", "-s", "range", "--trace", tmp_path / "t", "--format", "json"]
    traces = {}
    for seed in ("4", "5"):
        assert json.loads(lab(*options, "--seed", seed).out)["seed"] == int(seed)
        traces[seed] = (tmp_path / "t" / "small.range.jsonl").read_bytes()
    assert json.loads(lab(*options).out)["seed"] == 4
    assert (tmp_path / "t" / "small.range.jsonl").read_bytes() == traces["4"]
    assert traces["4"] != traces["5"]


# --- seeds and grids


def test_seeds_are_the_scenarios_and_those_that_follow_it(lab, small):
    small.write_text(small.read_text() + "network: {latency: [1ms, 80ms]}\n")
    options = ["compare", small, "-j", "1", "-s", "range", "-s", "sticky", "--format", "json"]
    document = json.loads(lab(*options, "--seeds", "3").out)
    assert (document["seed"], document["seeds"]) == (4, [4, 5, 6])
    singles = [figures_of(lab(*options, "--seed", seed)) for seed in (4, 5, 6)]
    for entry in document["strategies"]:
        for name, values in entry["values"].items():
            assert values == [figures[entry["strategy"]][name] for figures in singles]
            known = sorted(value for value in values if value is not None)
            assert entry["spread"][name] == ([known[0], known[-1]] if known else [None, None])
            assert entry["metrics"][name] == (median(known) if known else None)
    assert len({*document["strategies"][0]["values"]["stopped_partition_seconds"]}) > 1


@pytest.mark.slow
def test_without_a_number_of_seeds_there_are_ten(lab, small):
    options = ["compare", small, "-j", "1", "-s", "range", "-s", "sticky"]
    answer = lab(*options, "--format", "json")
    assert json.loads(answer.out)["seeds"] == list(range(4, 14))
    assert answer == lab(*options, "--seeds", "10", "--format", "json")
    assert json.loads(lab(*options, "--seed", "4", "--format", "json").out)["seeds"] == [4]


@pytest.mark.slow
@pytest.mark.parametrize(("times", "seeds"), [(10, 10), (9.99, 9), (6, 6), (5.99, 1), (0, 1)])
def test_runs_of_many_events_have_fewer_seeds_and_one_if_they_are_too_few(
    lab, small, monkeypatch, tmp_path, times, seeds
):
    """All runs together have as many events as the budget at most, as estimated from the first seed."""
    options = ["compare", small, "-j", "1", "-s", "range", "-s", "sticky"]
    assert lab(*options, "--seed", "4", "--trace", tmp_path / "one").status == 0
    events = sum(len(read_trace(path).events) for path in (tmp_path / "one").iterdir())
    monkeypatch.setattr(compare_module, "MOST_EVENTS", int(times * events))
    document = json.loads(lab(*options, "--trace", tmp_path / "t", "--format", "json").out)
    assert document["seeds"] == list(range(4, 4 + seeds))
    numbers = ["", *(f".seed={seed}" for seed in range(5, 4 + seeds))]
    names = {f"small.{strategy}{number}.jsonl" for strategy in ("range", "sticky") for number in numbers}
    assert {path.name for path in (tmp_path / "t").iterdir()} == names
    assert (document["decision"] == "too_few") is (seeds == 1)


def test_after_an_error_there_is_one_seed(lab, small, tmp_path):
    (tmp_path / "mine.py").write_text(RAISES)
    answer = lab("compare", small, "-j", "1", "-s", f"{tmp_path}/mine.py:Mine", "-s", "range")
    assert answer.status == 1
    assert answer.out.splitlines()[0].endswith(" · seed 4")


@pytest.mark.slow
def test_every_strategy_is_run_with_every_combination_of_settings(lab, small):
    """And each as in a scenario that has the settings."""
    document = yaml.safe_load(small.read_text())
    settings = ["--set", "session.timeout.ms=6s,30s", "--set", "heartbeat.interval.ms=500"]
    options = ["-j", "1", "-s", "range", "-s", "sticky"]
    entries = json.loads(lab("compare", small, *options, *settings, "--format", "json").out)["strategies"]
    assert [(e["strategy"], *e["settings"].values()) for e in entries] == [
        (strategy, session, 500) for strategy in ("range", "sticky") for session in (6_000, 30_000)
    ]
    for entry in entries:
        small.write_text(yaml.safe_dump({**document, "config": entry["settings"]}))
        alone = lab("compare", small, "-j", "1", "-s", entry["strategy"], "--format", "json")
        assert figures_of(alone)[entry["strategy"]] == entry["metrics"]


SESSIONS = ["-s", "range", "-s", "watcher", "--set", "zookeeper.session.timeout.ms=10s,30s"]


@pytest.mark.slow
def test_a_setting_that_a_strategy_does_not_read_is_null_or_empty(lab, small):
    options = ["compare", small, "--seed", "4", *SESSIONS, "--set", "retry.backoff.ms=50,60", "--format"]
    found = [
        (entry["strategy"], *entry["settings"].values())
        for entry in json.loads(lab(*options, "json").out)["strategies"]
    ]
    assert [row[0] for row in found] == ["range"] * 2 + ["watcher"] * 4
    assert sorted(map(str, found[0][1:])) == ["50", "None"]
    rows = list(csv.DictReader(io.StringIO(lab(*options, "csv").out)))
    assert [row["zookeeper.session.timeout.ms"] for row in rows] == ["", "", *["10000"] * 2, *["30000"] * 2]
    assert [row["retry.backoff.ms"] for row in rows] == ["50", "60"] * 3


# --- traces


def test_traces_are_kept_under_the_names_of_scenario_strategy_settings_and_seeds(lab, small, tmp_path):
    folder = tmp_path / "new"
    small.write_text(small.read_text().replace("name: small", "name: a/b c"))
    options = ["-j", "1", "-s", "range+classic", "--set", "session.timeout.ms=6s,30s", "--trace", folder]
    assert lab("compare", small, *options, "--seed", "4").status == 0
    assert lab("compare", small, *options, "--seeds", "2").status == 0
    names = [f"a_b_c.range+classic.session.timeout.ms={timeout}" for timeout in ("6s", "30s")]
    numbers = ["", ".seed=4", ".seed=5"]
    assert {p.name for p in folder.iterdir()} == {f"{name}{n}.jsonl" for name in names for n in numbers}
    trace = read_trace(folder / f"{names[0]}.seed=5.jsonl")
    assert (trace.scenario, trace.strategy, trace.started.seed) == ("a/b c", "range+classic", 5)


def test_a_trace_that_cannot_be_written_is_one_error_and_leaves_nothing_half_written(lab, small, tmp_path):
    (tmp_path / "t" / "small.range.jsonl").mkdir(parents=True)
    error = the_error(lab("compare", small, "-j", "1", "-s", "range", "--trace", tmp_path / "t"))
    assert "a path that cannot be written (Is a directory)" in error
    assert [p.name for p in (tmp_path / "t").iterdir()] == ["small.range.jsonl"]


# --- processes and terminals


@pytest.mark.slow
def test_several_processes_give_the_figures_of_one(small, tmp_path):
    """And the same traces."""
    done = {}
    for jobs in ("1", "2"):
        options = ["-s", "range", "-s", "cooperative-sticky", "--seeds", "4", "--format", "json"]
        options += ["--trace", tmp_path / jobs]
        done[jobs] = in_a_process("compare", small, "-j", jobs, *options)
        assert (done[jobs].returncode, done[jobs].stderr) == (0, b"")
    assert done["1"].stdout == done["2"].stdout
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes()


def on_a_terminal(columns, *arguments):
    """What a command prints on a terminal of so many columns, line by line."""
    ours, its = pty.openpty()
    environ = environment(COLUMNS=str(columns), LINES="60", TERM="xterm", NO_COLOR="1")
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=its, stderr=subprocess.PIPE, env=environ
    ) as process:
        os.close(its)
        said = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            said += piece
        os.close(ours)
        assert process.stderr.read() == b""
    assert process.returncode == 0
    return re.sub(r"\x1b\[\d*m", "", said.decode()).splitlines()


def shown_at(columns, monkeypatch):
    """The tables of the four strategies on a terminal of so many columns, each as its lines."""
    figures = {s: {a.metric: 1_234.0 * n for a in COLUMNS} for n, s in enumerate(DEFAULT_STRATEGIES, 1)}
    screen = screen_of("day", grid_of(**figures), SPECS)
    written = io.StringIO()
    console = Console(file=written, width=columns, force_terminal=True, color_system=None)
    monkeypatch.setattr(compare_module, "stdout", lambda: console)
    compare_module.print_screen(screen)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    assert max(map(len, lines)) <= columns
    assert "…" not in written.getvalue()
    _title, _verdict, *tables, _legend = "\n".join(lines).split("\n\n")
    return [table.splitlines() for table in tables]


NAMES = ["range (now)", *DEFAULT_STRATEGIES[1:]]


@pytest.mark.parametrize("columns", [*range(46, 50), *range(50, 90, 4)])
def test_on_a_narrow_terminal_figures_that_do_not_fit_go_below(columns, monkeypatch):
    """Nothing is cut off, whatever the width."""
    tables = shown_at(columns, monkeypatch)
    assert [[re.split(" {2,}", line)[0] for line in table[2:]] for table in tables] == [NAMES] * len(tables)
    (whole,) = shown_at(200, monkeypatch)
    assert [word for table in tables for word in table[1].split()] == whole[1].split()


def test_a_terminal_that_is_wide_enough_has_one_table_and_one_column_less_has_two(monkeypatch):
    (whole,) = shown_at(200, monkeypatch)
    wide = max(map(len, whole))
    for columns, tables in ((wide, 1), (wide - 1, 2)):
        assert len(shown_at(columns, monkeypatch)) == tables


@pytest.mark.slow
def test_a_real_terminal_is_as_wide_as_it_says(small):
    lines = [line.rstrip() for line in on_a_terminal(50, "compare", small, "-j", "1", "--seeds", "2")]
    assert max(map(len, lines)) <= 50
    assert sum(line.startswith("range (now) ") for line in lines) > 1
    assert not [line for line in lines if "…" in line]


def test_in_a_pipe_the_table_is_as_wide_as_it_needs_to_be(lab, small, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    answer = lab("compare", small, "-j", "1", "--seeds", "2")
    assert "…" not in answer.out
    assert [row[0] for row in rows_in(answer)] == NAMES
    assert answer.out.count("range (now)") == 1


# --- wrong use


def test_every_message_changes_no_figure(lab, small, every_message):
    command = ("compare", small, "-s", "range", "--all", "--seed", "4")
    assert lab(*command, "--every-message") == lab(*command)
    assert every_message == [True, False]
