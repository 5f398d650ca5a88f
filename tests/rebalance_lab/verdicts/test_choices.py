"""Choices for many groups are honest: of exchangeable candidates hardly one is chosen, and what is holds."""

import numpy as np
import pytest

from rebalance_lab.verdicts.aims import BALANCE, LOADED, STOPS
from rebalance_lab.verdicts.changes_per_group import changes, greatest
from rebalance_lab.verdicts.choices_per_group import choose_each
from rebalance_lab.verdicts.grid import Grid, Setup
from tests.places import ROOT
from tests.rebalance_lab.verdicts.generated_scores import BETTER, SAME, chosen, figures_of, seen, table


@pytest.mark.parametrize("hours", [1, 2, 6, 8, 24, pytest.param(96, marks=pytest.mark.slow)])
@pytest.mark.parametrize("others", [1, 4])
def test_of_exchangeable_candidates_hardly_a_group_switches(hours, others):
    assert seen(hours, hours, [SAME] * (1 + others), 0.3).switched <= 0.05


@pytest.mark.parametrize("seed", range(3))
def test_a_difference_of_a_tenth_is_found_in_a_day_of_hours(seed):
    assert seen(seed, 24, [SAME, BETTER], 0.1).switched >= 0.8


@pytest.mark.parametrize(("noise", "spread"), [(0.06, 0.0), (0.1, 0.1), (0.3, 0.3)])
def test_what_was_chosen_by_some_hours_holds_in_others(noise, spread):
    found = seen(5, 24, [SAME, SAME, BETTER], noise, spread)
    assert found.switched > 0.4
    assert found.worse <= 0.05
    assert found.agree >= 0.9
    assert found.promised == pytest.approx(found.realised, rel=0.1)


def test_what_is_better_in_one_aim_and_worse_in_another_is_not_chosen():
    assert seen(2, 24, [SAME, (0.8, 1.3, 1.0)], 0.05).switched == 0


def test_more_switches_are_found_where_more_of_them_may_be_due_to_chance():
    figures, _ = figures_of(3, 12, [SAME, BETTER], 0.3)
    few, many = (np.count_nonzero(chosen(figures, rate=rate).chosen) for rate in (0.05, 0.5))
    assert few < many


def test_a_group_with_a_sign_of_a_better_one_says_how_many_scenarios_would_show_it():
    figures, _ = figures_of(4, 8, [SAME, BETTER], 0.3)
    found = chosen(figures)
    open_ = (found.chosen == 0) & (found.needed > 0)
    assert open_.any()
    assert (found.needed[open_] > found.units[open_]).all()


# --- overload


def overloaded(now, other, *, stops=(9.0, 9.0), hours=12, **options):
    """The choice for one group by stops and balance, from the loads of the busiest member in each hour."""
    metrics = [STOPS.metric, BALANCE.metric, LOADED.metric]
    figures = np.array([[[stops[0], 1.5, now], [stops[1], 1.5, other]]] * hours)
    grid = Grid(range(hours), [Setup("a"), Setup("b")], metrics, figures)
    return choose_each(grid, np.zeros(hours, dtype=np.int64), 1, [STOPS, BALANCE], **options)


@pytest.mark.parametrize(("load", "hours"), [(1.0, 0), (1.0001, 12)])
def test_a_member_that_has_just_what_it_can_handle_has_no_overload(load, hours):
    assert overloaded(load, load).overloaded.tolist() == [hours]


def test_the_p_of_a_relief_counts_three_times():
    found = overloaded(1.5, 1.1, hours=6)
    assert (found.relieves.tolist(), found.chance.tolist()) == ([True], [3 / 64])


def test_a_switch_for_the_sake_of_stops_relieves_nothing():
    found = overloaded(1.5, 1.5, stops=(9.0, 4.0))
    assert (found.chosen.tolist(), found.relieves.tolist()) == ([1], [False])


def test_scenarios_that_do_not_count_are_in_no_figure_of_a_change():
    """The last hour is not scored under all candidates."""
    scored = np.ones((8, 2), dtype=np.bool_)
    scored[-1, 1] = False
    stops = np.array([[9.0, 3.0]] * 7 + [[99.0, 98.0]])
    groups = np.zeros(8, dtype=np.int64)
    grid = Grid(range(8), [Setup("a"), Setup("b")], [STOPS.metric], stops[:, :, None])
    found = choose_each(grid, groups, 1, [STOPS], scored=scored)
    mean, change, *_ = (float(each[0]) for each in changes(grid, STOPS.metric, found, groups))
    assert (mean, change) == (9.0, pytest.approx(-6.0))
    assert greatest(grid, STOPS.metric, found, groups).tolist() == [[9.0], [3.0]]


@pytest.mark.slow
def test_the_document_has_the_table():
    assert table() in (ROOT / "plugins" / "rebalance_lab" / "verdicts" / "README.md").read_text()
