"""A row for each scenario and strategy, whatever is in them."""

import json
import re
import signal
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from math import isnan

import pytest

from coordinator_core.errors import PluginError
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import DISTRIBUTION, Registry, default_registry
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.scenarios.groups import parse_group, scenario_document
from rebalance_lab.scoring import rows as rows_module
from rebalance_lab.scoring.documents import seed_of
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import (
    Job,
    Scorer,
    plugin_versions,
    program_version,
    registry_with,
)
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from rebalance_lab.verdicts.measuring import measure
from rebalance_spark.schema import SCORE_COLUMNS, score_columns
from tests.approved import approved
from tests.examples import rest_slow
from tests.rebalance_spark.strangers import ME, SMALL_TEXT

OWN = {column.name for column in SCORE_COLUMNS}
CONSTANT = {
    "scenario_id",
    "strategy",
    "scenario_hash",
    "job_hash",
    "run_id",
    "fidelity",
    "status",
    "wall_ms",
    "cpu_ms",
    "program_version",
    "plugin_versions",
}


def scorer(*strategies, **job):
    job.setdefault("plugins", (ME,))
    return Scorer(Job(strategies, **job))


def rows_of(*strategies, text=SMALL_TEXT, **job):
    return scorer(*strategies, **job).rows("row-1", text)


def row_of(strategy, text=SMALL_TEXT, **job):
    (row,) = rows_of(strategy, text=text, **job)
    return row


def figures_in(row):
    return {name: value for name, value in row.items() if name not in OWN}


def told(figures):
    """Without those that this run has not."""
    return {name: value for name, value in figures.items() if not isnan(value)}


def outcome(row):
    """Of a row without figures: status and error, everything else being as it should."""
    assert set(row) - {"seed"} == CONSTANT | {"error"}
    return row["status"], row["error"]


# --- rows that are ok


def test_a_row_says_whose_figures_it_has():
    row = row_of("range")
    assert (row["scenario_id"], row["strategy"], row["fidelity"]) == ("row-1", "range", "protocol")
    assert (row["status"], row["seed"]) == ("ok", 4)
    assert row["wall_ms"] > 0
    assert row["cpu_ms"] > 0
    assert "error" not in row


def test_the_figures_are_those_of_the_simulated_protocol():
    registry = default_registry()
    trace = simulate(load_scenario_text(SMALL_TEXT, "x"), "sticky", registry)
    assert figures_in(row_of("sticky", plugins=())) == told(measure(trace, registry))


def test_the_figures_of_a_plan_are_those_that_a_plan_can_tell():
    registry = default_registry()
    trace = plan(load_scenario_text(SMALL_TEXT, "x"), "sticky", registry)
    row = row_of("sticky", fidelity=Fidelity.PLAN, plugins=())
    assert row["fidelity"] == "plan"
    assert figures_in(row) == told(measure(trace, registry, planned=True))
    assert set(figures_in(row)) < set(figures_in(row_of("sticky", plugins=())))
    assert "messages" not in row


def test_a_plan_has_the_members_that_are_missing_of_a_group_that_runs_at_the_start():
    """Members can handle 30 records/s. They start at time 0, so that the group is at rest at the end."""
    document = json.loads(SMALL_TEXT) | {"phase": "0s"}
    for member in document["members"]:
        member["process_rate"] = 30
    drawn = row_of("range", json.dumps(document), plugins=(), fidelity=Fidelity.PLAN)
    assert "missing_members" not in drawn
    for member, numbers in zip(document["members"], ([0, 1], [2, 3]), strict=True):
        member["owned"] = {"orders": numbers}
    run, planned = (row_of("range", json.dumps(document), plugins=(), fidelity=each) for each in Fidelity)
    assert planned["missing_members"] == run["missing_members"] > 0


def test_every_strategy_has_a_row_in_the_order_asked_for():
    assert [r["strategy"] for r in rows_of("sticky", "range", "raising", "roundrobin")] == [
        "sticky",
        "range",
        "raising",
        "roundrobin",
    ]


def test_one_strategy_may_be_meant_alone():
    made = scorer("sticky", "range")
    assert [r["strategy"] for r in made.rows("x", SMALL_TEXT, [1])] == ["range"]
    assert len(made.rows("x", SMALL_TEXT)) == 2


