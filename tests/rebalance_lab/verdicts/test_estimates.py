"""Estimates of changes have the truth in their intervals, and are drawn towards those of the other groups."""

import numpy as np
import pytest

from rebalance_lab.verdicts.changes_per_group import estimates
from tests.rebalance_lab.verdicts.generated_scores import BETTER, SAME, covered


@pytest.mark.parametrize("hours", [6, 12, 24])
@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_intervals_of_changes_have_the_truth_in_94_of_100_groups(hours, noise):
    assert covered(1, hours, SAME, noise) >= 0.94
    assert covered(1, hours, BETTER, noise, spread=0.1) >= 0.9


def of(*groups):
    """The estimates of groups with the figures of one candidate and of today's."""
    sizes = [len(one) for one, _ in groups]
    one, today = (np.concatenate([each[n] for each in groups]).astype(float) for n in (0, 1))
    return estimates(one, today, np.repeat(np.arange(len(groups)), sizes), len(groups))


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
