"""A comparison as JSON, CSV and HTML."""

from dataclasses import replace
from html import escape
from math import isnan
from typing import Any

from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.as_seen import as_document
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.comparison_tables import (
    definitions,
    faults,
    front_line,
    signs,
    tables_of,
    title_of,
)
from rebalance_lab.verdicts.tables import Table, csv_text, json_text

_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
    "th,td{padding:.3rem .8rem;text-align:right;border-bottom:1px solid #ddd;white-space:pre;"
    "font-variant-numeric:tabular-nums}"
    "th[scope=row]{text-align:left;font-weight:400}th[title]{text-decoration:underline dotted}"
    "b{color:#0072b2}"
    ".fault{color:#c00;font-weight:600}dt{font-weight:600}caption{text-align:left;font-weight:600}"
)


def as_json(comparison: Comparison) -> str:
    """Write one object. Figures that a run does not have are null, as is the front without enough seeds.

    A figure is the median of the seeds. Several seeds add the values of each and their spread.
    """
    return json_text(
        {
            "scenario": comparison.scenario,
            "seed": comparison.seeds[0],
            "seeds": list(comparison.seeds),
            "answers": answers(comparison),
            **({} if comparison.seen is None else {"as_seen": as_document(comparison.seen)}),
            "front_of": [metric.name for metric in comparison.front_metrics],
            "strategies": [_object(comparison, i) for i in range(len(comparison.candidates))],
            "worth": comparison.worth,
            "errors": list(comparison.errors),
            "definitions": {metric.name: _definition(metric) for metric in comparison.metrics},
        }
    )


def _object(comparison: Comparison, number: int) -> dict[str, Any]:
    candidate = comparison.candidates[number]
    figures = candidate.figures
    document: dict[str, Any] = {"strategy": candidate.strategy}
    if candidate.settings:
        document["settings"] = {name: value for name, (_, value) in candidate.settings.items()}
    document["front"] = number in comparison.front if comparison.is_decided else None
    document["metrics"] = {name: _known(figure.median) for name, figure in figures.items()}
    if len(comparison.seeds) > 1:
        document["spread"] = {n: [_known(v) for v in figure.spread] for n, figure in figures.items()}
        document["values"] = {n: [_known(v) for v in figure.values] for n, figure in figures.items()}
    document["findings"] = list(candidate.findings)
    return document


def _definition(metric: MetricSpec) -> dict[str, Any]:
    return {
        "definition": metric.doc,
        "unit": metric.unit,
        "group": metric.group,
        "better": metric.better,
        "headline": metric.headline,
    }


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def as_csv(comparison: Comparison) -> str:
    """Write a row for each candidate, a column for each metric. Figures that a run does not have are empty.

    A figure is the median of the seeds, and ``seed`` the first one. Several seeds add the ends of the spread.
    """
    rows = [_row(comparison, number) for number in range(len(comparison.candidates))]
    return csv_text(list(rows[0]), (list(row.values()) for row in rows))


def _row(comparison: Comparison, number: int) -> dict[str, Any]:
    candidate = comparison.candidates[number]
    figures = {metric.name: candidate.figures[metric.name] for metric in comparison.metrics}
    row: dict[str, Any] = {
        "scenario": comparison.scenario,
        "seed": comparison.seeds[0],
        "strategy": candidate.strategy,
        **{name: value for name, (_, value) in candidate.settings.items()},
        **{name: figure.median for name, figure in figures.items()},
    }
    for name, figure in figures.items() if len(comparison.seeds) > 1 else ():
        row[f"{name}_low"], row[f"{name}_high"] = figure.spread
    row["front"] = ("yes" if number in comparison.front else "no") if comparison.is_decided else ""
    row["findings"] = "; ".join(candidate.findings)
    return row


def as_html(comparison: Comparison) -> str:
    """Write a page with the headline metrics, all metrics below, and their definitions."""
    title = escape(comparison.scenario)
    shown = comparison.shown
    first, everything = (tables_of(comparison, everything=wanted) for wanted in (False, True))
    return "\n".join(
        [
            f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>",
            f"<style>{_STYLE}</style></head>",
            f"<body><h1>{title}</h1>\n<p>{escape(title_of(comparison))}</p>",
            *map(_paragraph, answers(comparison)),
            *(_table(table) for table in first),
            _paragraph(front_line(comparison)),
            *(_paragraph(fault, "fault") for fault in (*faults(comparison), *comparison.errors)),
            *map(_paragraph, signs(comparison)),
            "<details><summary>All metrics</summary>",
            *(_table(table) for table in everything),
            "</details>\n<h2>Definitions</h2>\n<dl>",
            *(f"<dt>{escape(n)}</dt><dd>{escape(text)}</dd>" for n, text in definitions(shown)),
            "</dl></body></html>\n",
        ]
    )


def _table(table: Table) -> str:
    rows = [[first._replace(text=first.text.strip()), *rest] for first, *rest in table.rows]
    return replace(table, rows=rows).as_html()


def _paragraph(text: str, kind: str = "") -> str:
    attribute = f" class={kind}" if kind else ""
    return f"<p{attribute}>{escape(text)}</p>" if text else ""