def test_a_seed_goes_before_that_of_the_scenario():
    lossy = SMALL_TEXT[:-1] + ', "network": {"latency": [1, 900]}}'
    as_it_is, other = row_of("range", lossy), row_of("range", lossy, seed=5)
    assert (as_it_is["seed"], other["seed"]) == (4, seed_of("row-1", 5))
    assert row_of("range", seed=0)["seed"] == seed_of("row-1")
    assert figures_in(as_it_is) != figures_in(other)
    alike = lossy.replace('"seed": 4', f'"seed": {seed_of("row-1", 5)}')
    assert figures_in(other) == figures_in(row_of("range", alike))


def test_scenarios_without_a_seed_have_another_one_each():
    """With one for all, what is due to chance would be there in each hour of a group."""
    text = SMALL_TEXT.replace('"seed": 4, ', "")
    assert "seed" not in text
    seeds = [scorer("range").rows(name, text)[0]["seed"] for name in ("hour=7/a", "hour=8/a", "hour=7/a")]
    assert seeds[0] == seeds[2] != seeds[1]


def test_every_column_of_a_row_is_in_the_schema():
    names = {column.name for column in score_columns(registry_with((ME,)).metrics().values())}
    for row in rows_of("range", "raising"):
        assert set(row) <= names


# --- rows that are not


RETRIES = SMALL_TEXT[:-1] + ', "config": {"rebalance.max.retries": 1}}'
FAILING = ("raising", "nonsense", "leaving", "rnage", "range+nothing")
UNREADABLE = {
    "nothing": "",
    "no YAML": "members: [",
    "too many levels": "[\n" * 1_100,
    "a number of nothing": "topics: !!int ''",
    "fields that are missing": '{"name": "x"}',
    "a member that is not there": SMALL_TEXT.replace('"leave": "b"', '"leave": "c"'),
    "rates from a file": SMALL_TEXT.replace('"rate": 40', '"rates_csv": "no/such.csv", "interval": "5m"'),
    "a setting that no strategy reads": RETRIES,
    "a group that is none": '{"topics": {"t": {"partitions": 4}}, "members": 3}',
}
NAMED = {
    "no name": "",
    "a name of two lines": "a\nb",
    "escapes": "a\x1b[31m",
    "letters": "\u00e9 b",
}


def test_rows_that_fail_have_the_errors_that_were_approved():
    """An error of a strategy is in its row alone, one of a scenario under every strategy."""
    texts = {}
    for fidelity in Fidelity:
        for strategy in FAILING:
            before, row, after = rows_of("range", strategy, "sticky", fidelity=fidelity)
            assert (before["status"], after["status"]) == ("ok", "ok")
            texts[f"{strategy}, {fidelity.value}"] = [failure(row)]
    for title, text in UNREADABLE.items():
        texts[title] = [failure(row) for row in rows_of("range", "sticky", text=text)]
    for title, name in NAMED.items():
        texts[title] = [failure(row) for row in scorer("range").rows(name, "")]
    assert {title: found for title, found in texts.items() if len(set(found)) > 1} == {}
    approved("scores", {title: found[0] for title, found in texts.items()})


def failure(row):
    """The seed and the error of a row that failed, without the place in the code of an author."""
    status, error = outcome(row)
    assert status == "error"
    return f"seed {row['seed']}: {re.sub(r' [(][^ ]+[.]py:[0-9]+[)]', '', error)}"


def test_more_levels_than_libyaml_reads_are_an_error():
    """Some of its releases refuse them in their own words."""
    assert outcome(row_of("range", "[" * 100_000))[1].startswith("row-1:")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (KeyError("missing"), "KeyError: 'missing'"),
        (SystemExit("enough"), "SystemExit: enough"),
        (RuntimeError(" first\n\n\tsecond  \r\nthird\n"), "RuntimeError: first second third"),
    ],
)
def test_what_is_no_error_of_ours_is_named_with_its_kind_in_a_line(monkeypatch, raised, said):
    def broken(*_):
        raise raised

    monkeypatch.setattr(rows_module, "simulate", broken)
    assert outcome(row_of("range")) == ("error", said)


@pytest.mark.parametrize("which", [None, [0]])
def test_a_setting_that_one_strategy_reads_is_no_error_under_the_others(which):
    made = scorer("range", "watcher")
    assert {row["status"] for row in made.rows("row-1", RETRIES, which)} == {"ok"}


MINE = b"""
from assignors.range import RangeAssignor
from beside import failing

class Mine(RangeAssignor):
    def solve(self, problem):
        fails = problem.cluster.topics["orders"].partitions == 5
        return failing(problem) if fails else super().solve(problem)
"""


