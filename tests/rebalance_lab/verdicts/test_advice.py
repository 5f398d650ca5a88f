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


def headings(advice):
    return [sentence.partition(": ")[0] for sentence in sentences(advice)]


def test_the_change_that_stops_partitions_least_helps_most_and_has_its_price():
    made = advised(
        trial("some", Kind.STATIC, stops=50.0),
        trial("most", Kind.SHORT_SESSION, stops=10.0, rounds=3.0),
        now=trial("now", frozen=0.0),
    )
    assert sentences(made)[1] == (
        "Helps most against stops: most: 10 partition seconds stopped (now 100). Its price: 3 rounds (now 2)."
    )


def test_a_price_under_a_trouble_says_when_it_is_paid():
    made = advised(
        trial("patient", Kind.STATIC, moves=0.0, crashed=90.0, frozen=0.0),
        now=trial("now", crashed=10.0, frozen=0.0),
    )
    assert sentences(made)[1:] == [
        "No single change stops partitions less.",
        "Helps most against moves: patient: 0 partitions moved (now 4)."
        " Its price: if a member crashes for good, its partitions stand still for 90 s (now 10).",
    ]


def test_a_change_is_named_once_if_it_helps_most_against_several_costs():
    made = advised(trial("all", Kind.STATIC, stops=1.0, moves=0.0, rounds=0.0))
    assert headings(made)[1:] == ["Helps most against stops"]


def test_a_single_change_is_not_said_to_help_most_if_a_combination_helps_more():
    one, both = (
        trial(name, *kinds, moves=moves)
        for name, kinds, moves in (
            ("one", [Kind.STATIC], 2.0),
            ("both", [Kind.HEARTBEAT, Kind.COOPERATIVE], 1.0),
        )
    )
    assert headings(advised(one, both))[-1] == "Of single changes, helps most against moves"
    assert headings(advised(one))[-1] == "Helps most against moves"


def test_a_change_is_not_said_to_help_most_if_the_median_of_another_one_is_less():
    """Its order to the other one is not known, and it has no price."""
    one = trial("one", Kind.STATIC, stops=30.0)
    other = trial("other", Kind.HEARTBEAT, stops=(20.0, 20.0, 20.0, 20.0, 40.0, 40.0), rounds=9.0)
    heading = "Helps against stops, and none is known to help more"
    assert headings(advised(one, other))[-1] == heading
    assert headings(advised(one))[-1] == "Helps most against stops"


def test_of_changes_that_help_alike_the_one_with_the_lower_price_is_named():
    made = advised(
        trial("dear", Kind.STATIC, stops=10.0, rounds=9.0), trial("cheap", Kind.HEARTBEAT, stops=10.05)
    )
    assert list(made.leaders.values()) == [made.trials[1]]


def test_the_best_change_without_a_price_is_named_if_the_one_that_helps_most_has_one():
    dear = trial("dear", Kind.SHORT_SESSION, stops=10.0, rounds=9.0)
    free, less = (trial(name, Kind.STATIC, stops=stops) for name, stops in (("free", 50.0), ("less", 60.0)))
    made = advised(less, free, dear)
    assert sentences(made)[-1] == "Without a known price: free: 50 partition seconds stopped (now 100)."
    assert headings(advised(free, less))[1:] == ["Helps most against stops"]
    assert headings(advised(dear))[1:] == ["Helps most against stops"]


def test_changes_together_are_named_if_they_stop_partitions_less_than_each():
    both = trial("both", Kind.STATIC, Kind.COOPERATIVE, stops=5.0)
    single = trial("single", Kind.STATIC, stops=10.0)
    assert headings(advised(single, both))[-1] == "Together"
    assert advised(trial("single", Kind.STATIC, stops=5.0), both).together is None


def test_with_fewer_than_six_seeds_it_is_not_known_what_helps():
    now = trial("now", stops=(10.0, 20.0, 30.0))
    made = advised(trial("less", Kind.HEARTBEAT, stops=(5.0, 12.0, 14.0)), now=now, seeds=(0, 1, 2))
    assert not made.leaders
    assert made.front == [now]
    assert sentences(made)[-1] == "Not known from 3 seeds (6 are needed) whether a change helps."
    ((_, why),) = reasons(made)
    assert why.startswith("not known from 3 seeds: 12 partition seconds stopped (now 20), ")


