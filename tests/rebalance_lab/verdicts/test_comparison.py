"""A comparison: figures over seeds, which are better, the Pareto front; as tables, JSON, CSV and HTML."""

import csv
import io
import json
from math import inf, isclose, isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.cli.output import hanging
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.comparison_formats import as_csv, as_html, as_json
from rebalance_lab.verdicts.comparison_tables import by_group, faults, front_line, signs, tables_of, title_of
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.rule import TIE, Order, chances, order
from rebalance_lab.verdicts.tables import BEST, as_text
from tests.approved import approved
from tests.examples import scaled
from tests.rebalance_lab.verdicts.compared import compared, comparison_of


def metric(name, better="lower", doc="", **more):
    return MetricSpec(name, "", lambda history: 0.0, better=better, doc=doc, **more)


ROUNDS, LAG = metric("rounds"), metric("lag", doc='less is "better" <b>')
STOPS = metric("stops", group="stops", headline=True)
MOVES = metric("moves", group="moves", headline=True)
COST = metric("cost", group="cost", headline=True)
FRONT = [COST, MOVES, STOPS]


def single(figures, *, metrics=(ROUNDS, LAG), scenario="day", seed=7, seeds=6):
    return comparison_of(scenario, seed, metrics, figures, seeds=seeds)


def over_seeds(values, *, metrics=(ROUNDS,), **more):
    """A comparison of ``values[strategy][metric]``, each a list with a value for each seed."""
    candidates = [
        Candidate(name, {metric: Figure(tuple(listed)) for metric, listed in own.items()}, **more)
        for name, own in values.items()
    ]
    first = next(iter(next(iter(values.values())).values()))
    return Comparison("day", range(len(first)), metrics, candidates)


def gridded(*rows, metrics=FRONT):
    """A comparison of one strategy: a row for each session timeout, with a figure for each metric."""
    candidates = [
        Candidate(
            "range",
            {m.name: Figure((float(value),) * 6) for m, value in zip(metrics, values, strict=True)},
            {"session.timeout.ms": (text, number)},
        )
        for (text, number), values in rows
    ]
    return Comparison("day", range(7, 13), metrics, candidates)


TWO = single({"range": {"rounds": 3.0, "lag": nan}, "sticky": {"rounds": 2.0, "lag": 0.1}})
ONE_SEED = single({"range": {"rounds": 3.0, "lag": nan}, "sticky": {"rounds": 2.0, "lag": 0.1}}, seeds=1)


# --- figures over seeds


def test_a_figure_has_the_median_and_the_spread_of_the_values_that_there_are():
    figure = Figure((5.0, nan, 1.0, 9.0, 2.0))
    assert (figure.median, figure.spread) == (3.5, (1.0, 9.0))


def test_a_figure_without_values_has_none():
    figure = Figure((nan, nan))
    assert isnan(figure.median)
    assert all(map(isnan, figure.spread))


@pytest.mark.parametrize(("count", "cut"), [(1, 0), (10, 0), (19, 0), (20, 1), (39, 1), (40, 2), (100, 5)])
def test_a_spread_is_without_the_five_percent_at_both_ends(count, cut):
    assert Figure(tuple(map(float, range(count)))).spread == (cut, count - 1 - cut)


# --- which is best


@pytest.mark.parametrize(
    ("values", "better", "best"),
    [
        ([3.0, 2.0, 5.0], "lower", {1}),
        ([3.0, 2.0, 5.0], "higher", {2}),
        ([3.0, 2.0, 2.0], "lower", {1, 2}),
        ([nan, 2.0, 5.0], "lower", {1}),
        ([2.0, 2.0, 2.0], "lower", set()),
        ([nan, 2.0], "lower", set()),
        ([nan, nan], "higher", set()),
        ([4.0], "lower", set()),
        ([100.0, 101.0], "lower", set()),
        ([100.0, 101.1], "lower", {0}),
        ([100.0, 100.9, 200.0], "lower", {0, 1}),
        ([100.0, 100.9, 101.5], "lower", set()),
        ([0.0, 0.001], "lower", {0}),
        ([inf, 5.0], "lower", {1}),
        ([inf, inf], "lower", set()),
    ],
)
def test_the_best_are_better_than_each_of_the_others_by_more_than_a_tie(values, better, best):
    one = metric("x", better)
    figures = {f"s{i}": {"x": value} for i, value in enumerate(values)}
    assert single(figures, metrics=[one]).best(one) == best


