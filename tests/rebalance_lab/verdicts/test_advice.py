"""Which change helps, what it costs, and why others do not: on figures by hand, and on a scenario."""

from dataclasses import replace
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.advise import advice_on
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.advice import (
    Advice,
    as_document,
    as_html,
    lines,
    plan_of,
    reasons,
    sentences,
    table,
)
from rebalance_lab.verdicts.changes import Change, Kind, Trouble, facts_of
from rebalance_lab.verdicts.dimensions import (
    BALANCE,
    CRASHED,
    FROZEN,
    LAG,
    LEFT,
    LOADED,
    MOVES,
    ROUNDS,
    STOPS,
    TWICE,
)
from rebalance_lab.verdicts.grid import Candidate, Figure, trial_of
from tests.approved import approved
from tests.examples import scaled
from tests.places import SCENARIOS
from tests.rebalance_lab.traces.traces import (
    assigned,
    generation,
    joined,
    removed,
    round_at,
    started,
    state,
    stopped,
    trace_of,
)

TWO = [
    *[(0, started(name, "t")) for name in ("a", "b")],
    *round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
]
BACK = [
    (10_000, stopped("b", "crashed")),
    (55_000, removed("b")),
    (55_000, state("PreparingRebalance", before="Stable", cause="session of b expired")),
    (55_000, generation(2, "a")),
    (55_000, joined("a", 2)),
    (55_000, state("Stable", generation=2)),
    (55_000, assigned("a", 2, {"t": [0, 1, 2, 3]}, added={"t": [2, 3]})),
    (80_000, started("b", "t")),
]
"""A member crashes, its session of 45 s expires, and it starts again after 70 s."""


def trial(
    name,
    *kinds,
    stops=100.0,
    moves=4.0,
    rounds=2.0,
    balance=1.0,
    lag=nan,
    left=nan,
    loaded=nan,
    twice=nan,
    crashed=nan,
    frozen=nan,
    **more,
):
    """A trial of a change with figures; a tuple has a value for each seed, other figures are those of six."""
    values = {STOPS: stops, MOVES: moves, ROUNDS: rounds, BALANCE: balance}
    values |= {LAG: lag, LEFT: left, LOADED: loaded, TWICE: twice}
    count = next((len(v) for v in values.values() if isinstance(v, tuple)), 6)
    known = {d.name: Figure(v if isinstance(v, tuple) else (v,) * count) for d, v in values.items()}
    under = {
        Trouble.CRASHES: {CRASHED.name: Figure((crashed,) * count)},
        Trouble.FREEZES: {FROZEN.name: Figure((frozen,) * count)},
    }
    return Candidate(name, known, kinds=frozenset(kinds), troubles=under, **more)


def advised(*trials, now=None, events=(), seeds=range(6)):
    trace = trace_of(TWO, *events, topics={"t": 4})
    scenario = load_scenario(SCENARIOS / "leave.yaml")
    return Advice("by-hand", seeds, facts_of(scenario, History(trace)), now or trial("now"), trials)


def stopped_in(**parts):
    """The present strategy, with 100 partition seconds stopped in each of six runs, and its parts of them."""
    names = ("detection", "unassigned", "away", "waiting_heartbeat", "waiting_batch", "waiting_unknown")
    parts = {**dict.fromkeys(names, 0.0), **parts}
    now = trial("now")
    own = {f"stopped_{part}_partition_seconds": Figure((value,) * 6) for part, value in parts.items()}
    return replace(now, figures={**now.figures, **own})


UP = tuple(10.0 * n for n in range(1, 7))
UNSURE = (5.0, 10.0, 15.0, 20.0, 25.0, 90.0)
FREE, DEAR = trial("free", Kind.STATIC, stops=50.0), trial("dear", Kind.SHORT_SESSION, stops=10.0, rounds=9.0)
BOTH = (Kind.STATIC, Kind.COOPERATIVE)
LAGGING = trial("now", lag=100.0, left=10.0)


