"""The verdict of a comparison: who stops partitions least, what to choose, and what it costs."""

import json
from dataclasses import replace
from math import nan

import pytest

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.answers import answers, what_it_takes
from rebalance_lab.verdicts.comparison import Comparison, Remedy
from rebalance_lab.verdicts.comparison_formats import as_html, as_json
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.reasons import STOPS, largest_parts
from tests.rebalance_lab.verdicts.compared import METRICS, compared, comparison_of, figures


def test_the_first_strategy_is_what_the_best_is_compared_with():
    made = compared(
        a=figures(waiting=90, detection=10), b=figures(away=20, detection=5), c=figures(messages=30)
    )
    least, first, best = answers(made)
    assert least == (
        "b stops partitions least: 25 partition seconds, 75 % less than a and 17 % less than c, the next."
        " Choose b instead of a."
    )
    assert first == "a, 90 % of the stopped time of all seeds: rounds waited for members."
    assert best == "b, 80 % of the stopped time of all seeds: static members were closed or starting."


@pytest.mark.parametrize(("least", "share"), [(1.5, "98 %"), (1, "99 %"), (0.25, "over 99 %"), (0, "100 %")])
def test_no_figure_but_0_is_100_percent_less(least, share):
    made = compared(a=figures(waiting=100), b=figures(messages=least))
    assert f", {share} less than a. " in answers(made)[0]


def test_pages_and_documents_have_the_answers():
    made = compared(a=figures(waiting=90, messages=10), b=figures(away=20, detection=5))
    assert json.loads(as_json(made))["answers"] == answers(made)
    assert all(f"<p>{text}</p>" in as_html(made) for text in answers(made))


def test_if_the_first_is_the_best_the_worst_is_named():
    made = compared(a=figures(messages=10), b=figures(messages=20), c=figures(messages=40))
    least, why = answers(made)
    assert (
        least == "a stops partitions least: 10 partition seconds, 50 % less than b, the next. c stops"
        " them most: 40. Nothing has to change: none stops partitions less than a."
    )
    assert why.startswith("a, 100 % of the stopped time of all seeds: assignments were under way.")


@pytest.mark.parametrize(("helps", "verdict"), [(True, "None"), (False, "Nothing has to change: none")])
def test_where_a_remedy_helps_something_has_to_change(helps, verdict):
    made = compared(a=figures(messages=10), b=figures(messages=20))
    made = replace(made, remedies={"a": (Remedy("x=1s", 10.0, 5.0 if helps else 10.0, helps=helps),)})
    assert f" {verdict} stops partitions less than a." in answers(made)[0]


@pytest.mark.parametrize(
    ("alike", "names"), [("b", "b stops"), ("bc", "b and c stop"), ("bcd", "b, c and d stop")]
)
def test_strategies_that_are_alike_are_the_best_together(alike, names):
    made = compared(a=figures(messages=100), **{name: figures(messages=10) for name in alike})
    assert answers(made)[0] == (
        f"{names} partitions least: 10 partition seconds, 90 % less than a."
        f" Choose {' or '.join(alike)} instead of a."
    )


def test_a_tie_is_no_win():
    made = compared(a=figures(messages=100), b=figures(messages=99.5))
    assert answers(made)[0] == (
        "All stop partitions alike, within 1 %: 99.5 to 100 partition seconds. Nothing has to change: none"
        " stops partitions less than a."
    )


def over_seeds(*seeds, **stops):
    """A comparison of strategies whose stopped times are ``stops``, a value for each seed."""
    candidates = [
        Candidate(name, {m.name: Figure(own if m.name == STOPS else (0.0,) * len(own)) for m in METRICS})
        for name, own in stops.items()
    ]
    return Comparison("day", seeds or range(len(next(iter(stops.values())))), METRICS, candidates)


UP = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
DOWN = tuple(reversed(UP))


def test_pairs_that_all_differ_decide_though_the_spreads_overlap():
    more = tuple(1.25 * value for value in UP)
    assert answers(over_seeds(a=more, b=UP)) == [
        "b stops partitions least: 35 partition seconds, 20 % less than a. Choose b instead of a."
    ]