def test_a_figure_that_one_of_the_best_is_not_known_to_be_better_than_is_among_them():
    one = metric("x")
    made = compared(
        10,
        metrics=[one],
        best={"x": tuple(times(*[0.8] * 10))},
        unknown={"x": tuple(times(*[0.7, 1.1] * 5))},
        near={"x": tuple(times(*[0.9] * 10))},
        worst={"x": tuple(times(*[2.0] * 10))},
    )
    assert made.best(one) == {0, 1, 2}
    assert made.beaten(one) == [2, 3]


TEN = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0]


def times(*factors):
    return [value * factor for value, factor in zip(TEN, factors, strict=True)]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (times(*[0.9] * 10), TEN, Order.BETTER),
        (times(*[1.1] * 10), TEN, Order.WORSE),
        (times(*[0.9] * 9, 1.05), TEN, Order.BETTER),
        (times(*[0.9] * 9, 2), TEN, Order.UNKNOWN),
        (times(*[0.9] * 8, 1.1, 1.1), TEN, Order.UNKNOWN),
        (times(*[0.9] * 8, 0.995, 1), TEN, Order.BETTER),
        (times(*[0.9] * 6, *[0.995] * 4), TEN, Order.UNKNOWN),
        ([9.0] * 7 + [20.0], [10.0] * 8, Order.UNKNOWN),
        (times(*[0.995] * 5, *[1.005] * 5), TEN, Order.ALIKE),
        (times(*[0.995] * 9, 1.02), TEN, Order.ALIKE),
        (times(*[0.995] * 9, 2), TEN, Order.UNKNOWN),
        (times(*[0.9] * 5, *[1.1] * 5), TEN, Order.UNKNOWN),
        (TEN, TEN, Order.ALIKE),
        ([0.0] * 6, [1e-9] * 6, Order.BETTER),
        ([0.0] * 6, [0.0] * 6, Order.ALIKE),
        ([inf] * 6, [inf] * 6, Order.ALIKE),
        ([5.0] * 6, [inf] * 6, Order.BETTER),
        ([1.0] * 5, [2.0] * 5, Order.UNKNOWN),
        ([1.0] * 5, [1.0] * 5, Order.UNKNOWN),
        ([1.0], [2.0], Order.UNKNOWN),
        ([1.0] * 5 + [nan], [2.0] * 6, Order.UNKNOWN),
        ([nan, *[1.0] * 7], [*[2.0] * 7, nan], Order.BETTER),
        ([nan] * 6, [1.0] * 6, Order.UNKNOWN),
    ],
)
def test_figures_are_compared_seed_by_seed_by_a_signed_rank_test(one, other, found):
    one, other = Figure(tuple(one)), Figure(tuple(other))
    turned = {Order.BETTER: Order.WORSE, Order.WORSE: Order.BETTER}.get(found, found)
    assert one.order(other) is other.order(one, "higher") is found
    assert other.order(one) is one.order(other, "higher") is turned


def test_figures_that_differ_by_the_margin_are_alike():
    assert order([1.0] * 6, [2.0] * 6, margin=0.5) is Order.ALIKE
    assert order([1.0] * 6, [2.0] * 6, margin=0.49) is Order.BETTER


def test_pairs_decide_where_spreads_overlap():
    """All of ten pairs are better, and the least of one figure is less than the most of the other."""
    one = Figure(tuple(TEN))
    other = Figure(tuple(times(*[1.2] * 10)))
    assert one.spread[1] > other.spread[0]
    assert one.order(other) is Order.BETTER


def test_an_order_of_pairs_that_the_medians_contradict_is_not_known():
    """Ten of eleven pairs are better by a tenth, the other one is worse by a little, and is the median."""
    one = Figure((*[0.9] * 5, 1.05, *[90.0] * 5))
    other = Figure((*[1.0] * 6, *[100.0] * 5))
    assert one.median > other.median
    assert one.order(other) is Order.UNKNOWN


@settings(max_examples=scaled(2_000))
@given(
    st.lists(
        st.tuples(*[st.one_of(st.just(nan), st.floats(0, 1e6), st.integers(0, 5).map(float))] * 2),
        max_size=25,
    )
)
def test_an_order_turns_round_and_needs_six_pairs_of_which_a_coin_seldom_has_so_many(pairs):
    one, other = (Figure(tuple(values)) for values in (zip(*pairs, strict=True) if pairs else ((), ())))
    found = one.order(other)
    turned = {Order.BETTER: Order.WORSE, Order.WORSE: Order.BETTER}.get(found, found)
    assert other.order(one) is turned
    known = [(a, b) for a, b in pairs if not isnan(a) and not isnan(b)]
    if len(known) < 6:
        assert found is Order.UNKNOWN
    if found is Order.BETTER:
        values = (np.array(figure.values) for figure in (one, other))
        by_chance, _ = chances(*values, np.zeros(len(pairs), dtype=np.int64), 1, -TIE)
        assert by_chance[0] <= 0.025
        assert one.median < other.median
    if found is Order.ALIKE:
        assert isclose(one.median, other.median, rel_tol=0.0101)