def cases():
    yield (
        "the change that stops partitions least helps most and has its price",
        advised(
            trial("some", Kind.STATIC, stops=50.0),
            trial("most", Kind.SHORT_SESSION, stops=10.0, rounds=3.0),
            now=trial("now", frozen=0.0),
        ),
    )
    yield (
        "a price under a trouble says when it is paid",
        advised(
            trial("patient", Kind.STATIC, moves=0.0, crashed=90.0, frozen=0.0),
            now=trial("now", crashed=10.0, frozen=0.0),
        ),
    )
    yield (
        "a change is named once if it helps most against several costs",
        advised(trial("all", Kind.STATIC, stops=1.0, moves=0.0, rounds=0.0)),
    )
    one, both = (
        trial("one", Kind.STATIC, moves=2.0),
        trial("both", Kind.HEARTBEAT, Kind.COOPERATIVE, moves=1.0),
    )
    yield "a single change is not said to help most if a combination helps more", advised(one, both)
    yield "and is said to if there is none", advised(one)
    one = trial("one", Kind.STATIC, stops=30.0)
    other = trial("other", Kind.HEARTBEAT, stops=(20.0, 20.0, 20.0, 20.0, 40.0, 40.0), rounds=9.0)
    yield "nor if the median of another one is less, whose order is not known", advised(one, other)
    dear, cheap = (
        trial("dear", Kind.STATIC, stops=10.0, rounds=9.0),
        trial("cheap", Kind.HEARTBEAT, stops=10.05),
    )
    yield "of changes that help alike the one with the lower price is named", advised(dear, cheap)
    less = trial("less", Kind.STATIC, stops=60.0)
    yield "the best change without a price is named if the best has one", advised(less, FREE, DEAR)
    yield "not if the best has none", advised(FREE, less)
    yield "not if there is none", advised(DEAR)
    single, both = trial("single", Kind.STATIC, stops=10.0), trial("both", *BOTH, stops=5.0)
    yield "changes together are named if they stop partitions less than each", advised(single, both)
    yield "not if they do not", advised(trial("single", Kind.STATIC, stops=5.0), both)
    three = trial("now", stops=(10.0, 20.0, 30.0))
    few = trial("less", Kind.HEARTBEAT, stops=(5.0, 12.0, 14.0))
    yield "with fewer than six seeds it is not known what helps", advised(few, now=three, seeds=(0, 1, 2))
    now = trial("now", stops=UP)
    yield (
        "a change that helps with some seeds is not known to help",
        advised(trial("less", Kind.HEARTBEAT, stops=UNSURE), now=now),
    )
    yield (
        "it is listed with its price",
        advised(trial("less", Kind.HEARTBEAT, stops=UNSURE, rounds=3.0), now=now),
    )
    yield (
        "the front has no change that another one beats, nor one that is alike and less simple",
        advised(
            trial("beaten", Kind.STATIC, stops=120.0),
            trial("alike", Kind.HEARTBEAT),
            trial("mixed", Kind.COOPERATIVE, stops=150.0, moves=0.0),
        ),
    )
    slow = trial("slow", Kind.RECORDS, stops=50.0, lag=102.0)
    yield "a lag that grows is a price, as of smaller batches", advised(slow, now=trial("now", lag=100.0))
    yield (
        "a change that takes a member out of overload helps though it has a price",
        advised(
            trial("optimal", Kind.WEIGHTS, loaded=0.77, lag=640.0, left=99.0, balance=1.9),
            now=trial("now", loaded=4.71, lag=690.0, left=600.0),
        ),
    )
    yield (
        "a lag that does not come down any more is a price",
        advised(trial("slow", Kind.RECORDS, stops=50.0, lag=100.0, left=80.0), now=LAGGING),
    )
    for twice in (120.0, 121.0):
        yield (
            f"records handled twice are a price from a tenth of the largest lag on: {twice:g}",
            advised(
                trial("other", Kind.STATIC, stops=9.0, lag=1_000.0, twice=twice),
                now=trial("now", lag=1_000.0, twice=20.0),
            ),
        )
    static = trial("static", Kind.STATIC)
    yield (
        "static members do not help if the absence is longer than the session",
        advised(static, events=[BACK]),
    )
    yield (
        "that is no reason against a longer session",
        advised(trial("static", Kind.STATIC, Kind.LONG_SESSION, stops=200.0), events=[BACK]),
    )
    cooperative = trial("cooperative", Kind.COOPERATIVE)
    yield (
        "a cooperative assignor does not shorten the time until a session expires",
        advised(cooperative, now=stopped_in(detection=60.0, unassigned=5.0, away=15.0)),
    )
    yield (
        "it is not excused if most of the time passes in rounds",
        advised(cooperative, now=stopped_in(detection=45.0, waiting_heartbeat=55.0)),
    )
    short = trial("short", Kind.SHORT_SESSION)
    yield "a shorter session does not help if none expires", advised(short)
    yield "if one expires that is no reason", advised(short, events=[BACK])
    for parts in (
        {},
        {"waiting_session": 30.0},
        {"waiting_batch": 0.4},
        {"waiting_heartbeat": 2.0, "waiting_batch": 1.0, "waiting_unknown": 1.0},
    ):
        yield (
            f"waits in which little stands still are not worth shortening: {parts}",
            advised(trial("often", Kind.HEARTBEAT), now=stopped_in(**parts)),
        )
    yield (
        "a change with which the group does not work is no help",
        advised(trial("lame", Kind.HEARTBEAT, stops=0.0, findings=["nobody works"])),
    )
    yield (
        "a change with which a group works that does not now is named first",
        advised(
            trial("works", Kind.RECORDS, stops=300.0),
            now=trial("now", findings=["nobody works", "nor later"]),
        ),
    )
    failed = Candidate("broken", {}, kinds=frozenset({Kind.STICKY}), error="assignor: raised")
    yield "a trial that failed says why", advised(failed)
    yield (
        "a group without costs has nothing to improve",
        advised(trial("x", Kind.STATIC), now=trial("now", stops=0.0, moves=0.0, rounds=0.0)),
    )