def test_pairs_of_both_signs_leave_the_order_unknown():
    assert answers(over_seeds(a=UP, b=DOWN)) == [
        "Not known from 6 seeds which strategy stops partitions least: 35 partition seconds."
    ]
    assert answers(over_seeds(a=UP[:5], b=UP[1:])) == [
        "Not known from 5 seeds (6 are needed) which strategy stops partitions least: 30 to 40 partition"
        " seconds."
    ]


def with_findings(comparison, **findings):
    candidates = [replace(c, findings=findings.get(c.strategy, ())) for c in comparison.candidates]
    return replace(comparison, candidates=candidates)


def test_strategies_that_do_not_work_are_named_with_the_reason():
    made = compared(a=figures(away=9), b=figures(away=9), c=figures(away=1), d=figures(away=2), e=figures())
    of_c = ["nobody works; start somebody", "and more"]
    made = with_findings(made, c=of_c, d=of_c[:1], e=["it failed"])
    assert answers(made)[:4] == [
        "All others stop partitions alike, within 1 %: 9 partition seconds. Nothing has to change: none stops"
        " partitions less than a.",
        "c is left out: nobody works (and 1 more finding).",
        "d is left out: nobody works.",
        "e is left out: it failed.",
    ]
    assert answers(with_findings(compared(a=figures(), b=figures()), a=["x"], b=["x"])) == [
        "a and b are left out: x."
    ]


FRONT = [
    replace(METRICS[0], group="stops", headline=True),
    MetricSpec("moves", "", float, group="moves", headline=True),
]


def choice(now, **strategies):
    """The last sentences of the verdict of strategies with stopped times and moves."""
    candidates = [
        Candidate(name, {STOPS: Figure(tuple(stops)), "moves": Figure((float(moves),) * 6)})
        for name, (stops, moves) in strategies.items()
    ]
    made = Comparison("day", range(6), FRONT, candidates, now=list(strategies).index(now))
    return next(text for text in answers(made) if "partitions" in text)


def test_the_verdict_names_what_to_choose_and_its_price():
    less = [value / 2 for value in UP]
    assert choice("a", a=(UP, 4), b=(less, 9)).endswith(" Choose b instead of a. The price: moves 9 (now 4).")
    assert choice("a", a=(UP, 4), b=(less, 4)).endswith(" Choose b instead of a.")
    assert choice("b", a=(UP, 4), b=(less, 9)).endswith(
        " Nothing has to change: none stops partitions less than b."
    )
    assert choice("a", a=(UP, 4), b=(DOWN, 9)).endswith(" least: 35 partition seconds.")


def test_a_strategy_that_stops_partitions_alike_and_dominates_is_chosen():
    assert choice("a", a=(UP, 9), b=(UP, 4)).endswith(
        " None stops partitions less than a. Choose b for moves 4 (now 9)."
    )


def test_of_what_is_not_known_to_be_least_the_better_one_is_chosen():
    less = [value / 2 for value in UP]
    mixed = [8.0, 8.0, 8.0, 70.0, 29.0, 29.0]
    assert choice("a", a=(UP, 4), b=(less, 4), c=(mixed, 4)).startswith(
        "Not known from 6 seeds which of b and c stops partitions least: "
    )
    assert "Choose b instead of a." in choice("a", a=(UP, 4), b=(less, 4), c=(mixed, 4))


def test_a_strategy_that_another_one_beats_does_not_stop_partitions_least():
    """b is not known to be better than c: two of six pairs are not."""
    made = over_seeds(a=UP, b=DOWN, c=tuple(1.5 * value for value in UP))
    assert answers(made) == [
        "Not known from 6 seeds which of a and b stops partitions least: 35 partition seconds. c does not:"
        " 52.5."
    ]


def test_of_the_best_among_which_the_order_is_not_known_that_is_said():
    made = over_seeds(a=UP, b=DOWN, c=(100.0,) * 6, d=(200.0,) * 6)
    assert answers(made) == [
        "a and b stop partitions least: 35 partition seconds, 65 % less than c, the next. d stops them most:"
        " 200. Which of a and b stops them least is not known from 6 seeds."
    ]


