"""Choices for many groups are honest: of exchangeable candidates hardly one is chosen, and what is holds."""

import numpy as np
import pytest

from tests.places import ROOT
from tests.rebalance_lab.verdicts.generated_scores import BETTER, SAME, chosen, figures_of, seen, table


@pytest.mark.parametrize("hours", [1, 2, 6, 8, 24, 96])
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


@pytest.mark.slow
def test_the_document_has_the_table():
    assert table() in (ROOT / "plugins" / "rebalance_lab" / "verdicts" / "README.md").read_text()
