"""The answer on a screen: each kind of verdict, the table, why, and what is said of a load."""

import re
from dataclasses import replace
from math import nan

import msgspec
import pytest
from hypothesis import given, settings

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.causes import PARTS
from rebalance_lab.verdicts.aims import STOPS
from rebalance_lab.verdicts.finding import TEMPLATES, Finding
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.of_traces import screen_of_traces
from rebalance_lab.verdicts.screen import (
    by_group,
    head,
    largest_part,
    legend,
    rest,
    screen_of,
    table,
    tried,
)
from rebalance_lab.verdicts.screen_formats import ScreenDocument, as_document
from rebalance_lab.verdicts.tables import brief
from rebalance_lab.verdicts.verdict import Enough
from tests.approved import approved
from tests.examples import scaled
from tests.rebalance_lab.verdicts.grids import DOWN, LESS, UP, figures, grid_of, load
from tests.rebalance_lab.verdicts.test_choice import grids

REGISTRY = default_registry()


def loaded(rate, **more):
    return Load(12, 60, rate, 3_000.0, 250.0, 500, 2_000, **more)


CALM = loaded(1_860.0)


def said(grid, load=None, enough=None, metrics=()):
    """What a screen says: its head, the table, what is below it, and the legend."""
    screen = screen_of("day", grid, metrics, load=load, enough=enough)
    made = table(screen)
    rows = [
        [name.replace("\n", " ") for name in made.head],
        *([cell.text for cell in row] for row in made.rows),
    ]
    below = [f"{name}: {text}" for name, text in rest(screen)]
    return "\n".join(
        [*head(screen), *(" | ".join(row).rstrip() for row in rows), *below, legend(screen)]
    ).rstrip()


TWO = grid_of(a=figures(UP, moved_partitions=4, rounds=2), b=figures(LESS, moved_partitions=9, rounds=2))
CASES = {
    "what is chosen, and its price": said(TWO),
    "kept, and what another one would cost": said(replace(TWO, now=1)),
    "requests alone are no other aim": said(
        grid_of(a=figures(UP) | {"messages": 100.0}, b=figures(LESS) | {"messages": 190.0})
    ),
    "alike, and better in something": said(
        grid_of(a=figures(UP, duplicate_records=9.0), b=figures(UP, duplicate_records=0.0))
    ),
    "not known": said(grid_of(a=figures(UP), b=figures(DOWN), c=figures(tuple(3 * v for v in UP)))),
    "too few seeds": said(grid_of(2, a=figures(9.0), b=figures(1.0))),
    "as good and better in something": said(
        grid_of(a=figures(UP, moved_partitions=9, rounds=2), b=figures(UP, moved_partitions=4, rounds=2))
    ),
    "two that do alike": said(grid_of(**{"a": figures(UP), "a+x": figures(LESS), "a+x+y": figures(LESS)})),
    "the present one does not work": said(
        grid_of(a=figures(0.0), b=figures(5.0), findings={"a": ["nobody works; start somebody", "more"]})
    ),
    "none works": said(grid_of(a=figures(0.0), b=figures(5.0), findings={"a": ["x"], "b": ["x"]})),
    "one strategy": said(grid_of(a=figures(UP))),
    "carries the load better": said(
        grid_of(a=figures(9.0) | load(1_000, 900, 1.2), b=figures(20.0) | load(1_000, 0, 0.8))
    ),
    "does not carry it as well": said(
        grid_of(a=figures(90.0) | load(1_000, 900, 4.7), b=figures(80.0) | load(1_000, 900, 5.2))
    ),
    "a calm load": said(TWO, CALM),
    "little headroom": said(TWO, loaded(2_600.0), Enough(18, 0.4)),
    "little headroom, nothing tried": said(TWO, loaded(2_600.0)),
    "just enough while one is away": said(TWO, loaded(2_750.0)),
    "just enough, and too much while one is away": said(TWO, loaded(3_000.0)),
    "too much while one is away": said(TWO, loaded(2_850.0), Enough(18, 0.36)),
    "too much at any time, and nothing tried": said(replace(TWO, now=1), loaded(3_150.0)),
    "a high load, and the present one does not work": said(
        grid_of(a=figures(0.0), b=figures(5.0), findings={"a": ["nobody works; start somebody"]}),
        loaded(3_150.0),
    ),
    "columns of a load that is carried": said(
        grid_of(a=figures(UP) | load(9, 0, 0.5), b=figures(LESS) | load(9, 0, 0.5))
    ),
    "columns of a load that is not": said(
        grid_of(a=figures(UP) | load(9, 8, 0.5), b=figures(LESS) | load(9, 0, 1.6))
    ),
    "a column of a plugin": said(
        grid_of(a={"mine": 1.0}), metrics=[MetricSpec("mine", "x", float, headline=True)]
    ),
    "no balance of a single strategy": said(
        grid_of(a=figures(UP, longest_stop_seconds=UP, weighted_imbalance=2.0))
    ),
    "no stops": said(grid_of(a=figures())),
    "a hot partition": said(TWO, loaded(900.0, hot={"t 3": 400.0})),
}


TRIALS = {
    "a trial that helps": figures(LESS, rounds=2),
    "a trial that helps at a price": figures(LESS, rounds=3),
    "a trial that does not help": figures(UP, rounds=2),
    "a trial that may help": figures(tuple(value - 2 for value in DOWN), rounds=2),
    "a trial that is not known to help": figures(DOWN, rounds=2),
    "a trial that does not work": figures(0.0),
}