def test_a_file_of_a_strategy_is_loaded_from_the_job_where_the_file_is_not(tmp_path, search_path):
    gone = str(tmp_path / "gone" / "mine.py")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "beside.py").write_text("def failing(problem): raise LookupError('five')\n")
    name = f"{gone}:Mine+static"
    made = Scorer(Job((name,), Fidelity.PLAN, sources=((gone, MINE),), start=f"{gone}:Mine"))
    (row,) = made.rows("x", SMALL_TEXT)
    assert (row["strategy"], row["status"]) == (name, "ok")
    assert figures_in(row) == figures_in(row_of("range+static", plugins=(), fidelity=Fidelity.PLAN))
    (row,) = made.rows("x", SMALL_TEXT.replace('"partitions": 4', '"partitions": 5'))
    assert f"raised LookupError: five ({gone}" in row["error"] or "beside.py:1" in row["error"]
    assert "rebalance_lab_source" not in row["error"]


def test_a_source_that_cannot_be_imported_is_an_error_with_its_line():
    (row,) = Scorer(Job(("/no/bad.py:Bad",), Fidelity.PLAN, sources=(("/no/bad.py", b"\n1 / 0"),))).rows(
        "x", SMALL_TEXT
    )
    assert row["status"] == "error"
    assert "ZeroDivisionError: division by zero (/no/bad.py:2)" in row["error"]


# --- rows that take too long


@pytest.mark.parametrize("fidelity", rest_slow(Fidelity))
def test_an_endless_loop_is_stopped_and_the_next_strategy_scored(fidelity):
    made = scorer("endless", "range", timeout=0.2, fidelity=fidelity)
    (row,) = made.rows("x", SMALL_TEXT, [0])
    made.job = replace(made.job, timeout=60.0)
    (after,) = made.rows("x", SMALL_TEXT, [1])
    assert outcome(row) == ("timeout", "no result within 0.2 s")
    assert row["seed"] == 4
    assert after["status"] == "ok"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_scenario_that_takes_too_long_to_read_is_a_timeout_under_every_strategy(monkeypatch):
    def never(*_, **__):
        while True:
            pass

    monkeypatch.setattr(rows_module, "load_scenario_or_group", never)
    rows = rows_of("range", "sticky", timeout=0.2)
    assert [outcome(row) for row in rows] == [("timeout", "no result within 0.2 s")] * 2


# --- plugins and versions


def test_assignors_and_metrics_of_a_module_are_known():
    row = row_of("first-takes-all")
    assert row["status"] == "ok"
    assert row["strange_figure"] == 42.0
    assert "strange_figure" not in row_of("range", plugins=())


def test_a_figure_that_a_run_does_not_have_is_left_out():
    assert "no_figure" in registry_with((ME,)).metrics()
    assert "no_figure" not in row_of("range")


COUNTING = ("range", "sticky", "cooperative-sticky session.timeout.ms=6s", "range+static")
CRASH_TEXT = json.dumps({**json.loads(SMALL_TEXT), "events": [{"at": "12s", "crash": "b"}]})


def test_rows_without_traces_are_those_with_traces(monkeypatch):
    scored = rows_of(*COUNTING, text=CRASH_TEXT, plugins=(), fidelity=Fidelity.PLAN)
    monkeypatch.setattr(rows_module, "keeps_topics", lambda scenario: False)
    traced = rows_of(*COUNTING, text=CRASH_TEXT, plugins=(), fidelity=Fidelity.PLAN)
    assert list(map(figures_in, scored)) == list(map(figures_in, traced))
    assert [row["strategy"] for row in scored] == list(COUNTING)
    assert all(row["cpu_ms"] > 0 for row in scored)


def test_rows_have_their_own_errors_if_plans_without_traces_fail(monkeypatch):
    monkeypatch.setattr(rows_module, "planned_ledgers", lambda *_: 1 / 0)
    monkeypatch.setattr(rows_module, "plan", lambda *_: [][0])
    rows = rows_of("range", "sticky", plugins=(), fidelity=Fidelity.PLAN)
    assert [outcome(row) for row in rows] == [("error", "IndexError: list index out of range")] * 2


def test_traces_are_made_for_a_metric_that_reads_them(monkeypatch):
    registry = registry_with(())
    spec = MetricSpec("lines", "", lambda history: len(history.trace.events), planned=True, doc="Lines.")
    monkeypatch.setattr(registry, "metrics", lambda: {"lines": spec})
    assert row_of("range", plugins=(), fidelity=Fidelity.PLAN)["lines"] > 10


