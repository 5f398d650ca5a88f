"""The findings as one static page with tables and SVG plots. It fetches nothing and runs no script."""

import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from coordinator_core.reports.picture import PALETTE
from coordinator_core.reports.tables import Cell, html_table
from rebalance_spark.choices import Statistic, Status
from rebalance_spark.findings import Findings, figures_table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #8884 }
th:first-child { text-align: left }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
figure { margin: 0; background: #fff; border-radius: 6px; padding: .4rem }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1rem }
.wide { overflow-x: auto }
svg { width: 100%; height: auto }
"""


def as_page(findings: Findings) -> str:
    """Return the page. Plots have a white background in a dark theme, too."""
    scenarios = f"{findings.scenarios:,} scenarios, {' and '.join(findings.fidelities)} fidelity"
    parts = [
        f"<h1>{escape(scenarios)}</h1>",
        f"<p>{escape('; '.join(findings.versions))}</p>",
        _status_table(findings),
    ]
    if findings.front:
        parts += [
            f"<h2>Moves against {escape(findings.balance)}</h2>",
            f"<p>Means over the {findings.common:,} scenarios that every strategy has figures for. Of the"
            " strategies on the front, which a line joins, none is worse than another in both.</p>",
            f"<figure>{_front_plot(findings)}</figure>",
        ]
    parts += [
        "<h2>Distributions</h2>",
        "<p>How many of the scenarios (percent) have at most this figure.</p>",
        f'<div class="plots">{"".join(_curves(findings))}</div>',
        "<h2>Figures</h2>",
        *(_figures_table(findings, statistic) for statistic in Statistic),
        _worst_table(findings),
        "<h2>Pair by pair</h2>",
        "<p>In how many scenarios the strategy of the row is better than that of the column, in percent of"
        " those that both have figures for; the rest are ties or worse.</p>",
        *(_wins_table(findings, metric) for metric in findings.metrics),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(scenarios)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    return f'<div class="wide">{html_table(head, rows, caption)}</div>'


def _status_table(findings: Findings) -> str:
    rows = [
        [Cell(strategy), *(Cell(f"{counts[status.value]:,}") for status in Status)]
        for strategy, counts in findings.statuses.items()
    ]
    return _table("Rows", ["strategy", *(status.value for status in Status)], rows)


def _figures_table(findings: Findings, statistic: str) -> str:
    head, rows = figures_table(findings, statistic, findings.metrics)
    return _table(statistic, ["metric", *head[1:]], rows)


def _worst_table(findings: Findings) -> str:
    rows = []
    for metric in findings.metrics:
        found = [findings.figures.get((metric, strategy)) for strategy in findings.strategies]
        worst = [Cell("-" if figures is None else figures.worst_scenario, left=True) for figures in found]
        rows.append([Cell(metric), *worst])
    return _table("the worst scenario", ["metric", *findings.strategies], rows)


def _wins_table(findings: Findings, metric: str) -> str:
    rows = []
    for strategy in findings.strategies:
        cells = [Cell(strategy)]
        for other in findings.strategies:
            counts = findings.wins.get((metric, strategy, other))
            total = sum(counts) if counts else 0
            cells.append(Cell(f"{100 * counts[0] / total:.1f} %" if counts and total else ""))
        rows.append(cells)
    return _table(metric, ["better than", *findings.strategies], rows)


def _front_plot(findings: Findings) -> str:
    figure, axes = _plot(7.2, 3.6)
    front = [point for point in findings.front if point.on_front]
    axes.plot([f.moves for f in front], [f.balance for f in front], color="#999999", linewidth=1, zorder=1)
    for point in findings.front:
        color = _colors(findings)[point.strategy]
        axes.scatter(
            point.moves, point.balance, color=color, s=45, zorder=2, edgecolor="black", linewidth=0.6
        )
    for moves, balance, names in _places(findings):
        name = axes.annotate(names, (moves, balance), textcoords="offset points", xytext=(7, 5), fontsize=9)
        name.set_parse_math(False)
    axes.margins(0.18)
    axes.set_xlabel("moved_partitions, mean")
    axes.set_ylabel(f"{findings.balance}, mean")
    return _svg(figure, f"Each strategy by moved_partitions and {findings.balance}")


def _places(findings: Findings) -> list[tuple[float, float, str]]:
    """Return the places of names. Strategies with the same means share a place."""
    places: dict[tuple[float, float], list[str]] = {}
    for point in findings.front:
        places.setdefault((round(point.moves, 6), round(point.balance, 6)), []).append(point.strategy)
    return [(moves, balance, ", ".join(names)) for (moves, balance), names in places.items()]


def _curves(findings: Findings) -> Iterable[str]:
    for metric in findings.metrics:
        figure, axes = _plot(4.4, 2.9)
        lines = {}
        for number, strategy in enumerate(findings.strategies):
            values = findings.curves.get((metric, strategy))
            if values is None:
                continue
            percents = [100 * i / (len(values) - 1) for i in range(len(values))]
            style = ("-", "--", "-.", ":")[number % 4]
            color = _colors(findings)[strategy]
            (lines[strategy],) = axes.plot(values, percents, style, color=color, linewidth=1.6)
        axes.set_title(metric, fontsize=10)
        axes.set_ylim(0, 101)
        legend = axes.legend([*lines.values()], [*lines], fontsize=7, frameon=False, loc="lower right")
        for name in legend.get_texts():
            name.set_parse_math(False)
        yield f"<figure>{_svg(figure, f'Distribution of {metric} by strategy')}</figure>"


def _colors(findings: Findings) -> dict[str, str]:
    return {s: PALETTE[i % len(PALETTE)] for i, s in enumerate(findings.strategies)}


def _plot(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    return figure, axes


def _svg(figure: Any, label: str) -> str:
    """Return a plot as an SVG element, which has the same bytes for the same plot."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": label, "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