def test_the_screens_are_those_that_were_approved():
    trials = {}
    for title, after in TRIALS.items():
        faults = {"b": ["it failed"] if "not work" in title else []}
        found = tried(grid_of(a=figures(UP, rounds=2), b=after, findings=faults), 0, 1, "x=1s")
        trials[title] = f"{found.kind}: {found}"
    approved("screens", CASES | trials)


@pytest.mark.parametrize(("rate", "is_first"), [(1_860, False), (2_490, False), (2_550, True), (3_150, True)])
def test_from_85_percent_on_the_first_sentence_is_about_the_load(rate, is_first):
    first, second, *_ = said(TWO, loaded(float(rate))).splitlines()
    assert f"load {rate / 30:.0f} % ({rate / 27.5:.0f} % with one away)" in first
    assert second.startswith("First add members: " if is_first else "Choose b instead of a: ")


@settings(max_examples=scaled(300))
@given(grids())
def test_each_number_of_a_verdict_is_in_the_table_and_it_has_one_verb_of_choice(grid):
    screen = screen_of("day", grid, [])
    text = " ".join(map(str, screen.verdict))
    assert len(re.findall(r"\b(?:Choose|Keep|Nothing to choose|No strategy)\b", text)) == 1
    numbers = set(re.findall(r"\d[\d,.]*\d|\d", text.replace(f"{len(grid.units)} seed", "").rstrip(".")))
    medians = {brief(grid.median(name, i)) for name in grid.metrics for i in range(len(grid.setups))}
    shares = {brief(100 * grid.median("utilization", i)) for i in range(len(grid.setups))}
    ratios = {
        brief(round(grid.ratio(STOPS, i, grid.now), 1))
        for i in grid.working
        if grid.median(STOPS.key, i) >= 0
    }
    assert numbers <= medians | shares | ratios | {"6", "7", "8"}, text


def test_every_kind_of_finding_is_written_by_its_template():
    for kind, template in TEMPLATES.items():
        assert template.strip(" .")
        assert kind == kind.lower()
    assert str(Finding("backlog", {"now": "a", "left": 1234.0, "gone_s": 7_200.0})) == (
        "the backlog of a is gone 2 h after the run"
    )


# --- table


def test_a_document_has_a_schema_and_can_be_read_by_it():
    written = msgspec.json.encode(as_document(screen_of("day", TWO, [], load=CALM)))
    assert "strategies" in msgspec.json.schema(ScreenDocument)["$defs"]["ScreenDocument"]["properties"]
    read = msgspec.json.decode(written, type=ScreenDocument)
    assert [(each.label, each.front) for each in read.strategies] == [("a", True), ("b", True)]
    assert read.verdict[0].text == "Choose b instead of a: stop per partition 35 s -> 17.5 s."


def test_groups_of_metrics_that_nobody_knows_follow_the_others():
    specs = [MetricSpec(n, "", float, group=g) for n, g in (("a", ""), ("b", "own"), ("c", "lag"))]
    assert list(by_group(specs)) == ["lag", "others", "own"]


# --- why and try


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_stopped_time_can_be_the_largest(part):
    grid = grid_of(a=figures(**{part: 3.0}), protocol=REGISTRY.protocol("classic"))
    found, share = largest_part(grid, 0)
    assert (found.startswith(part), share) == (True, 1.0)
    ((name, text),) = rest(screen_of("day", grid, []))
    assert (name, text.startswith("100 % of the stops of a: ")) == ("Why", True)


def test_a_setting_without_effect_is_known():
    setups = [
        replace(setup, strategy="a", settings={"x.ms": (text, 1), "y.ms": (other, 2)})
        for setup, (text, other) in zip(
            grid_of(a={}, b={}, c={}, d={}).setups,
            [("1", "1"), ("2", "1"), ("1", "2"), ("2", "2")],
            strict=True,
        )
    ]
    made = grid_of(a=figures(9.0), b=figures(9.0), c=figures(5.0), d=figures(5.0))
    known = screen_of("day", replace(made, setups=setups), []).know
    assert [str(found) for found in known] == ["x.ms makes no difference"]


# --- simulated groups


def group(rate, *, process_rate, seed=1):
    document = {
        "name": "small",
        "seed": seed,
        "duration": "120s",
        "topics": {"t": {"partitions": 6, "rate": rate}},
        "members": [{"id": "m", "count": 3, "topics": ["t"], "process_rate": process_rate}],
        "events": [{"at": "40s", "leave": "m-0"}, {"at": "60s", "restart": "m-0"}],
    }
    return parse_scenario(document, where="small")


@pytest.mark.parametrize(("process_rate", "first"), [(100, "Keep "), (35, "First add members: ")])
def test_the_load_of_a_simulated_group_decides_what_is_said_first(process_rate, first):
    runs = [
        simulate(group(100, process_rate=process_rate, seed=seed), strategy, REGISTRY)
        for strategy in ("cooperative-sticky", "range")
        for seed in range(6)
    ]
    screen = screen_of_traces(runs, REGISTRY)
    assert str(screen.verdict[0]).startswith(first)
    assert screen.load.members == 3


@pytest.mark.parametrize(
    ("strategy", "is_kafka"),
    [("range", True), ("kip-848", True), ("cooperative-sticky+delay=10s", False), ("watcher", False)],
)
def test_a_trace_tells_whether_kafka_runs_its_strategy(strategy, is_kafka):
    run = simulate(group(100, process_rate=100), strategy, REGISTRY)
    assert [each.is_kafka for each in screen_of_traces([run], REGISTRY).grid.setups] == [is_kafka]


def test_a_group_without_figures_has_an_answer():
    assert said(grid_of(a=dict.fromkeys(figures(), nan), b=figures())) != ""