def test_the_advice_is_that_which_was_approved():
    texts = {}
    for title, advice in cases():
        front = ", ".join(each.label() for each in advice.front)
        rows = [" | ".join(head.replace("\n", " ") for head in table(advice).head)]
        rows += [" | ".join(cell.text for cell in row) for row in table(advice).rows]
        texts[title] = "\n".join([*lines(advice), *rows, f"front: {front}"])
    approved("advice", texts)


def test_with_more_seeds_a_change_helps_that_does_so_with_nine_of_ten():
    now = trial("now", stops=tuple(10.0 * n for n in range(1, 11)))
    nine = trial("nine", Kind.HEARTBEAT, stops=(*(9.0 * n for n in range(1, 10)), 101.0))
    eight = trial("eight", Kind.STATIC, stops=(*(9.0 * n for n in range(1, 9)), 100.0, 111.0))
    made = advised(nine, eight, now=now, seeds=range(10))
    assert made.helps(nine) == [STOPS]
    assert made.helps(eight) == []


LEVEL = st.sampled_from([1.0, 2.0, 2.01, 3.0])
FIGURES = ("stops", "moves", "rounds", "balance", "lag", "left", "loaded", "crashed", "frozen")
MIXED = st.one_of(LEVEL, st.just((1.0, 1.0, 1.0, 3.0, 3.0, 3.0)))


@settings(max_examples=scaled(1_000))
@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from(list(Kind)[:4]), min_size=1, max_size=3),
            *[MIXED] * 7,
            *[LEVEL] * 2,
            st.booleans(),
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_what_is_called_best_is_on_the_front_and_what_is_no_help_is_not(drawn, works):
    """And each dimension in which a single change helps has a leader."""
    trials = [
        trial(
            f"t{number}",
            *kinds,
            **dict(zip(FIGURES, values, strict=True)),
            findings=["broken"] * broken,
        )
        for number, (kinds, *values, broken) in enumerate(drawn)
    ]
    now = trial("now", **dict.fromkeys(FIGURES, 2.0))
    made = advised(*trials, now=now if works else replace(now, findings=["broken"]))
    called_best = [*made.leaders.values(), *filter(None, [made.together])]
    assert all(found in made.front for found in called_best)
    assert not any(found in made.front for found in made.without_help)
    assert all(found.works for found in made.front)
    single = [t for t in trials if t.is_one and t.works]
    for dimension, leader in made.leaders.items():
        assert not any(dimension.is_better(t, leader) for t in single)
    helped = {dimension for t in single for dimension in made.gains(t)}
    assert helped <= {dimension for found in called_best for dimension in made.gains(found)}


def test_several_changes_together_do_not_take_a_single_one_from_the_front():
    single, both = trial("single", Kind.STATIC, stops=10.0), trial("both", *BOTH, stops=5.0)
    assert advised(single, both).front == [single, both]


def test_fewer_records_handled_twice_are_no_help():
    now, other = trial("now", lag=1_000.0, twice=20.0), trial("other", Kind.STATIC, lag=1_000.0, twice=121.0)
    assert not advised(now, now=other).helps(now)


@pytest.mark.parametrize(("now", "other"), [(0.9, 0.3), (0.5, 0.99), (1.0, 0.1)])
def test_members_that_keep_up_with_their_load_are_alike(now, other):
    present = trial("now", loaded=now, lag=100.0, left=50.0)
    made = advised(trial("other", Kind.WEIGHTS, loaded=other, lag=100.0, left=1.0), now=present)
    assert made.helps(made.trials[0]) == made.costs(made.trials[0]) == []
    assert not any("busiest" in name or "end" in name for name in table(made).head)


def test_a_trial_that_failed_has_no_figures_in_a_document():
    failed = Candidate("broken", {}, kinds=frozenset({Kind.STICKY}), error="assignor: raised")
    assert as_document(advised(failed))["changes"][0]["figures"]["moved_partitions"] is None


