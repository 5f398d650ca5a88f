"""Values over time, [[at_ms, value], ...], in a length that can be sent."""

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

MOST_FIGURES = 400
"""The most figures of a series that are sent, beside the times from which they are unknown.

Of a longer series of a member, the largest of each stretch is sent; of a line, the least and the largest."""

Series: TypeAlias = list[list[float | None]]


def add(series: Series, at_ms: int, value: float | None) -> None:
    """Add a value if it differs from the last one."""
    if not series or series[-1][1] != value:
        series.append([at_ms, value])


def thinned(series: Series) -> Series:
    """Return the values of a series that holds each value until the next one: the largest of each stretch."""
    known = [pair for pair in series if pair[1] is not None]
    largest = largest_of(known, MOST_FIGURES, itemgetter(1))
    if len(largest) == len(known):
        return series
    unknown = [pair for pair in series if pair[1] is None]
    in_order = sorted([*unknown, *largest], key=itemgetter(0))
    return [next(equal) for _, equal in groupby(in_order, key=itemgetter(1))]


def largest_of(series: list[list[Any]], most: int, size: Callable[[list[Any]], float]) -> list[list[Any]]:
    """Return at most ``most`` pairs: the one with the largest size of each stretch."""
    stretch = -(-len(series) // max(1, most))
    if stretch <= 1:
        return series
    return [max(series[i : i + stretch], key=size) for i in range(0, len(series), stretch)]


def line(points: list[list[float]]) -> list[list[float]]:
    """Return the points of a line through measures, without those between equal ones."""
    kept = [
        point
        for n, point in enumerate(points)
        if not (0 < n < len(points) - 1 and points[n - 1][1] == point[1] == points[n + 1][1])
    ]
    stretch = -(-2 * len(kept) // MOST_FIGURES)
    if stretch <= 2:
        return kept
    return [
        point
        for i in range(0, len(kept), stretch)
        for point in sorted(
            [min(kept[i : i + stretch], key=itemgetter(1)), max(kept[i : i + stretch], key=itemgetter(1))]
        )
    ]