def test_the_order_in_one_run_is_not_said_to_hold_with_other_seeds():
    assert answers(over_seeds(a=(20.0,), b=(10.0,), c=(10.0,))) == [
        "In one run the least stopped time is that of b and c: 10 partition seconds; the most that of a: 20."
        " One seed: not known whether the order holds with others."
    ]
    assert answers(over_seeds(a=(20.0,), b=(20.0,))) == [
        "In one run all stop partitions for 20 partition seconds. One seed: not known whether the order holds"
        " with others."
    ]
    assert answers(over_seeds(a=(20.0,))) == []


def test_without_the_figure_there_is_no_answer():
    assert answers(comparison_of("day", 7, [METRICS[1]], {"a": {METRICS[1].name: 1.0}})) == []
    assert answers(compared(a=dict.fromkeys(figures(), nan), b=figures())) == []


def test_in_a_grid_the_best_and_the_worst_are_named_and_settings_without_effect():
    candidates = [
        Candidate(
            "a",
            {n: Figure((v,) * 6) for n, v in figures(messages=stopped).items()},
            {"x.ms": (x, 0), "y.ms": (y, 0), "z": ("1", 1)},
        )
        for x, stopped in (("1s", 5), ("2s", 2), ("3s", 9))
        for y in ("7s", "8s")
    ]
    least, _, effect = answers(Comparison("day", range(6), METRICS, candidates))
    assert least == (
        "a with x.ms=2s, y.ms=7s and a with x.ms=2s, y.ms=8s stop partitions least: 2 partition"
        " seconds, 60 % less than a with x.ms=1s, y.ms=7s and a with x.ms=1s, y.ms=8s, the next. a with"
        " x.ms=3s, y.ms=7s and a with x.ms=3s, y.ms=8s stop them most: 9. Choose a with x.ms=2s, y.ms=7s or"
        " a with x.ms=2s, y.ms=8s instead of a with x.ms=1s, y.ms=7s."
    )
    assert effect == "y.ms makes no difference."


def test_a_group_that_does_not_work_is_no_answer():
    a, b, c = (
        Candidate(name, {n: Figure((v,) * 6) for n, v in own.items()}, findings=["broken"] * (name == "a"))
        for name, own in (("a", figures()), ("b", figures(away=5)), ("c", figures(away=9)))
    )
    least, left_out, _ = answers(Comparison("day", range(6), METRICS, [a, b, c]))
    assert least == (
        "b stops partitions least: 5 partition seconds. c stops them most: 9. Choose b instead of a."
    )
    assert left_out == "a is left out: broken."
    assert answers(Comparison("day", range(6), METRICS, [a, b])) == ["Choose b instead of a.", left_out]
    assert answers(Comparison("day", range(2), METRICS, [a, b])) == [left_out]
    assert answers(Comparison("day", range(6), METRICS, [b, a]))[0] == left_out
    assert answers(Comparison("day", range(6), METRICS, [a])) == []


# --- protocols


def test_a_worse_balance_is_a_price():
    specs = [*FRONT, MetricSpec("weighted_imbalance", "ratio", float, group="balance", headline=True)]
    less = tuple(value / 2 for value in UP)
    candidates = [
        Candidate(
            name, {STOPS: Figure(stops), "moves": Figure((4.0,) * 6), specs[-1].name: Figure((high,) * 6)}
        )
        for name, stops, high in (("a", tuple(UP), 1.2), ("b", less, 1.9))
    ]
    verdict = answers(Comparison("day", range(6), specs, candidates))[0]
    assert verdict.endswith(" Choose b instead of a. The price: weighted_imbalance 1.9 (now 1.2).")


@pytest.mark.parametrize(("requests", "price"), [(190.0, " The price: messages 190 (now 100)."), (115.0, "")])
def test_requests_are_a_price_if_they_are_more_by_a_sixth_as_in_an_advice(requests, price):
    specs = [*FRONT, MetricSpec("messages", "requests", float)]
    runs = {"a": (UP, 100.0), "b": ([value / 2 for value in UP], requests)}
    candidates = [
        Candidate(
            name, {STOPS: Figure(tuple(stops)), "moves": Figure((4.0,) * 6), "messages": Figure((sent,) * 6)}
        )
        for name, (stops, sent) in runs.items()
    ]
    verdict = answers(Comparison("day", range(6), specs, candidates))[0]
    assert verdict.endswith(f" Choose b instead of a.{price}")


