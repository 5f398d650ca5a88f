"""Decisions on generated scores hold in hours that did not decide, and what they promise comes true."""

import numpy as np
import pytest

from rebalance_spark.gains import Gains, gains, typical
from tests.places import ROOT
from tests.rebalance_spark.decisions import BETTER, SAME, covered, looked_at, table


@pytest.mark.parametrize("hours", [1, 2, 6, 8, 24, 96])
@pytest.mark.parametrize("others", [1, 4])
def test_of_exchangeable_strategies_hardly_a_group_switches(hours, others):
    assert looked_at(hours, hours, [SAME] * (1 + others), 0.3).switched <= 0.05


@pytest.mark.parametrize("hours", [6, 12, 24])
@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_intervals_of_changes_have_the_truth_in_94_of_100_groups(hours, noise):
    assert covered(1, hours, SAME, noise) >= 0.94
    assert covered(1, hours, BETTER, noise, spread=0.1) >= 0.9


@pytest.mark.parametrize("seed", range(3))
def test_a_difference_of_a_tenth_is_found_in_a_day_of_hours(seed):
    assert looked_at(seed, 24, [SAME, BETTER], 0.1).switched >= 0.8


@pytest.mark.parametrize(("noise", "spread"), [(0.06, 0.0), (0.1, 0.1), (0.3, 0.3)])
def test_what_was_decided_on_some_hours_holds_in_others(noise, spread):
    seen = looked_at(5, 24, [SAME, SAME, BETTER], noise, spread)
    assert seen.switched > 0.4
    assert seen.worse <= 0.05
    assert seen.agree >= 0.9
    assert seen.promised == pytest.approx(seen.realised, rel=0.1)


@pytest.mark.slow
def test_the_document_has_the_table():
    assert table() in (ROOT / "plugins" / "rebalance_spark" / "README.md").read_text()


def of(*groups):
    """The gains of groups with the figures of one strategy and of today's."""
    sizes = [len(one) for one, _ in groups]
    one, today = (np.concatenate([each[n] for each in groups]).astype(float) for n in (0, 1))
    return gains(one, today, np.repeat(np.arange(len(groups)), sizes), len(groups))


def test_differences_that_are_all_the_same_are_what_a_switch_gains():
    found = of(([3] * 6, [5] * 6), ([300] * 6, [500] * 6))
    assert found.means.tolist() == pytest.approx([-2, -200])
    assert found.deviations.tolist() == pytest.approx([0, 0])


def test_a_group_with_few_scenarios_is_drawn_towards_the_others_and_one_with_many_is_not():
    steady = [([4, 6, 5, 5] * 6, [5, 6, 4, 5] * 6)] * 30
    found = of(([2, 4], [5, 5]), ([3, 3.1] * 60, [5, 5.1] * 60), *steady)
    assert -2 < found.means[0] < 0
    assert found.means[1] == pytest.approx(-2, abs=0.1)
    assert found.deviations[0] > found.deviations[1]


def test_scenarios_without_one_of_the_figures_do_not_count():
    found = of(([3, np.nan, np.inf, np.inf, 3], [5, 9, 5, np.inf, 5]), ([np.nan], [5]), ([4, 4], [5, 5]))
    assert found.means[0] == pytest.approx(-2)
    assert np.isnan(found.means[1])


def test_one_scenario_of_each_group_has_no_interval():
    found = of(([3], [5]), ([4], [5]))
    assert (found.means.tolist(), np.isnan(found.deviations).all()) == ([-2, -1], True)


def test_the_typical_change_is_the_median_and_one_great_group_does_not_move_it():
    found = Gains(np.array([-1.0, -2.0, -3.0, -9_000.0]), np.array([0.1, 0.1, 0.1, 50.0]))
    every = typical(found, np.ones(4, dtype=bool))
    assert every.value == -2.5
    assert -2.8 < every.low < -2.5 < every.high < -2.2
    assert np.isnan(typical(found, np.zeros(4, dtype=bool)).value)