@settings(max_examples=scaled(500))
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_count(differences, random):
    pairs = [(10 + difference, 10.0) for difference in differences]
    shuffled = random.sample(pairs, len(pairs))
    first, second = (
        Figure(tuple(a for a, _ in each)).order(Figure(tuple(b for _, b in each)))
        for each in (pairs, shuffled)
    )
    assert first is second


def test_with_one_seed_no_figure_is_best_and_there_is_no_front():
    made = single(
        {"a": {m.name: 1.0 for m in FRONT}, "b": {m.name: 9.0 for m in FRONT}}, metrics=FRONT, seeds=1
    )
    assert made.best(STOPS) == made.front == frozenset()
    assert front_line(made) == ""
    assert [entry["front"] for entry in json.loads(as_json(made))["strategies"]] == [None, None]
    assert [row["front"] for row in csv.DictReader(io.StringIO(as_csv(made)))] == ["", ""]


# --- the Pareto front


@pytest.mark.parametrize(
    ("rows", "front"),
    [
        ([(1, 9, 9), (9, 1, 9), (9, 9, 1)], {0, 1, 2}),
        ([(1, 9, 9), (2, 9, 9), (1, 1, 9)], {2}),
        ([(100, 100, 100), (100.5, 100, 99.5)], {0, 1}),
        ([(100, 100, 100), (100.5, 100, 50)], {1}),
        ([(5, 5, 5)], {0}),
        ([(nan, 1, 1), (5, 5, 5)], {1}),
    ],
)
def test_the_front_has_the_candidates_that_no_other_one_dominates(rows, front):
    figures = {f"s{i}": dict(zip(("cost", "moves", "stops"), row, strict=True)) for i, row in enumerate(rows)}
    assert single(figures, metrics=FRONT).front == front


def test_ties_that_dominate_each_other_in_a_circle_are_all_on_the_front():
    rows = [(1.0, 1.015, 1.0075), (1.0075, 1.0, 1.015), (1.015, 1.0075, 1.0)]
    figures = {f"s{i}": dict(zip(("cost", "moves", "stops"), row, strict=True)) for i, row in enumerate(rows)}
    assert single(figures, metrics=FRONT).front == {0, 1, 2}


def test_the_front_is_of_the_first_headline_metrics_of_stops_moves_and_cost():
    others = [metric("a", group="cost"), metric("b", group="lag", headline=True)]
    later = metric("z", group="stops", headline=True)
    made = single({"s": {m.name: 1.0 for m in [*others, *FRONT, later]}}, metrics=[*others, *FRONT, later])
    assert made.front_metrics == [STOPS, MOVES, COST]


def test_without_headline_metrics_there_is_no_front():
    assert TWO.front == frozenset()
    assert front_line(TWO) == ""


# --- for people


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (nan, "-"),
        (0.0, "0"),
        (3.0, "3"),
        (-3.0, "-3"),
        (1234567.0, "1,234,567"),
        (1234.56, "1,235"),
        (132.44, "132.4"),
        (22.561, "22.6"),
        (0.09761, "0.0976"),
        (inf, "inf"),
        (-inf, "-inf"),
        (1e300, f"{1e300:,.0f}"),
    ],
)
def test_a_figure_is_as_long_as_it_needs_to_be(value, text):
    assert as_text(value) == text


