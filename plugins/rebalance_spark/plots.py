"""The plots of a report as SVG elements. Texts and axes have the colour of the page's text."""

import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_spark.findings import Findings

COLOURS = ("#0f7ac0", "#e07b00", "#0a9a6c", "#cc5fa0", "#b8493a", "#8a6fd1", "#8c8c00", "#5c8f99")
"""Colours with enough contrast to a white and to a dark background."""

DASHES = ((), (5, 2), (1, 1.5), (7, 2, 1, 2))
"""The dashes of lines in points. With them there are 32 different lines."""

HEAVY = 20
"""A metric whose largest figure is this many times the median has a logarithmic axis."""

_TEXT = "#010203"
"""Stands for the colour of the page's text, which matplotlib does not know."""

_GRID = "#8888884d"
_BESIDE = 17
"""The largest offset of a label beside its point, in points."""

_SIDES = [(8, 4), (8, -11), (-8, 4), (-8, -11), (0, 10), (0, -17)]
_PLACES = [(x * far, y * far) for far in (1, 2, 3.4, 5) for x, y in _SIDES]
"""Offsets of a label from its point in points, from the preferred one on."""


def look(findings: Findings, strategy: str) -> tuple[str, tuple[float, ...]]:
    """Return the colour and the dashes of a strategy."""
    number = list(findings.strategies).index(strategy)
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


def front_plot(findings: Findings) -> str:
    """Plot each strategy by its moves and balance. Labels overlap neither each other nor a point."""
    figure, axes = plot(7.2, 3.8)
    on_front = [point for point in findings.front if point.on_front]
    axes.plot([f.moves for f in on_front], [f.balance for f in on_front], color="#888888", linewidth=1)
    for point in findings.front:
        colour, _ = look(findings, point.strategy)
        face = colour if point.on_front else "none"
        axes.scatter(point.moves, point.balance, s=40, zorder=3, facecolor=face, edgecolor=colour)
    axes.margins(0.15)
    axes.set_xlabel(_with_unit(findings, "moved_partitions"))
    axes.set_ylabel(_with_unit(findings, findings.balance))
    label(figure, axes, _places_of(findings))
    return _svg(figure, f"Each strategy by moved_partitions and {findings.balance}")


def is_constant(findings: Findings, metric: str) -> bool:
    """Return whether all figures of a metric are the same."""
    curves = [figures.curve for (name, _), figures in findings.figures.items() if name == metric]
    return len({value for curve in curves for value in curve}) == 1


def distribution_plot(findings: Findings, metric: str) -> str:
    """Plot how many of the scenarios have at most a figure, for each strategy."""
    figure, axes = plot(4.4, 2.6)
    drawn = []
    for strategy in findings.strategies:
        if (metric, strategy) not in findings.figures:
            continue
        values = findings.figures[metric, strategy].curve
        drawn.append(np.array(values))
        colour, dashes = look(findings, strategy)
        percents = np.linspace(0, 100, len(values))
        axes.step(values, percents, where="post", color=colour, dashes=dashes or (None, None), linewidth=1.6)
    _scale(axes, drawn)
    axes.set_title(metric, fontsize=10, color=_TEXT)
    axes.set_xlabel(findings.units.get(metric, ""), fontsize=8)
    axes.set_ylabel("% of scenarios", fontsize=8)
    axes.set_ylim(0, 102)
    return _svg(figure, f"Distribution of {metric} by strategy")


def _scale(axes: Any, drawn: Sequence[NDArray[np.float64]]) -> None:
    """Set a logarithmic axis if the figures have a heavy tail. It begins at 0 if a figure is 0."""
    together = np.concatenate(drawn)
    positive = together[together > 0]
    if together.min() < 0 or not len(positive):
        return
    median = max(float(np.median(values)) for values in drawn)
    if not is_heavy(float(together.max()), median, float(positive.min())):
        return
    if len(positive) == len(together):
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=positive.min(), linscale=0.8)
        axes.set_xlim(left=0)


def is_heavy(largest: float, median: float, least: float) -> bool:
    """Return whether figures have a heavy tail. ``least`` is the least positive one."""
    return largest > HEAVY * max(median, least)


def _with_unit(findings: Findings, metric: str) -> str:
    unit = findings.units.get(metric, "")
    return f"{metric}, mean ({unit})" if unit else f"{metric}, mean"


def _places_of(findings: Findings) -> list[tuple[float, float, str]]:
    """Return the places of labels. Strategies with the same means share a place."""
    places: dict[tuple[float, float], list[str]] = {}
    for point in findings.front:
        places.setdefault((round(point.moves, 6), round(point.balance, 6)), []).append(point.strategy)
    return [(moves, balance, ", ".join(names)) for (moves, balance), names in places.items()]


def label(
    figure: Any, axes: Any, labels: Sequence[tuple[float, float, str]]
) -> list[tuple[float, float, float, float]]:
    """Place labels one after another where there is room, and return their places in pixels.

    A line leads to the point if the label is not beside it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    points = [axes.transData.transform((x, y)) for x, y, _ in labels]
    taken = [(px - 6, py - 6, px + 6, py + 6) for px, py in points]
    frame = axes.get_window_extent(renderer).extents
    scale = figure.dpi / 72
    boxes = []
    for (x, y, text), (px, py), own in zip(labels, points, list(taken), strict=True):
        shown = axes.annotate(text, (x, y), (0, 0), textcoords="offset points", fontsize=9, color=_TEXT)
        shown.set_parse_math(False)
        width, height = shown.get_window_extent(renderer).size
        others = [box for box in taken if box is not own]
        best, least = _PLACES[0], np.inf
        for dx, dy in _PLACES:
            left = px + dx * scale - (0 if dx > 0 else width if dx < 0 else width / 2)
            box = (left, py + dy * scale, left + width, py + dy * scale + height)
            cost = sum(overlap(box, other) for other in others) + 4 * _outside(box, frame)
            if cost < least:
                best, least, place = (dx, dy), cost, box
        dx, dy = best
        shown.set_position(best)
        shown.set_horizontalalignment("left" if dx > 0 else "right" if dx < 0 else "center")
        taken.append(place)
        boxes.append(place)
        if max(abs(dx), abs(dy)) > _BESIDE:
            line = {"arrowstyle": "-", "color": "#888888", "linewidth": 0.6}
            axes.annotate("", (x, y), textcoords="offset points", xytext=best, arrowprops=line)
    return boxes


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


def _outside(box: Sequence[float], frame: Sequence[float]) -> float:
    inside = overlap(box, frame)
    return (box[2] - box[0]) * (box[3] - box[1]) - inside


def plot(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color("#888888")
    axes.tick_params(labelsize=8, color="#888888", labelcolor=_TEXT)
    axes.xaxis.label.set_color(_TEXT)
    axes.yaxis.label.set_color(_TEXT)
    axes.grid(color=_GRID, linewidth=0.6)
    return figure, axes


def _svg(figure: Any, label: str) -> str:
    """Return a plot as an SVG element, which has the same bytes for the same plot."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": label, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    drawn = text.getvalue().replace(_TEXT, "currentColor")
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