def test_a_narrow_table_has_settings_below_their_strategy():
    change = Change("range", frozenset({Kind.SHORT_SESSION}), {"session.timeout.ms": 6_000})
    made = advised(trial_of(change, trial("range")))
    assert table(made).rows[1][0].text == "range with session.timeout.ms=6s"
    assert table(made, narrow=True).rows[1][0].text == "range\n  session.timeout.ms=6s"


def test_html_has_the_sentences_and_the_table():
    html = as_html(advised(trial("<less>", Kind.STATIC, stops=10.0), trial("same", Kind.HEARTBEAT)))
    assert "&lt;less&gt;" in html
    assert "<li>same: stops, moves, rounds, balance and lag are as now</li>" in html
    assert "<th scope=col>rounds</th>" in html


@pytest.mark.parametrize(("events", "seeds"), [(1, 10), (9_000, 6)])
def test_runs_with_many_events_have_as_few_seeds_as_an_order_needs(events, seeds):
    trace = trace_of(TWO, [(60_000, started("b", "t"))] * events, topics={"t": 4})
    scenario = load_scenario(SCENARIOS / "leave.yaml")
    plan = plan_of(scenario, "range", facts_of(scenario, History(trace)), default_registry())
    assert len(plan.seeds) == seeds


# --- a member that is away for longer than its session


@pytest.fixture(scope="module")
def bounce():
    return advice_on(load_scenario(SCENARIOS / "bounce.yaml"), "range", seeds=6, jobs=1)


@pytest.mark.slow
def test_static_members_alone_are_no_help_for_a_member_that_is_away_longer_than_its_session(bounce):
    why = {t.label(): reason for t, reason in reasons(bounce)}["range+static"]
    assert why.startswith("c2 is away for 60 s, longer than its session of 10 s")
    assert not any("range+static:" in sentence for sentence in sentences(bounce))


@pytest.mark.slow
def test_static_members_with_a_session_of_90_s_spare_moves_and_cost_90_s_when_a_member_is_dead(bounce):
    (found,) = (t for t in bounce.trials if t.label() == "range+static with session.timeout.ms=90s")
    assert (MOVES.figure(found).median, ROUNDS.figure(found).median) == (0, 0)
    assert STOPS.figure(found).median == pytest.approx(122.8, abs=0.5)
    assert found in bounce.front
    (sentence,) = (s for s in sentences(bounce) if found.label() in s)
    assert sentence.startswith("Helps most against moves: ")
    assert "if a member crashes for good, its partitions stand still for 8" in sentence


@pytest.mark.slow
def test_a_shorter_session_has_the_price_that_a_member_that_freezes_is_removed(bounce):
    sentence = next(s for s in sentences(bounce) if s.startswith("Helps most against stops"))
    assert "range with session.timeout.ms=6s: " in sentence
    assert sentence.endswith("Its price: if a member freezes for 8 s, 2 rounds (now 0).")


# --- a member whose batch lasts a minute


@pytest.fixture(scope="module")
def long_batch():
    return advice_on(load_scenario(SCENARIOS / "long-batch.yaml"), "range", seeds=6, jobs=1)


@pytest.mark.slow
def test_records_that_a_cooperative_assignor_handles_twice_are_its_price(long_batch):
    (found,) = (t for t in long_batch.trials if t.label() == "cooperative-sticky")
    assert TWICE.figure(long_batch.now).median == 0 < TWICE.figure(found).median
    assert long_batch.costs(found) == [ROUNDS, TWICE]


@pytest.mark.slow
def test_a_batch_that_lasts_a_minute_is_stopped_earlier_by_shorter_times_between_polls(long_batch):
    """Half of the batch, and the shortest time that is proposed. A shorter session cannot act on it."""
    tried = {t.settings.get("max.poll.interval.ms", ("", None))[1]: t for t in long_batch.trials}
    (half, least) = (STOPS.figure(tried[interval_ms]).median for interval_ms in (30_000, 10_000))
    assert least < half < STOPS.figure(long_batch.now).median / 2
    assert not any("session.timeout.ms" in trial.settings for trial in long_batch.trials)


@pytest.mark.slow
def test_findings_that_differ_in_numbers_of_the_seeds_are_counted_once():
    document = {
        "name": "late",
        "duration": "6m",
        "topics": {"t": {"partitions": 4, "rate": 40}},
        "members": [
            {"id": "c", "count": 3, "topics": ["t"], "process_rate": 10},
            {"id": "s", "topics": ["t"], "process_rate": 2},
        ],
        "config": {"max.poll.interval.ms": "20s"},
    }
    made = advice_on(parse_scenario(document, where="late"), "range", seeds=2, jobs=1)
    assert len(made.now.findings) == 2
    assert any(text.endswith("(and 1 more finding).") for text in sentences(made))
