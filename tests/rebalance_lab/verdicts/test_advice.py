"""Advice: which change is chosen, which are shown, and their price under troubles."""

from dataclasses import replace

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.advise import advice_on
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.advice import MOST_EVENTS, advised, choice_among_changes, lacking, plan_of
from rebalance_lab.verdicts.aims import CLOSED, CRASHED, MOVES, ROUNDS, STOPS, TWICE
from rebalance_lab.verdicts.changes import Kind, facts_of
from rebalance_lab.verdicts.choice import Decision
from rebalance_lab.verdicts.screen import head, table
from tests.places import SCENARIOS
from tests.rebalance_lab.verdicts.grids import LESS, UP, figures, grid_of

REGISTRY = default_registry()


@pytest.fixture(scope="module")
def plan():
    scenario = load_scenario(SCENARIOS / "leave.yaml")
    return plan_of(
        scenario, "range", facts_of(scenario, History(simulate(scenario, "range", REGISTRY))), REGISTRY
    )


def advice(plan, kinds, **candidates):
    grid = grid_of(8, kinds=kinds, **candidates)
    return advised(plan, grid, choice_among_changes(grid), [], None)


def eight(values):
    return (*values, *values[:2])


NOW, HALF = figures(eight(UP), rounds=2.0), figures(eight(LESS), rounds=2.0)


def test_a_single_change_is_chosen_before_several_that_help_more(plan):
    kinds = {"sticky": {Kind.HEARTBEAT}, "roundrobin": {Kind.HEARTBEAT, Kind.COOPERATIVE}}
    most = figures(tuple(value / 9 for value in eight(UP)), rounds=2.0)
    screen = advice(plan, kinds, range=NOW, sticky=HALF, roundrobin=most)
    assert screen.choice.chosen == 1
    assert [row[0].text for row in table(screen).rows] == ["range (now)", "sticky"]


def test_more_members_are_shown_and_not_chosen(plan):
    screen = advice(plan, {"sticky": {Kind.MEMBERS}}, range=NOW, sticky=HALF)
    assert (screen.choice.decision, screen.rows) == (Decision.ALONE, [0, 1])


def test_a_price_under_a_trouble_is_named(plan):
    own = NOW | {CRASHED.key: 10.0}
    screen = advice(plan, {"sticky": {Kind.STATIC}}, range=own, sticky=HALF | {CRASHED.key: 90.0})
    assert screen.choice.price == [CRASHED]
    assert head(screen)[-1] == "Stops count most; its price: stop if a member dies 10 s -> 90 s."


def test_what_people_ask_for_is_shown_even_if_it_does_not_help(plan):
    kinds = {"kip-848": {Kind.CONSUMER}, "sticky": {Kind.HEARTBEAT}}
    screen = advice(plan, kinds, range=HALF, **{"kip-848": NOW, "sticky": NOW})
    assert [screen.grid.label(i) for i in screen.rows] == ["range", "kip-848"]


def test_a_change_that_another_one_dominates_is_not_shown(plan):
    kinds = {"sticky": {Kind.HEARTBEAT}, "roundrobin": {Kind.RECORDS}}
    some = figures(tuple(value / 1.5 for value in eight(UP)), rounds=2.0)
    screen = advice(plan, kinds, range=NOW, sticky=HALF, roundrobin=some)
    assert [screen.grid.label(i) for i in screen.rows] == ["range", "sticky"]


@pytest.mark.parametrize(("events", "seeds"), [(0, 12), (MOST_EVENTS, 7)])
def test_runs_with_many_events_have_as_few_seeds_as_a_choice_needs(plan, events, seeds):
    history = plan.facts.history
    trace = replace(history.trace, events=[*history.trace.events, *history.trace.events[-1:] * events])
    facts = replace(plan.facts, history=History(trace))
    assert len(plan_of(plan.scenario, "range", facts, REGISTRY).seeds) == seeds


@pytest.mark.parametrize(
    ("client", "strategy", "found"),
    [("java", "optimal", "java"), ("java", "sticky", ""), ("kafka-python", "optimal", ""),
     ("java", "optimal+reconcile", "")],
)  # fmt: skip
def test_what_a_client_does_not_have_is_known(client, strategy, found):
    document = {
        "name": "x",
        "duration": "1m",
        "topics": {"t": {"partitions": 2}},
        "members": [{"id": "m", "topics": ["t"], "client": client}],
    }
    assert lacking(parse_scenario(document, where="x"), REGISTRY.strategy(strategy)) == found


# --- groups of the examples


def of(screen, label):
    grid = screen.grid
    return next(i for i in range(len(grid.setups)) if grid.label(i) == label)


@pytest.fixture(scope="module")
def bounce():
    return advice_on(load_scenario(SCENARIOS / "bounce.yaml"), "range", seeds=8, jobs=1)


@pytest.mark.slow
def test_static_members_need_a_session_that_outlasts_their_absence(bounce):
    """c2 is away for 60 s, and its session lasts 10 s. A dead member costs the longer session."""
    grid = bounce.grid
    alone, longer = of(bounce, "range+static"), of(bounce, "range+static with session.timeout.ms=90s")
    assert not grid.is_better(STOPS, alone, grid.now)
    assert (grid.median(MOVES.key, longer), grid.median(ROUNDS.key, longer)) == (0, 0)
    assert grid.median(CRASHED.key, longer) > 80
    assert {alone, longer} <= set(bounce.rows)


@pytest.mark.slow
def test_what_people_come_for_is_tried(bounce):
    kinds = {kind for setup in bounce.grid.setups for kind in setup.kinds}
    assert {Kind.CONSUMER, Kind.STATIC, Kind.MEMBERS, Kind.LONG_SESSION} <= kinds


@pytest.mark.slow
def test_a_batch_that_lasts_a_minute_is_stopped_earlier_by_shorter_times_between_polls():
    screen = advice_on(load_scenario(SCENARIOS / "long-batch.yaml"), "range", seeds=8, jobs=1)
    grid = screen.grid
    half, least = (of(screen, f"range with max.poll.interval.ms={time}") for time in ("30s", "10s"))
    assert grid.value(STOPS, least) < grid.value(STOPS, half) < grid.value(STOPS, grid.now) / 2
    cooperative = of(screen, "cooperative-sticky")
    assert grid.median(TWICE.key, grid.now) == 0 < grid.median(TWICE.key, cooperative)
    assert CLOSED in screen.aims
