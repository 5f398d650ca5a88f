"""The verdict of a comparison: who stops partitions least, what to choose, and what it costs."""

import json
from dataclasses import replace
from math import nan

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.comparison import Comparison, Remedy
from rebalance_lab.verdicts.comparison_formats import as_html, as_json
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.reasons import largest_parts
from tests.approved import approved
from tests.rebalance_lab.verdicts.compared import METRICS, compared, comparison_of, figures, stopped

UP = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
DOWN = tuple(reversed(UP))
LESS, MORE = tuple(value / 2 for value in UP), tuple(1.25 * value for value in UP)
MIXED = (8.0, 8.0, 8.0, 70.0, 29.0, 29.0)

FRONT = [METRICS[0], MetricSpec("moves", "", float, group="moves", headline=True)]


def chosen(now="a", **strategies):
    """Strategies with stopped times and moves."""
    own = {name: stopped(stops, moves=float(moves)) for name, (stops, moves) in strategies.items()}
    return compared(now=now, metrics=FRONT, **own)


def priced(metric, *values, stops=(UP, LESS)):
    """Two strategies with stopped times and another metric."""
    own = (stopped(s, moves=4.0, **{metric: value}) for s, value in zip(stops, values, strict=True))
    return compared(metrics=FRONT, **dict(zip("ab", own, strict=True)))


def lags(most, at_end, utilization=nan):
    return {"max_lag": float(most), "lag_at_end": float(at_end), "utilization": utilization}


def carrying(**candidates):
    """Strategies with stopped time, a lag at the end, and the load of the busiest member."""
    own = {n: figures(messages=stops) | lags(1_000, *load) for n, (stops, *load) in candidates.items()}
    return compared(**own)


def missed(*shares, most=5.0):
    """Strategies of which the first stops partitions most, with shares of the records that come then."""
    own = (
        figures(messages=1 if i else 9) | {"capacity_lost": share, "max_lag": most if i else 5.0}
        for i, share in enumerate(shares)
    )
    return compared(**dict(zip("abc", own, strict=False)))


def remedied(made, *remedies):
    return replace(made, remedies={"a": remedies})


def swept(*texts, seeds=6):
    """A strategy with settings: ``x.ms``, ``y.ms`` and the stopped time."""
    return Comparison(
        "day",
        range(seeds),
        METRICS,
        [
            Candidate(
                "a",
                {n: Figure((v,) * seeds) for n, v in figures(messages=stops).items()},
                {"x.ms": (x, 0), "y.ms": (y, 0), "z": ("1", 1)},
            )
            for x, y, stops in texts
        ],
    )


TWO = {"a": figures(messages=10), "b": figures(messages=20)}
OF_C = ["nobody works; start somebody", "and more"]
BROKEN = {"findings": {"a": ["broken"]}}
LAG_OF_B = figures(messages=9) | lags(1_000, 900, 0.9)

