"""Values over time, [[at_ms, value], ...], in a length that can be sent."""

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

MOST_FIGURES = 100_000
"""The figures of a quantity of all members together, from which on the series of each is thinned."""

FEWEST_COLUMNS = 100

Series: TypeAlias = list[list[float | None]]


def add(series: Series, at_ms: int, value: float | None) -> None:
    """Add a value if it differs from the last one."""
    if not series or series[-1][1] != value:
        series.append([at_ms, value])


def columns_for(members: int) -> int:
    """Return the columns of time of which the series of each of so many members keeps the values."""
    return max(FEWEST_COLUMNS, MOST_FIGURES // (4 * max(1, members)))


def thinned(series: Series, columns: int, end_ms: int) -> Series:
    """Return the values of a series that holds each value until the next one, in columns of time (M4).

    A series of at most four values for each of the columns between 0 and ``end_ms`` is returned as it is. Of
    a longer one each column keeps the first value, the last, the least and the largest, at their times, and
    the first time from which the value is unknown. In each column the range of what is kept is that of the
    series, and at its end the value is that of the series.
    (Jugel et al., M4: a visualization-oriented time series data aggregation, VLDB 2014.)
    """
    if len(series) <= 4 * columns:
        return series
    kept = [
        pair
        for _, column in groupby(series, key=lambda pair: int(_time(pair) * columns) // max(1, end_ms))
        for pair in _corners(list(column))
    ]
    return [next(equal) for _, equal in groupby(kept, key=itemgetter(1))]


def packed(series: Series) -> list[list[int | None]]:
    """Return a series of tenths in columns: the steps of times, and those of tenths, None if unknown.

    Measures come at regular times, so that the steps need a fifth of the space when a page is compressed.
    """
    times: list[int | None] = []
    tenths: list[int | None] = []
    at_ms = before = 0
    for time, value in series:
        times.append(int(time or 0) - at_ms)
        at_ms = int(time or 0)
        if value is None:
            tenths.append(None)
        else:
            tenths.append(round(10 * value) - before)
            before = round(10 * value)
    return [times, tenths]


def _corners(column: Series) -> Series:
    known = [(pair[1], number) for number, pair in enumerate(column) if pair[1] is not None]
    unknown = [number for number, pair in enumerate(column) if pair[1] is None]
    numbers = {0, len(column) - 1, *unknown[:1]}
    if known:
        numbers |= {min(known)[1], max(known)[1]}
    return [column[number] for number in sorted(numbers)]


def _time(pair: list[float | None]) -> float:
    return pair[0] or 0


def largest_of(series: list[list[Any]], most: int, size: Callable[[list[Any]], float]) -> list[list[Any]]:
    """Return at most ``most`` pairs: the one with the largest size of each stretch."""
    stretch = -(-len(series) // max(1, most))
    if stretch <= 1:
        return series
    return [max(series[i : i + stretch], key=size) for i in range(0, len(series), stretch)]


def line(points: list[list[float]]) -> list[list[float]]:
    """Return the points of a line through measures, without those between equal ones.

    It is the same line. The drawing leaves out what a column of pixels does not show.
    """
    return [
        point
        for n, point in enumerate(points)
        if not (0 < n < len(points) - 1 and points[n - 1][1] == point[1] == points[n + 1][1])
    ]