def test_a_change_that_helps_with_some_seeds_is_not_known_to_help():
    now = trial("now", stops=(10.0, 20.0, 30.0, 40.0, 50.0, 60.0))
    made = advised(trial("less", Kind.HEARTBEAT, stops=(5.0, 10.0, 15.0, 20.0, 25.0, 90.0)), now=now)
    assert sentences(made)[-1] == "No single change is known to help."
    ((_, why),) = reasons(made)
    assert why == "not known from 6 seeds: 17.5 partition seconds stopped (now 35)"


def test_a_change_of_which_it_is_not_known_whether_it_helps_is_listed_with_its_price():
    now = trial("now", stops=(10.0, 20.0, 30.0, 40.0, 50.0, 60.0))
    less = trial("less", Kind.HEARTBEAT, stops=(5.0, 10.0, 15.0, 20.0, 25.0, 90.0), rounds=3.0)
    ((_, why),) = reasons(advised(less, now=now))
    assert why == "not known from 6 seeds: 17.5 partition seconds stopped (now 35); 3 rounds (now 2)"


def test_with_more_seeds_a_change_helps_that_does_so_with_nine_of_ten():
    now = trial("now", stops=tuple(10.0 * n for n in range(1, 11)))
    nine = trial("nine", Kind.HEARTBEAT, stops=(*(9.0 * n for n in range(1, 10)), 101.0))
    eight = trial("eight", Kind.STATIC, stops=(*(9.0 * n for n in range(1, 9)), 91.0, 101.0))
    made = advised(nine, eight, now=now, seeds=range(10))
    assert made.helps(nine) == [STOPS]
    assert made.helps(eight) == []


def test_the_front_has_no_trial_that_another_one_beats_nor_one_that_is_alike_and_less_simple():
    beaten = trial("beaten", Kind.STATIC, stops=120.0)
    alike = trial("alike", Kind.HEARTBEAT)
    mixed = trial("mixed", Kind.COOPERATIVE, stops=150.0, moves=0.0)
    made = advised(beaten, alike, mixed)
    assert made.front == [made.now, mixed]


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
    both = trial("both", Kind.STATIC, Kind.COOPERATIVE, stops=5.0)
    single = trial("single", Kind.STATIC, stops=10.0)
    assert advised(single, both).front == [single, both]


def test_a_lag_that_grows_is_a_price():
    """Smaller batches: a poll costs as much as before, and has fewer records."""
    now = trial("now", lag=100.0)
    slow = trial("slow", Kind.RECORDS, stops=50.0, lag=102.0)
    made = advised(slow, now=now)
    assert sentences(made)[1].endswith("Its price: a lag of 102 records at most (now 100).")
    assert made.front == [now, slow]


def test_a_change_that_takes_a_member_out_of_overload_helps_though_it_has_a_price():
    now = trial("now", loaded=4.71, lag=690.0, left=600.0)
    made = advised(trial("optimal", Kind.WEIGHTS, loaded=0.77, lag=640.0, left=99.0, balance=1.9), now=now)
    assert sentences(made)[1:] == [
        "No single change stops partitions less.",
        "Helps most against overload: optimal: the busiest member gets 77 % of what it can handle (now 471),"
        " a lag of 99 records at the end (now 600), a lag of 640 records at most (now 690)."
        " Its price: 1.9 times the mean load on the busiest member (now 1).",
    ]
    assert not list(reasons(made))


def test_a_lag_that_does_not_come_down_any_more_is_a_price():
    now = trial("now", lag=100.0, left=10.0)
    made = advised(trial("slow", Kind.RECORDS, stops=50.0, lag=100.0, left=80.0), now=now)
    assert sentences(made)[1].endswith("Its price: a lag of 80 records at the end (now 10).")


@pytest.mark.parametrize(("twice", "is_price"), [(120.0, False), (121.0, True)])
def test_records_handled_twice_are_a_price_from_a_tenth_of_the_largest_lag_on(twice, is_price):
    now = trial("now", lag=1_000.0, twice=20.0)
    other = trial("other", Kind.STATIC, stops=9.0, lag=1_000.0, twice=twice)
    made = advised(other, now=now)
    price = "Its price: 121 records handled twice (now 20)."
    assert sentences(made)[1].endswith(price) is is_price
    assert ("handled\ntwice" in table(made).head) is is_price
    assert not advised(now, now=other).helps(now), "they are a cost, and fewer of them no help"


