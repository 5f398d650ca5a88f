"""What a page gets of a long series, held against the series."""

from bisect import bisect_right
from math import inf
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.protocol import events as ev
from rebalance_jupyter import run
from rebalance_jupyter.series import (
    add,
    largest_of,
    line,
    packed,
    thinned,
)
from rebalance_jupyter.view_model import view_model
from tests.examples import scaled
from tests.rebalance_jupyter.samples import lag_of

THOUSAND = """\
name: thousand
duration: 3m
topics: {orders: {partitions: 1000, rate: 40000}}
members:
  - {id: c, count: 100, topics: [orders], process_rate: 500}
events:
  - {at: 20s, join: {id: one, topics: [orders], process_rate: 500}}
  - {at: 40s, crash: c-5}
  - {at: 60s, leave: c-7}
  - {at: 80s, restart: c-9}
  - {at: 2m, join: {id: two, topics: [orders], process_rate: 500}}
"""


def held_at(series, at_ms):
    """The last value up to a time; None before the first one."""
    number = bisect_right(series, at_ms, key=lambda pair: pair[0])
    return series[number - 1][1] if number else None


def drawn_at(points, at_ms):
    """The height of a line through points."""
    number = bisect_right(points, at_ms, key=lambda pair: pair[0])
    (from_ms, low), (to_ms, high) = points[number - 1], points[min(number, len(points) - 1)]
    return low + (high - low) * (at_ms - from_ms) / (to_ms - from_ms) if to_ms > at_ms else low


def ranges(series, columns, end_ms):
    """Of each column the least and the largest value that is held in it, and the value at its end."""
    found = []
    for column in range(columns):
        first, last = -(-column * end_ms // columns), -(-(column + 1) * end_ms // columns) - 1
        held = [held_at(series, first), *(value for at_ms, value in series if first <= at_ms <= last)]
        known = [value for value in held if value is not None]
        has_gap = any(value is None for value in held)
        found.append((min(known, default=inf), max(known, default=inf), has_gap, held_at(series, last)))
    return found


@st.composite
def long_series(draw):
    """Values that change, some of them unknown, at times that cluster, about four for each column or more."""
    columns = draw(st.integers(1, 6))
    end_ms = draw(st.integers(columns, 400))
    values = st.none() | st.integers(-5, 5).map(float)
    listed = draw(st.lists(st.tuples(st.integers(0, end_ms - 1), values), min_size=4 * columns, max_size=80))
    series = []
    for at_ms, value in sorted(listed, key=lambda pair: pair[0]):
        add(series, at_ms, value)
    return columns, end_ms, series


@settings(max_examples=scaled(2_000))
@given(long_series())
def test_each_column_keeps_its_range_its_gap_and_the_value_at_its_end(made):
    columns, end_ms, series = made
    sent = thinned(series, columns, end_ms)
    assert ranges(sent, columns, end_ms) == ranges(series, columns, end_ms)
    assert all(pair in series for pair in sent)
    assert len(sent) <= max(len(series), 5 * columns)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.none() | st.integers(0, 10**9)), max_size=20))
def test_a_packed_series_is_the_same_series(made):
    series = [
        [at_ms, None if tenths is None else tenths / 10] for at_ms, tenths in sorted(made, key=itemgetter(0))
    ]
    assert lag_of({"lag": packed(series)}) == series


def test_a_line_keeps_its_corners():
    assert line([[0, 5], [1, 0], [2, 0], [3, 0], [4, 7]]) == [[0, 5], [1, 0], [3, 0], [4, 7]]


def test_a_series_that_is_short_enough_is_sent_as_it_is():
    series = [[at_ms, None if at_ms % 3 else float(at_ms)] for at_ms in range(40)]
    assert thinned(series, 10, 40) is series


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_the_lag_of_a_large_group_is_drawn_as_it_was_measured(strategy):
    """That of the group at each measure, and that of each member at the end."""
    trace = run(THOUSAND, strategy)
    measures = [
        (entry.at_ms, entry.event) for entry in trace.events if isinstance(entry.event, ev.LagMeasured)
    ]
    document = view_model(trace).document
    at_end = dict(measures)  # of several measures at a time the last one counts
    for at_ms, measured in at_end.items():
        assert drawn_at(document["lag"], at_ms) == pytest.approx(measured.lag, abs=0.06)
    last_ms, last = measures[-1]
    assert last_ms == trace.started.duration_ms
    for member in document["members"]:
        if any(member["lag"]):
            assert held_at(lag_of(member), last_ms) == pytest.approx(
                last.by_client.get(member["name"], 0.0), abs=0.06
            )
    assert sum(any(member["lag"]) for member in document["members"]) == 102


def test_a_value_that_has_not_changed_is_not_added():
    series = []
    for at_ms, value in enumerate([1, 1, None, None, 2, 1]):
        add(series, at_ms, value)
    assert series == [[0, 1], [2, None], [4, 2], [5, 1]]


def test_the_largest_of_each_stretch_are_at_most_so_many():
    series = [[at_ms, at_ms % 4] for at_ms in range(10)]
    assert largest_of(series, 10, itemgetter(1)) == series
    assert largest_of(series, 4, itemgetter(1)) == [[2, 2], [3, 3], [7, 3], [9, 1]]