SCREEN = [metric("x", group="cost"), *FRONT, metric("own", group="mine"), metric("none")]
GRID = gridded((("6s", 6_000), (1, 9, 9)), (("45s", 45_000), (9, 1, 9)), (("9s", 9_000), (9, 9, 9)))
MIXED = {
    "a": {"rounds": [2.0] * 6, "lag": [5.0, 1_500.0] * 3},
    "b": {"rounds": [30.0, 34.0] * 3, "lag": [9.0] * 6},
}
CHOICES = {"a": (1, 9, 9), "b": (9, 1, 9), "c": (9, 9, 9)}
QUOTED = "names that need quotes and escapes"
SHOWN = {
    "one seed": ONE_SEED,
    "six seeds, of which one figure is not there": TWO,
    "a star at the best, and spreads below one another": over_seeds(MIXED, metrics=[ROUNDS, LAG]),
    "of twenty seeds the ends of the spread are cut off": over_seeds(
        {name: {"rounds": [float(value), *[value + 1.0] * 19]} for name, value in (("a", 1), ("b", 5))}
    ),
    "the first screen has the headline metrics, everything has headings": single(
        {"a": {m.name: 1.0 for m in SCREEN}}, metrics=SCREEN
    ),
    "settings that differ make a grid": GRID,
    "settings in which all are alike are named once": gridded((("6s", 6_000), (1, 9, 9))),
    "the candidates of the front are named below the table": single(
        {n: dict(zip(("cost", "moves", "stops"), f, strict=True)) for n, f in CHOICES.items()}, metrics=FRONT
    ),
    "findings are named with their candidate": over_seeds({"a": {"rounds": [1.0]}}, findings=["it broke"]),
    "figures of some seeds": over_seeds({"a": {"rounds": [4.0, nan, 2.0]}}),
    QUOTED: single({'<i>a,"b"</i>': {"rounds": 1.0, "lag": 1 / 3}}, scenario="</title>\n<script>&", seeds=1),
}


def lines_of(comparison):
    """What a terminal shows of a comparison: the first screen, and everything."""
    yield title_of(comparison)
    for everything in (False, True):
        for table in tables_of(comparison, everything=everything, units=not everything):
            for row in (table.head, *([cell.text for cell in row] for row in table.rows)):
                yield " | ".join([table.title, *row]).replace("\n", " ")
    yield from (front_line(comparison), *faults(comparison), *signs(comparison))


def test_tables_are_those_that_were_approved():
    texts = {title: "\n".join(filter(None, lines_of(made))) for title, made in SHOWN.items()}
    approved("comparison_tables", texts)


@pytest.mark.parametrize(
    ("output", "write"),
    [("json", as_json), ("csv", as_csv), ("html", lambda made: as_html(made).partition("</style>")[2])],
)
def test_documents_are_those_that_were_approved(output, write):
    titles = (
        "one seed",
        "a star at the best, and spreads below one another",
        "settings that differ make a grid",
    )
    titles += ("findings are named with their candidate", QUOTED)
    approved(f"comparison_{output}", {title: write(SHOWN[title]).rstrip() for title in titles})


def test_the_best_has_a_style():
    (table,) = tables_of(over_seeds(MIXED, metrics=[ROUNDS, LAG]), everything=False, units=False)
    assert [cell.style for cell in table.rows[0]] == ["", BEST, ""]


def test_csv_and_json_can_be_read():
    made = SHOWN[QUOTED]
    head, row = csv.reader(io.StringIO(as_csv(made), newline=""))
    assert (row[0], row[2], len(row)) == (made.scenario, '<i>a,"b"</i>', len(head))
    assert json.loads(as_json(made))["strategies"][0]["strategy"] == row[2]
    assert "NaN" not in as_json(TWO)


def test_names_are_no_elements_of_a_page():
    page = as_html(SHOWN[QUOTED])
    assert page.count("<script") == page.count("<i>") == 0
    assert page.count("</title>") == 1


def test_a_candidate_with_findings_is_neither_best_nor_on_the_front():
    values = {"a": 0.0, "b": 1.0, "c": 2.0}
    candidates = [
        Candidate(name, {m.name: Figure((value,) * 6) for m in FRONT}, findings=["broken"] * (name == "a"))
        for name, value in values.items()
    ]
    made = Comparison("day", range(6), FRONT, candidates)
    assert made.best(STOPS) == made.front == {1}


def test_groups_that_nobody_knows_follow_the_others():
    assert list(by_group([metric("a"), metric("b", group="own"), metric("c", group="lag")])) == [
        "lag",
        "others",
        "own",
    ]


def test_a_definition_is_indented_from_its_second_line_on():
    assert hanging("lag [s]: one two three", 15) == "lag [s]: one\n  two three"


def test_nothing_is_known_of_pairs_whose_medians_differ_more_than_they_do():
    """All but two pairs at each end are alike; the medians are 1 and 1, and those of three are not."""
    one, other = [1, 2, 1, 100, 2, 100, 100, 1, 1], [1, 3, 1, 100, 2, 1, 100, 1, 1]
    assert order(one, other) == Order.UNKNOWN
    assert order(one, one) == Order.ALIKE