@pytest.mark.parametrize(("now", "other"), [(0.9, 0.3), (0.5, 0.99), (1.0, 0.1)])
def test_members_that_keep_up_with_their_load_are_alike(now, other):
    present = trial("now", loaded=now, lag=100.0, left=50.0)
    made = advised(trial("other", Kind.WEIGHTS, loaded=other, lag=100.0, left=1.0), now=present)
    assert made.helps(made.trials[0]) == made.costs(made.trials[0]) == []
    assert not any("busiest" in name or "end" in name for name in table(made).head)


def test_static_members_do_not_help_if_the_absence_is_longer_than_the_session():
    made = advised(trial("static", Kind.STATIC), events=[BACK])
    ((_, why),) = reasons(made)
    assert (
        why == "b is away for 70 s, longer than its session of 45 s: the group removes it before it is back"
    )


def test_that_an_absence_is_longer_than_the_session_is_no_reason_against_a_longer_session():
    made = advised(trial("static", Kind.STATIC, Kind.LONG_SESSION, stops=200.0), events=[BACK])
    assert [why for _, why in reasons(made)] == ["200 partition seconds stopped (now 100)"]


def stopped_in(**parts):
    """The present strategy, with 100 partition seconds stopped in each of six runs, and its parts of them."""
    names = ("detection", "unassigned", "away", "waiting_heartbeat", "waiting_batch", "waiting_unknown")
    parts = {**dict.fromkeys(names, 0.0), **parts}
    now = trial("now")
    own = {f"stopped_{part}_partition_seconds": Figure((value,) * 6) for part, value in parts.items()}
    return replace(now, figures={**now.figures, **own})


def test_a_cooperative_assignor_does_not_shorten_the_time_until_a_session_expires():
    now = stopped_in(detection=60.0, unassigned=5.0, away=15.0)
    ((_, why),) = reasons(advised(trial("cooperative", Kind.COOPERATIVE), now=now))
    assert why == "70 % of the stopped time passes while members are away or stand still"


def test_a_cooperative_assignor_is_not_excused_if_most_of_the_time_passes_in_rounds():
    now = stopped_in(detection=45.0, waiting_heartbeat=55.0)
    ((_, why),) = reasons(advised(trial("cooperative", Kind.COOPERATIVE), now=now))
    assert why == "stops, moves, rounds, balance and lag are as now"


@pytest.mark.parametrize(("events", "why"), [([], "no session expires in the run"), ([BACK], "stops, moves")])
def test_a_shorter_session_does_not_help_if_none_expires(events, why):
    ((_, reason),) = reasons(advised(trial("short", Kind.SHORT_SESSION), events=events))
    assert reason.startswith(why)


def test_a_change_with_which_the_group_does_not_work_is_no_help():
    made = advised(trial("lame", Kind.HEARTBEAT, stops=0.0, findings=["nobody works"]))
    assert lines(made)[-1] == "  lame: it does not work: nobody works."
    assert sentences(made)[-1] == "No single change helps."


def test_a_change_with_which_a_group_works_that_does_not_now_is_named_first():
    now = trial("now", findings=["nobody works", "nor later"])
    made = advised(trial("works", Kind.RECORDS, stops=300.0), now=now)
    assert sentences(made)[0].endswith("It does not work: nobody works (and 1 more finding).")
    assert sentences(made)[1].startswith(
        "Makes it work: works: it works, with 300 partition seconds stopped."
    )


def test_a_trial_that_failed_says_why():
    made = advised(Candidate("broken", {}, kinds=frozenset({Kind.STICKY}), error="assignor: raised"))
    assert [why for _, why in reasons(made)] == ["it failed: assignor: raised"]
    assert as_document(made)["changes"][0]["figures"]["moved_partitions"] is None


def test_the_table_has_a_row_for_each_trial_and_no_column_without_figures():
    made = advised(trial("less", Kind.STATIC, stops=10.0, crashed=10.0), now=trial("now", crashed=10.0))
    head, rows = table(made).head, table(made).rows
    assert [row[0].text for row in rows] == ["now (now)", "less"]
    assert [row[1].text for row in rows] == ["", "front"]
    assert not any(words in name for words in ("frozen", "busiest", "lag") for name in head)