def test_the_records_that_the_best_handles_twice_are_its_price():
    """Those are no price that are at most a tenth of the largest lag more."""
    made = compared(a=figures(waiting=90), b=figures(messages=1, twice=2_468_270))
    assert answers(made)[0].endswith(
        " Choose b instead of a. The price: duplicate_records 2,468,270 (now 0)."
    )
    assert not any("twice" in text for text in answers(made))
    made = compared(a=figures(messages=1, twice=9), b=figures(waiting=90, twice=3), c=figures(waiting=90))
    assert answers(made)[1] == "a handles 9 records twice, c 0."
    lag = {"max_lag": 1_000.0}
    for twice, said in ((100, False), (101, True)):
        made = compared(a=figures(waiting=90), b=figures(messages=1, twice=twice) | lag)
        assert ("duplicate_records" in answers(made)[0]) is said
        made = compared(a=figures(messages=1, twice=twice) | lag, b=figures(waiting=90))
        assert any("twice" in text for text in answers(made)) is said
    assert not any("twice" in text for text in answers(compared(a=figures(away=9), b=figures(away=1))))


def lags(most, at_end, utilization=nan):
    return {"max_lag": float(most), "lag_at_end": float(at_end), "utilization": utilization}


def test_a_lag_that_is_left_under_all_strategies_comes_first():
    made = compared(a=figures(messages=1) | lags(100, 60, 1.5), b=figures(messages=9) | lags(1_000, 900, 1.2))
    first, second, third, *_ = answers(made)
    assert first == (
        "The lag has not come down by the end of the run: 60 records under a; 900 records under b."
    )
    assert second == (
        "The busiest member has 150 % of what it can handle under a; 120 % of what it can handle under b."
    )
    assert third.startswith("a stops partitions least")


@pytest.mark.parametrize("left", [lags(100, 50), lags(1, 1), lags(100, nan)])
def test_a_lag_that_is_left_under_some_strategies_comes_after_the_answer(left):
    made = compared(a=figures(messages=1) | left, b=figures(messages=9) | lags(1_000, 900, 0.9))
    first, second, *_ = answers(made)
    assert first.startswith("a stops partitions least")
    assert second.endswith("by the end of the run: 900 records under b.")
    assert not any("lag" in text for text in answers(compared(a=figures(messages=1) | left)))


def carrying(**candidates):
    """The verdict of strategies with stopped time, a lag at the end, and the load of the busiest member."""
    specs = [*METRICS, *(MetricSpec(name, "", float) for name in ("max_lag", "lag_at_end", "utilization"))]
    runs = {
        name: figures(messages=stops) | lags(1_000, left, loaded)
        for name, (stops, left, loaded) in candidates.items()
    }
    return next(
        text for text in answers(comparison_of("day", 7, specs, runs, seeds=6)) if "artitions" in text
    )


@pytest.mark.parametrize("now", [(9, 900, 0.9), (9, 0, 1.2)])
def test_something_has_to_change_if_the_lag_is_left_or_a_member_has_an_overload(now):
    assert carrying(a=now, b=now).endswith("seconds. None stops partitions less than a.")
    assert "Nothing has to change" in carrying(a=(9, 500, 1.0), b=(9, 500, 1.0))


def test_a_strategy_that_takes_an_overload_away_is_chosen_for_it_with_its_price():
    """The least stopped time does not count while another strategy lessens the overload."""
    text = carrying(a=(90, 900, 4.7), b=(86, 900, 5.2), c=(99, 400, 0.9), d=(90, 700, 1.4))
    assert text.endswith(
        " Choose c for utilization 0.9 (now 4.7) and lag_at_end 400 (now 900). The price:"
        " stopped_partition_seconds 99 (now 90)."
    )


def test_of_those_that_take_an_overload_away_the_one_that_stops_partitions_least_is_chosen():
    text = carrying(a=(9, 900, 1.2), b=(20, 0, 0.8), c=(10, 0, 0.5))
    assert " Choose c for utilization 0.5 (now 1.2) and lag_at_end 0 (now 900)." in text