def test_a_metric_that_fails_is_named_in_the_row_and_leaves_the_others(monkeypatch):
    def broken(history):
        raise ZeroDivisionError("no\n  members")

    spec = MetricSpec("broken_figure", "", broken, planned=True, doc="Fails.")
    registry = registry_with((ME,))
    metrics = {"broken_figure": spec, **registry.metrics()}
    monkeypatch.setattr(registry, "metrics", lambda: metrics)
    row = row_of("range", fidelity=Fidelity.PLAN)
    assert row["status"] == "ok"
    assert "broken_figure" in row["error"]
    assert "ZeroDivisionError: no members" in row["error"]
    assert row["rounds"] == 1
    assert "broken_figure" not in row


def test_a_group_is_scored_as_a_scenario_in_which_its_first_member_leaves():
    group = {
        "topics": {"t": {"partitions": 4}},
        "members": [{"id": name, "topics": ["t"]} for name in ("a", "b")],
    }
    made = json.dumps(scenario_document(parse_group(group, "row-1"), "row-1"))
    assert figures_in(row_of("range", json.dumps(group))) == figures_in(row_of("range", made))


def test_a_module_is_found_by_its_name_on_the_search_path(tmp_path, monkeypatch):
    (tmp_path / "found_by_name.py").write_text(
        "from assignors.range import RangeAssignor\n"
        "from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl\n"
        "@hookimpl\n"
        "def assignors():\n"
        "    return [AssignorSpec('found', type('Named', (RangeAssignor,), {'name': 'found'}))]\n"
    )
    with pytest.raises(PluginError):
        registry_with(("found_by_name",))
    monkeypatch.syspath_prepend(tmp_path)
    row = row_of("found", plugins=("found_by_name",))
    assert (row["status"], row["plugin_versions"]) == ("ok", "found_by_name")
    assert figures_in(row) == figures_in(row_of("range", plugins=()))


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("no_such_module", "'no_such_module', import: ModuleNotFoundError: No module named"),
        ("json", "plugin 'json', registration: no function in it is marked"),
    ],
)
def test_a_module_that_is_no_plugin_is_an_error_before_any_row(module, error):
    with pytest.raises(PluginError, match=error):
        scorer("range", plugins=(module,))


def test_the_same_modules_are_registered_once_a_process():
    assert registry_with((ME,)) is registry_with([ME])
    assert registry_with((ME,)) is not registry_with(())


def test_a_row_has_the_versions_of_the_program_and_of_plugins():
    row = row_of("range")
    assert row["program_version"] == program_version() == version(DISTRIBUTION)
    assert ME in row["plugin_versions"].split(", ")
    assert DISTRIBUTION not in row["plugin_versions"]


def test_plugins_are_named_once_a_distribution_in_order_and_our_own_not_at_all():
    registry = Registry()
    for name, distribution in (("b", "z-dist"), ("a", "z-dist"), ("local", "-"), ("own", DISTRIBUTION)):
        plugin = type("Plugin", (), {"metrics": hookimpl(lambda self: [])})()
        registry.register(plugin, name=name, distribution=distribution, version="2")
    assert plugin_versions(registry) == "local, z-dist 2"


def test_a_program_without_metadata_has_no_version(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(rows_module, "version", missing)
    assert program_version() == "unknown"


def test_only_the_chosen_metrics_are_in_the_row_and_make_another_score():
    chosen = Scorer(Job(("range",), Fidelity.PLAN, metrics=("rounds",))).rows("a", SMALL_TEXT)[0]
    assert chosen["rounds"] == row_of("range", fidelity=Fidelity.PLAN)["rounds"]
    assert "imbalance" not in chosen


def test_a_share_of_the_time_is_that_of_one_strategy(monkeypatch):
    monkeypatch.setattr(rows_module, "perf_counter", lambda: 9.0)
    monkeypatch.setattr(rows_module, "process_time", lambda: 5.0)
    assert rows_module.Spent(1_000.0, 1_000.0).since(4) == rows_module.Spent(2_000.0, 1_000.0)
    assert rows_module.Spent(1_000.0, 1_000.0).since() == rows_module.Spent(8_000.0, 4_000.0)


def test_a_row_has_the_settings_of_its_strategy():
    scenario = load_scenario_text(SMALL_TEXT, "small")
    configured = scorer("range")._configured(scenario, "range session.timeout.ms=9s")
    assert configured.config == {**scenario.config, "session.timeout.ms": 9_000}
    assert scorer("range")._configured(scenario, "range") is scenario