CASES = {
    "the first strategy is what the best is compared with": compared(
        a=figures(waiting=90, detection=10), b=figures(away=20, detection=5), c=figures(messages=30)
    ),
    **{
        f"no figure but 0 is 100 % less: {least}": compared(a=figures(waiting=100), b=figures(messages=least))
        for least in (1.5, 1, 0.25, 0)
    },
    "if the first is the best, the worst is named": compared(**TWO, c=figures(messages=40)),
    "where a remedy helps, something has to change": remedied(
        compared(**TWO), Remedy("x=1s", 10.0, 5.0, helps=True)
    ),
    "where no remedy helps, nothing has to change": remedied(
        compared(**TWO), Remedy("x=1s", 10.0, 10.0, helps=False)
    ),
    **{
        f"strategies that are alike are the best together: {alike}": compared(
            a=figures(messages=100), **{name: figures(messages=10) for name in alike}
        )
        for alike in ("b", "bc", "bcd")
    },
    "a tie is no win": compared(a=figures(messages=100), b=figures(messages=99.5)),
    "pairs that all differ decide, though the spreads overlap": compared(a=stopped(MORE), b=stopped(UP)),
    "pairs of both signs leave the order unknown": compared(a=stopped(UP), b=stopped(DOWN)),
    "fewer than six pairs leave it unknown": compared(5, a=stopped(UP[:5]), b=stopped(UP[1:])),
    "strategies that do not work are named with the reason": compared(
        a=figures(away=9),
        b=figures(away=9),
        c=figures(away=1),
        d=figures(away=2),
        e=figures(),
        findings={"c": OF_C, "d": OF_C[:1], "e": ["it failed"]},
    ),
    "none works": compared(a=figures(), b=figures(), findings={"a": ["x"], "b": ["x"]}),
    "the verdict names what to choose and its price": chosen(a=(UP, 4), b=(LESS, 9)),
    "without a price": chosen(a=(UP, 4), b=(LESS, 4)),
    "nothing has to change where the present one is the best": chosen("b", a=(UP, 4), b=(LESS, 9)),
    "nothing is chosen that is not known to be less": chosen(a=(UP, 4), b=(DOWN, 9)),
    "a strategy that stops partitions alike and dominates is chosen": chosen(a=(UP, 9), b=(UP, 4)),
    "of what is not known to be least the better one is chosen": chosen(a=(UP, 4), b=(LESS, 4), c=(MIXED, 4)),
    "a strategy that another one beats does not stop partitions least": compared(
        a=stopped(UP), b=stopped(DOWN), c=stopped(tuple(1.5 * value for value in UP))
    ),
    "of the best among which the order is not known that is said": compared(
        a=stopped(UP), b=stopped(DOWN), c=stopped(100.0), d=stopped(200.0)
    ),
    "the order in one run is not said to hold with other seeds": compared(
        1, a=stopped(20.0), b=stopped(10.0), c=stopped(10.0)
    ),
    "in one run all may be the same": compared(1, a=stopped(20.0), b=stopped(20.0)),
    "of one strategy in one run nothing is said": compared(1, a=stopped(20.0)),
    "without the figure there is no answer": comparison_of(
        "day", 7, [METRICS[1]], {"a": {METRICS[1].name: 1.0}}
    ),
    "nor if it is unknown": compared(a=dict.fromkeys(figures(), nan), b=figures()),
    "in a grid the best and the worst are named, and settings without effect": swept(
        *[(x, y, stops) for x, stops in (("1s", 5), ("2s", 2), ("3s", 9)) for y in ("7s", "8s")]
    ),
    "a group that does not work is no answer": compared(
        a=figures(), b=figures(away=5), c=figures(away=9), **BROKEN
    ),
    "one that works is chosen in place of one that does not": compared(
        a=figures(), b=figures(away=5), **BROKEN
    ),
    "but not from two seeds": compared(2, a=figures(), b=figures(away=5), **BROKEN),
    "one that does not work is left out behind one that does": compared(
        b=figures(away=5), a=figures(), **BROKEN
    ),
    "of one that does not work nothing is said": compared(a=figures(), **BROKEN),
    "a worse balance is a price": priced("weighted_imbalance", 1.2, 1.9),
    "requests are a price if they are more by a sixth, as in an advice": priced("messages", 100.0, 190.0),
    "and none if they are fewer": priced("messages", 100.0, 115.0),
    "the records that the best handles twice are its price": compared(
        a=figures(waiting=90), b=figures(messages=1, twice=2_468_270)
    ),
    "they are named if it is the present one": compared(
        a=figures(messages=1, twice=9), b=figures(waiting=90, twice=3), c=figures(waiting=90)
    ),
    **{
        f"they are no price up to a tenth of the largest lag: {twice}": compared(
            a=figures(waiting=90), b=figures(messages=1, twice=twice) | {"max_lag": 1_000.0}
        )
        for twice in (100, 101)
    },
    **{
        f"nor are they named: {twice}": compared(
            a=figures(messages=1, twice=twice) | {"max_lag": 1_000.0}, b=figures(waiting=90)
        )
        for twice in (100, 101)
    },
    "a lag that is left under all strategies comes first": compared(
        a=figures(messages=1) | lags(100, 60, 1.5), b=figures(messages=9) | lags(1_000, 900, 1.2)
    ),
    **{
        f"a lag that is left under some strategies comes after the answer: {left}": compared(
            a=figures(messages=1) | lags(*left), b=LAG_OF_B
        )
        for left in ((100, 50), (1, 1), (100, nan))
    },
    "a lag that is left is not less beside a larger one": compared(
        a=figures(messages=9) | lags(90, 50), b=figures(messages=9) | lags(120, 50)
    ),
    "a lag that comes down is not named": compared(a=figures(messages=1) | lags(100, 50)),
    "something has to change if the lag is left": carrying(a=(9, 900, 0.9), b=(9, 900, 0.9)),
    "or if a member has an overload": carrying(a=(9, 0, 1.2), b=(9, 0, 1.2)),
    "and nothing if the load is carried": carrying(a=(9, 500, 1.0), b=(9, 500, 1.0)),
    "a strategy that takes an overload away is chosen for it, with its price": carrying(
        a=(90, 900, 4.7), b=(86, 900, 5.2), c=(99, 400, 0.9), d=(90, 700, 1.4)
    ),
    "of those that take an overload away the one that stops partitions least is chosen": carrying(
        a=(9, 900, 1.2), b=(20, 0, 0.8), c=(10, 0, 0.5)
    ),
    "a load that members carry is no price": carrying(a=(90, 0, 0.3), b=(9, 0, 0.9)),
    "a strategy that worsens an overload is not chosen for fewer stops": carrying(
        a=(90, 900, 4.7), b=(80, 900, 5.2), c=(90, 900, 4.7)
    ),
    "but another one": carrying(a=(90, 900, 4.7), b=(80, 900, 5.2), c=(85, 900, 4.7)),
    **{
        f"the share of the records that meets a stopped partition: {s}": missed(0.5, s)
        for s in (0.0004, 1e-5)
    },
    "that of several best is from the least to the greatest": missed(0.5, 0.02, 0.0251),
    "it is not told without a lag": missed(0.5, 0.0004, most=nan),
    "the price names a greater lag and the strategy that has it": compared(
        a=figures(messages=90) | lags(100, 0),
        b=figures(messages=9) | lags(100, 0),
        c=figures(messages=9) | lags(800, 0),
    ),
}


def test_the_answers_are_those_that_were_approved():
    approved("answers", {title: "\n".join(answers(made)) for title, made in CASES.items()})


def test_pages_and_documents_have_the_answers():
    made = compared(a=figures(waiting=90, messages=10), b=figures(away=20, detection=5))
    assert json.loads(as_json(made))["answers"] == answers(made)
    assert all(f"<p>{text}</p>" in as_html(made) for text in answers(made))


def test_a_setting_that_a_strategy_does_not_read_is_not_in_its_name():
    """And one with one value is not said to make no difference."""
    own = {name: Figure((value,)) for name, value in figures(messages=1).items()}
    unread, read = ({"x.ms": value} for value in (("-", None), ("1s", 1_000)))
    made = Comparison("day", [1], METRICS, [Candidate("a", own, unread), Candidate("b", own, read)])
    assert [made.label(candidate) for candidate in made.candidates] == ["a", "b with x.ms=1s"]
    assert not any("no difference" in text for text in answers(made))


def test_without_a_candidate_there_is_nothing_to_explain():
    assert answers(Comparison("day", [1], METRICS, [])) == []
    assert largest_parts(Comparison("day", [1], METRICS, [])) == []
