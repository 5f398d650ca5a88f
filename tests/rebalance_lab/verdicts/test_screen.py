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
    BETTER,
    WORSE,
    by_group,
    head,
    largest_part,
    legend,
    rest,
    screen_of,
    table,
    title,
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


def said(grid, load=None, enough=None):
    return "\n".join(head(screen_of("day", grid, [], load=load, enough=enough)))


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
    "a hot partition": said(TWO, loaded(900.0, hot={"t 3": 400.0})),
}


def test_the_heads_are_those_that_were_approved():
    approved("screens", CASES)


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


def test_the_table_has_a_row_a_strategy_and_marks_what_is_known_against_the_present_one():
    own = {
        "a": figures(UP, longest_stop_seconds=LESS, rounds=2, moved_partitions=DOWN),
        "b": figures(LESS, longest_stop_seconds=UP, rounds=2, moved_partitions=UP),
    }
    made = table(screen_of("day", grid_of(**own), []))
    assert [row[0].text for row in made.rows] == ["a (now)", "b"]
    assert [cell.text for cell in made.rows[1]][1:3] == [f"17.5{BETTER}", f"35{WORSE}"]
    turned = table(screen_of("day", grid_of(now="b", **own), []))
    assert turned.rows[0][1].text == f"35{WORSE}"


def test_columns_are_those_that_tell_something():
    calm = screen_of("day", grid_of(a=figures(UP) | load(9, 0, 0.5), b=figures(LESS) | load(9, 0, 0.5)), [])
    assert [aim.metric for aim in calm.aims] == ["stopped_partition_seconds"]
    late = screen_of("day", grid_of(a=figures(UP) | load(9, 8, 0.5), b=figures(LESS) | load(9, 0, 1.6)), [])
    assert [aim.metric for aim in late.aims][1:] == ["lag_at_end", "utilization"]
    own = MetricSpec("mine", "x", float, headline=True)
    assert [aim.metric for aim in screen_of("day", grid_of(a={"mine": 1.0}), [own]).aims] == ["mine"]


def test_a_single_strategy_has_no_balance_to_compare():
    own = figures(UP, longest_stop_seconds=UP, weighted_imbalance=2.0)
    assert [aim.metric for aim in screen_of("day", grid_of(a=own), []).aims] == [
        "stopped_partition_seconds",
        "longest_stop_seconds",
    ]


def test_a_document_has_a_schema_and_can_be_read_by_it():
    written = msgspec.json.encode(as_document(screen_of("day", TWO, [], load=CALM)))
    assert "strategies" in msgspec.json.schema(ScreenDocument)["$defs"]["ScreenDocument"]["properties"]
    read = msgspec.json.decode(written, type=ScreenDocument)
    assert [(each.label, each.front) for each in read.strategies] == [("a", True), ("b", True)]
    assert read.verdict[0].text == "Choose b instead of a: stop per partition 35 s -> 17.5 s."


def test_groups_of_metrics_that_nobody_knows_follow_the_others():
    specs = [MetricSpec(n, "", float, group=g) for n, g in (("a", ""), ("b", "own"), ("c", "lag"))]
    assert list(by_group(specs)) == ["lag", "others", "own"]


def test_what_a_batch_means_is_echoed():
    assert "500 records in 2 s = 250/s each" in legend(screen_of("day", TWO, [], load=CALM))
    assert title(screen_of("day", TWO, [], load=CALM)) == (
        "day · 12 members, 60 partitions, 1,860 records/s · load 62 % (68 % with one away) · 6 seeds"
    )


# --- why and try


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_stopped_time_can_be_the_largest(part):
    grid = grid_of(a=figures(**{part: 3.0}), protocol=REGISTRY.protocol("classic"))
    found, share = largest_part(grid, 0)
    assert (found.startswith(part), share) == (True, 1.0)
    ((name, text),) = rest(screen_of("day", grid, []))
    assert (name, text.startswith("100 % of the stops of a: ")) == ("Why", True)


def test_without_stops_there_is_no_why():
    assert rest(screen_of("day", grid_of(a=figures()), [])) == []


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (figures(LESS, rounds=2), "helps"),
        (figures(LESS, rounds=3), "helps-at-a-price"),
        (figures(UP, rounds=2), "does-not-help"),
        (figures(DOWN, rounds=2), "may-help"),
    ],
)
def test_a_trial_says_what_it_did_and_its_price(after, kind):
    found = tried(grid_of(a=figures(UP, rounds=2), b=after), 0, 1, "x=1s")
    assert found.kind == kind
    assert "35 s -> " in str(found)
    assert ("price: rounds 2 -> 3" in str(found)) is (kind == "helps-at-a-price")


def test_a_trial_that_does_not_work_does_not_help():
    found = tried(grid_of(a=figures(UP), b=figures(0.0), findings={"b": ["it failed"]}), 0, 1, "x=1s")
    assert str(found) == "x=1s does not work: it failed"


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