def test_a_narrow_table_has_settings_below_their_strategy():
    change = Change("range", frozenset({Kind.SHORT_SESSION}), {"session.timeout.ms": 6_000})
    made = advised(trial_of(change, trial("range")))
    assert table(made).rows[1][0].text == "range with session.timeout.ms=6s"
    assert table(made, narrow=True).rows[1][0].text == "range\n  session.timeout.ms=6s"


@pytest.mark.parametrize(
    ("parts", "share"),
    [
        ({}, "none"),
        ({"waiting_session": 30.0}, "none"),
        ({"waiting_batch": 0.4}, "less than 1 %"),
        ({"waiting_heartbeat": 2.0, "waiting_batch": 1.0, "waiting_unknown": 1.0}, "only 4 %"),
    ],
)
def test_waits_for_heartbeats_and_batches_in_which_little_stands_still_are_not_worth_shortening(parts, share):
    ((_, why),) = reasons(advised(trial("often", Kind.HEARTBEAT), now=stopped_in(**parts)))
    assert why == f"{share} of the stopped time is due to rounds that wait for heartbeats or batches"


def test_a_group_without_costs_has_nothing_to_improve():
    made = advised(trial("x", Kind.STATIC), now=trial("now", stops=0.0, moves=0.0, rounds=0.0))
    assert sentences(made)[1:] == ["No single change helps. Nothing stops or moves now, and no round is run."]


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
    """Six seeds from the third one: with two of the first three a session of 6 s helps by less than 4 %."""
    scenario = replace(load_scenario(SCENARIOS / "bounce.yaml"), seed=3)
    return advice_on(scenario, "range", seeds=6, jobs=1)


def test_static_members_alone_are_no_help_for_a_member_that_is_away_longer_than_its_session(bounce):
    why = {t.label(): reason for t, reason in reasons(bounce)}["range+static"]
    assert why.startswith("c2 is away for 60 s, longer than its session of 10 s")
    assert not any("range+static:" in sentence for sentence in sentences(bounce))


def test_static_members_with_a_session_of_90_s_spare_moves_and_cost_90_s_when_a_member_is_dead(bounce):
    (found,) = (t for t in bounce.trials if t.label() == "range+static with session.timeout.ms=90s")
    assert (MOVES.figure(found).median, ROUNDS.figure(found).median) == (0, 0)
    assert STOPS.figure(found).median == pytest.approx(122.3, abs=0.5)
    assert found in bounce.front
    (sentence,) = (s for s in sentences(bounce) if found.label() in s)
    assert sentence.startswith("Helps most against moves: ")
    assert "if a member crashes for good, its partitions stand still for 8" in sentence


def test_a_shorter_session_has_the_price_that_a_member_that_freezes_is_removed(bounce):
    sentence = next(s for s in sentences(bounce) if s.startswith("Helps most against stops"))
    assert "range with session.timeout.ms=6s: " in sentence
    assert sentence.endswith("Its price: if a member freezes for 8 s, 2 rounds (now 0.5).")


# --- a member whose batch lasts a minute


@pytest.fixture(scope="module")
def long_batch():
    return advice_on(load_scenario(SCENARIOS / "long-batch.yaml"), "range", seeds=6, jobs=1)


def test_records_that_a_cooperative_assignor_handles_twice_are_its_price(long_batch):
    (found,) = (t for t in long_batch.trials if t.label() == "cooperative-sticky")
    assert TWICE.figure(long_batch.now).median == 0 < TWICE.figure(found).median
    assert long_batch.costs(found) == [ROUNDS, TWICE]


def test_a_batch_that_lasts_a_minute_is_stopped_earlier_by_shorter_times_between_polls(long_batch):
    """Half of the batch, and the shortest time that is proposed. A shorter session cannot act on it."""
    tried = {t.settings.get("max.poll.interval.ms", ("", None))[1]: t for t in long_batch.trials}
    (half, least) = (STOPS.figure(tried[interval_ms]).median for interval_ms in (30_000, 10_000))
    assert least < half < STOPS.figure(long_batch.now).median / 2
    assert not any("session.timeout.ms" in trial.settings for trial in long_batch.trials)


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
    made = advice_on(parse_scenario(document, where="late"), "range", seeds=6, jobs=1)
    assert len(made.now.findings) == 2
    assert any(text.endswith("(and 1 more finding).") for text in sentences(made))
