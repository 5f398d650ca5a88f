"""How long records wait at the busiest member, over the hours of a group in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_spark.waits import Ends, as_time, keys_of_time, longest_wait, time_of

loads = st.lists(st.sampled_from([0.2, 0.9, 1.0, 1.1, 1.5, 3.0]), min_size=2, max_size=24)


def hours(load):
    return [f"hour={hour}/g" for hour in range(len(load))], np.array(load)


@given(loads)
def test_records_wait_for_the_excess_of_the_hours_before_that_is_not_worked_off(load):
    found = longest_wait(*hours(load))
    sums = [
        sum(share - 1 for share in load[i : j + 1]) for i in range(len(load)) for j in range(i, len(load))
    ]
    if max(load) <= 1:
        assert found is None
    else:
        assert found.seconds == pytest.approx(3_600 * max(sums))


def test_the_hour_at_whose_end_none_wait_is_the_first_after_the_longest_wait():
    found = longest_wait(*hours([0.5, 1.2, 1.3, 0.8, 0.6, 0.5, 1.1]))
    assert (found.seconds, found.at, found.until, found.ends) == (pytest.approx(1_800), 2, 4, Ends.TODAY)
    found = longest_wait(*hours([1.2, 1.3, 0.9]))
    assert (found.at, found.until, found.ends) == (1, 2, Ends.UNKNOWN)


def test_what_is_left_at_the_end_of_a_day_waits_until_the_next_one_or_is_more_every_day():
    found = longest_wait(*hours([0.5] * 20 + [1.5] * 4))
    assert (found.seconds, found.until, found.ends) == (pytest.approx(7_200), 3, Ends.NEXT_DAY)
    found = longest_wait(*hours([1.1, *[0.5] * 19, *[1.5] * 4]))
    assert (found.seconds, found.at, found.ends) == (pytest.approx(2.1 * 3_600), 0, Ends.NEXT_DAY)
    for load, ends in (([0.5] * 12 + [1.5] * 12, Ends.NEXT_DAY), ([0.5] * 11 + [1.5] * 13, Ends.NEVER)):
        assert longest_wait(*hours(load)).ends is ends
    assert longest_wait(*hours([0.5] * 11 + [1.5] * 12)).ends is Ends.UNKNOWN


def test_hours_count_in_their_order_whatever_that_of_their_names():
    load = dict(zip(range(12), [1.5, 0.4, *[0.5] * 9, 1.2], strict=True))
    names = sorted(f"hour={hour}/g" for hour in load)
    found = longest_wait(names, np.array([load[int(name[5:].removesuffix("/g"))] for name in names]))
    assert (names[found.at], names[found.until]) == ("hour=0/g", "hour=1/g")


def test_of_the_draws_of_an_hour_the_busiest_counts():
    names = [f"hour={hour}/draw={draw}/g" for hour in range(3) for draw in range(2)]
    assert longest_wait(names, np.array([0.5, 0.5, 1.5, 0.5, 0.5, 1.25])).seconds == pytest.approx(2_700)


@pytest.mark.parametrize(
    "names",
    [
        ["a", "b", "c"],
        ["team=1/g", "team=2/g", "team=3/g"],
        ["hour=1/g", "hour=2/g", "hour=4/g"],
        ["day=1/hour=1/g", "day=1/hour=2/g", "day=2/hour=3/g"],
        ["date=2026-01-01/g", "date=2026-01-02/g", "date=2026-01-03/g"],
        ["hour=1/g", "hour=1/h", "hour=1/i"],
    ],
)
def test_times_that_are_not_known_or_not_equally_far_apart_leave_it_open(names):
    assert longest_wait(names, np.array([1.5, 1.5, 1.5])) is None


def test_scenarios_of_minutes_stand_for_minutes():
    names = [f"at=2026-01-31T23:{minute}:00Z/g" for minute in (40, 50)]
    assert longest_wait(names, np.array([1.5, 1.5])).seconds == pytest.approx(600)


def test_a_day_and_an_hour_are_a_time():
    before, after = time_of("date=2026-01-31/hour=23/g"), time_of("date=2026-02-01/hour=0/g")
    assert after - before == 3_600
    assert time_of("dt=20260131/hour=1/g") - time_of("dt=2026-01-31/hour=0/g") == 3_600
    assert time_of("labels.hour=7/g") == 7 * 3_600
    assert time_of("hour=25/g") is None
    assert time_of("hour=7") is not None
    assert time_of("day=2026-13-01/g") is None


def test_the_keys_of_the_time_of_a_scenario_are_those_that_have_it():
    name = "date=2026-01-31/hour=7/draw=2/g"
    assert keys_of_time(name) == "date=2026-01-31/hour=7"
    assert keys_of_time("draw=2/g") == ""


def test_loads_that_are_not_known_leave_it_open():
    names, load = hours([1.5, 1.5])
    assert longest_wait(names, load * np.nan) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "2 min"), (5_300, "88 min"), (5_400, "1.5 h"), (90_000, "25 h")]
)
def test_times_are_minutes_or_hours(seconds, text):
    assert as_time(seconds) == text