def test_a_strategy_that_worsens_an_overload_is_not_chosen_for_fewer_stops():
    text = carrying(a=(90, 900, 4.7), b=(80, 900, 5.2), c=(90, 900, 4.7))
    assert text.endswith(
        " b stops them less than a but does not carry the load as well: utilization 5.2 (now 4.7)."
    )
    text = carrying(a=(90, 900, 4.7), b=(80, 900, 5.2), c=(85, 900, 4.7))
    assert text.endswith(" Choose c instead of a.")


@pytest.mark.parametrize(("share", "told"), [(0.0004, "0.04"), (0.00001, "under 0.01")])
def test_the_share_of_the_records_that_meets_a_stopped_partition_is_told(share, told):
    lost = {"capacity_lost": share, "max_lag": 5.0}
    made = compared(a=figures(messages=9) | {"capacity_lost": 0.5}, b=figures(messages=1) | lost)
    assert answers(made)[0] == (
        f"b stops partitions least: 1 partition seconds ({told} % of the records came then),"
        " 89 % less than a. Choose b instead of a."
    )
    made = compared(a=figures(messages=9), b=figures(messages=1) | lost | {"max_lag": nan})
    assert "records" not in answers(made)[0]


def test_a_setting_that_a_strategy_does_not_read_is_not_in_its_name():
    own = {name: Figure((value,)) for name, value in figures(messages=1).items()}
    unread, read = ({"x.ms": value} for value in (("-", None), ("1s", 1_000)))
    made = Comparison("day", [1], METRICS, [Candidate("a", own, unread), Candidate("b", own, read)])
    assert [made.label(candidate) for candidate in made.candidates] == ["a", "b with x.ms=1s"]


def test_what_kafkas_own_clients_do_not_have_is_named_where_clients_assign():
    registry = default_registry()
    named = (
        "range",
        "cooperative-sticky+static",
        "uniform-848+reconcile",
        "rocketmq",
        "optimal+tolerance=5%",
        "Mine",
    )
    assert what_it_takes({name: name for name in named}, registry) == (
        "Kafka's own clients do not have optimal+tolerance=5% and Mine; kafka-python, aiokafka and the"
        " Consumer of rebalance_kafka do. Under optimal+tolerance=5%, members must report their rates;"
        " otherwise partitions are counted."
    )
    assert what_it_takes({name: name for name in named[:4]}, registry) == ""


# --- causes of waits, and remedies


def test_the_price_names_a_greater_lag_and_the_strategy_that_has_it():
    specs = [*METRICS, MetricSpec("max_lag", "records", float), MetricSpec("lag_at_end", "records", float)]
    own = {"a": (90, 100.0), "b": (9, 100.0), "c": (9, 800.0)}
    runs = {name: figures(messages=stops) | lags(lag, 0) for name, (stops, lag) in own.items()}
    made = comparison_of("day", 7, specs, runs, seeds=6)
    assert answers(made)[0].endswith(" Choose b or c instead of a. The price: max_lag 800 (now 100) under c.")


def test_a_setting_with_one_value_is_not_said_to_make_no_difference():
    own = {name: Figure((value,)) for name, value in figures(messages=1).items()}
    unread, read = ({"x.ms": value} for value in (("-", None), ("1s", 1_000)))
    made = Comparison("day", [1], METRICS, [Candidate("a", own, unread), Candidate("b", own, read)])
    assert not any("no difference" in text for text in answers(made))


def test_the_share_of_the_records_of_several_best_is_from_the_least_to_the_greatest():
    lost = [{"capacity_lost": share, "max_lag": 5.0} for share in (0.5, 0.02, 0.0251)]
    a, b, c = (figures(messages=m) | own for m, own in zip((9, 1, 1), lost, strict=True))
    assert "(2 to 2.51 % of the records came then)" in answers(compared(a=a, b=b, c=c))[0]


def test_without_a_candidate_there_is_nothing_to_explain():
    assert answers(Comparison("day", [1], METRICS, [])) == []
    assert largest_parts(Comparison("day", [1], METRICS, [])) == []
