"""The findings as one static page with tables and SVG plots. It fetches nothing and runs no script."""

from collections.abc import Mapping, Sequence
from html import escape

from rebalance_lab.verdicts.tables import Table, html_table
from rebalance_spark import report_tables as tables
from rebalance_spark.choices import Statistic
from rebalance_spark.findings import Findings
from rebalance_spark.paired import LEVEL, RESAMPLES
from rebalance_spark.plots import distribution_plot, front_plot, is_constant, look
from rebalance_spark.sentences import notes, title_of, to_do, verdict
from rebalance_spark.sheet import Sheet

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --jp-success-color1: #7bd88f; --jp-warn-color1: #f0b45a } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 88rem; padding: 0 1rem }
p, .verdict, dl { max-width: 52rem; overflow-wrap: anywhere }
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
summary { max-width: 60rem; margin: .4rem 0 }
details th:first-child { white-space: pre }
details[open] { border-left: 3px solid #8884; padding-left: 1rem }
figure svg { width: 100%; height: auto }
dt { font-weight: 600 } dd { margin: 0 0 .5rem 1rem }
"""


def as_page(findings: Findings, links: Mapping[str, str] | None = None, sheets: Sequence[Sheet] = ()) -> str:
    """Return the page. ``links`` maps scenarios to the addresses of views, relative to the page.

    ``sheets`` are those of the first groups with something to do.
    """
    title, metrics = title_of(findings), findings.metrics
    sentences = "".join(f"<li>{escape(line)}</li>" for line in verdict(findings))
    lines = "".join(f"<p>{escape(line)}</p>" for line in to_do(findings)[len(sheets) :])
    entries = "".join(
        f"<dt>{escape(n)}</dt><dd>{escape(text)}</dd>" for n, text in tables.definitions(findings)
    )
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<ul class="verdict">{sentences}</ul>' if sentences else "",
        f"<h2>Group by group</h2>{''.join(map(_sheet, sheets))}{lines}" if sheets or lines else "",
        *(f"<p>{escape(line)}</p>" for line in (*findings.left_out, *notes(findings))),
        *_front(findings),
        *_differences(findings),
        f"<h2>By {escape(findings.by)}</h2>" if findings.parts else "",
        *map(_table, tables.parts_tables(findings)),
        *_distributions(findings),
        "<h2>Figures</h2>",
        f"<p>Of the {findings.common:,} scenarios that all compared strategies completed.</p>",
        *(_table(tables.figures_table(findings, statistic, metrics)) for statistic in Statistic),
        _table(tables.worst_table(findings, links or {})),
        "<h2>Pair by pair</h2>",
        "<p>In how many scenarios the strategy of the row is better than that of the column, in percent of"
        " those that both have figures for; the rest are ties or worse.</p>",
        *(_table(tables.wins_table(findings, metric)) for metric in metrics),
        f"<h2>Definitions</h2><dl>{entries}</dl>" if entries else "",
        "<h2>Rows</h2>",
        _table(tables.status_table(findings.statuses)),
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


def _sheet(sheet: Sheet) -> str:
    """Return a line that opens the tables of a group and the steps of its switch."""
    first, *rest = sheet.sentences
    inside = [*(f"<p>{escape(line)}</p>" for line in rest), *map(_table, sheet.tables)]
    inside += [f"<p>{escape(step)}</p>" for step in sheet.steps]
    return f"<details><summary>{escape(first)}</summary>{''.join(inside)}</details>"


def _front(findings: Findings) -> list[str]:
    if not findings.front:
        return []
    return [
        f"<h2>Moves against {escape(findings.balance)}</h2>",
        f"<p>Means over {findings.common:,} scenarios. On the front, the filled points on a line, are those"
        " than which no other strategy is known to be better in one of the two and as good in the other.</p>",
        f'<div class="front"><figure>{front_plot(findings)}</figure>',
        _table(tables.front_table(findings)) + "</div>",
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
        _table(tables.differences_table(findings, findings.metrics)),
    ]


def _distributions(findings: Findings) -> list[str]:
    plots = [metric for metric in findings.metrics if not is_constant(findings, metric)]
    constant = ", ".join(metric for metric in findings.metrics if metric not in plots)
    if not findings.metrics:
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


def _table(table: Table) -> str:
    return f'<div class="wide">{html_table(table.head, table.rows, table.title)}</div>'
