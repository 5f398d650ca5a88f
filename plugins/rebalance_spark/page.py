"""The findings as one static page with tables and SVG plots. It fetches nothing and runs no script."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from rebalance_lab.verdicts.tables import Cell, html_table
from rebalance_spark import report_tables as tables
from rebalance_spark.choices import Statistic, Status
from rebalance_spark.findings import Findings
from rebalance_spark.paired import LEVEL, RESAMPLES
from rebalance_spark.plots import distribution_plot, front_plot, is_constant, look

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --jp-success-color1: #7bd88f; --jp-warn-color1: #f0b45a } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 88rem; padding: 0 1rem }
p, .verdict, dl { max-width: 52rem }
.verdict { font-size: 1.1rem; font-weight: 600; padding-left: 1.2rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .8rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884 }
th:first-child { text-align: left; position: sticky; left: 0; background: Canvas }
th[title] { text-decoration: underline dotted #888 }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
figure { margin: 0 }
.front { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: center }
.front figure { flex: 1 1 30rem; max-width: 52rem }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1rem }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; padding: 0; list-style: none }
.key svg { width: 2rem; height: .7rem; margin-right: .4rem }
.wide { overflow-x: auto }
figure svg { width: 100%; height: auto }
dt { font-weight: 600 } dd { margin: 0 0 .5rem 1rem }
"""


def as_page(findings: Findings, links: Mapping[str, str] | None = None) -> str:
    """Return the page. ``links`` maps scenarios to the addresses of views, relative to the page."""
    title = tables.title_of(findings)
    sentences = "".join(f"<li>{escape(line)}</li>" for line in tables.verdict(findings))
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<ul class="verdict">{sentences}</ul>' if sentences else "",
        *(f"<p>{escape(line)}</p>" for line in findings.left_out),
        *(f"<p>{escape(line)}</p>" for line in tables.notes(findings)),
        *_front(findings),
        *_differences(findings),
        *_parts(findings),
        *_distributions(findings),
        "<h2>Figures</h2>",
        f"<p>Of the {findings.common:,} scenarios that all compared strategies completed.</p>",
        *(_laid_out(tables.figures_table(findings, s, findings.metrics), s) for s in Statistic),
        _worst_table(findings, links or {}),
        "<h2>Pair by pair</h2>",
        "<p>In how many scenarios the strategy of the row is better than that of the column, in percent of"
        " those that both have figures for; the rest are ties or worse.</p>",
        *(_wins_table(findings, metric) for metric in findings.metrics),
        _definitions(findings),
        "<h2>Rows</h2>",
        _status_table(findings),
        f"<p>{escape('; '.join(findings.versions))}</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _front(findings: Findings) -> list[str]:
    if not findings.front:
        return []
    return [
        f"<h2>Moves against {escape(findings.balance)}</h2>",
        f"<p>Means over {findings.common:,} scenarios. Of the strategies on the front, the filled points on a"
        " line, none is worse than another in both.</p>",
        f'<div class="front"><figure>{front_plot(findings)}</figure>',
        _laid_out(tables.front_table(findings), "Front", "strategy") + "</div>",
    ]


def _differences(findings: Findings) -> list[str]:
    if findings.advice is None:
        return []
    baseline, groups = escape(findings.advice.baseline), escape(findings.advice.subjects.plural)
    return [
        f"<h2>Change from {baseline}</h2>",
        f"<p>The mean difference to {baseline} in the same {findings.common:,} scenarios, and the interval"
        f" with it in {LEVEL} % of {RESAMPLES:,} resamples of the {groups}. Green is better, yellow is worse;"
        " without a colour, zero is in the interval, or there is none.</p>",
        _laid_out(tables.differences_table(findings, findings.metrics), f"less {findings.advice.baseline}"),
    ]


def _parts(findings: Findings) -> list[str]:
    if not findings.parts:
        return []
    heading = f"<h2>By {escape(findings.by)}</h2>"
    shown = []
    for metric in tables.parts_metrics(findings):
        shown.append(_laid_out(tables.parts_table(findings, metric), metric, findings.by))
        if findings.advice is not None:
            caption = f"{metric} less {findings.advice.baseline}"
            shown.append(_laid_out(tables.parts_differences_table(findings, metric), caption, findings.by))
    return [heading, *shown]


def _distributions(findings: Findings) -> list[str]:
    known = [metric for metric in findings.metrics if any(m == metric for m, _ in findings.curves)]
    plots = [metric for metric in known if not is_constant(findings, metric)]
    constant = ", ".join(metric for metric in known if metric not in plots)
    if not known:
        return []
    drawn = "".join(f"<figure>{distribution_plot(findings, metric)}</figure>" for metric in plots)
    return [
        "<h2>Distributions</h2>",
        "<p>How many of the scenarios (percent) have at most this figure. Metrics with a heavy tail have a"
        " logarithmic axis.</p>",
        _key(findings),
        f'<div class="plots">{drawn}</div>',
        f"<p>The same in all scenarios and under all strategies: {escape(constant)}.</p>" if constant else "",
    ]


def _key(findings: Findings) -> str:
    entries = []
    for strategy in findings.strategies:
        colour, dashes = look(findings, strategy)
        line = (
            f'<svg viewBox="0 0 32 10"><line y1="5" x2="32" y2="5" stroke="{colour}" stroke-width="2.5"'
            f' stroke-dasharray="{" ".join(str(2 * d) for d in dashes)}"/></svg>'
        )
        entries.append(f"<li>{line}{escape(strategy)}</li>")
    return f'<ul class="key">{"".join(entries)}</ul>'


def _laid_out(table: tables.Table, caption: str, first: str = "") -> str:
    head, rows, headings = table
    name = first or ("strategy" if headings > 1 else "metric")
    return _table(caption, [name, *head[1:]], rows)


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    return f'<div class="wide">{html_table(head, rows, caption)}</div>'


def _status_table(findings: Findings) -> str:
    rows = [
        [Cell(strategy), *(Cell(f"{counts[status.value]:,}") for status in Status)]
        for strategy, counts in findings.statuses.items()
    ]
    return _table("Rows", ["strategy", *(status.value for status in Status)], rows)


def _worst_table(findings: Findings, links: Mapping[str, str]) -> str:
    rows = []
    for metric in findings.metrics:
        found = [findings.figures.get((metric, strategy)) for strategy in findings.strategies]
        worst = [
            Cell("-", left=True)
            if figures is None
            else Cell(figures.worst_scenario, left=True, link=quote(links.get(figures.worst_scenario, "")))
            for figures in found
        ]
        rows.append([Cell(metric, hint=tables.hint_of(findings, metric)), *worst])
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


def _definitions(findings: Findings) -> str:
    described = tables.definitions(findings, findings.metrics)
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in described)
    return f"<h2>Definitions</h2><dl>{entries}</dl>" if entries else ""
