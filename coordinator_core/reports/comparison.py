"""Strategies side by side: every metric of every run, and how a comparison is written down."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isinf, isnan
from typing import Any

import msgspec

from coordinator_core.registry.hookspecs import MetricSpec


@dataclass(frozen=True)
class Comparison:
    """The figures of several strategies on one scenario, strategies in the order asked for."""

    scenario: str
    seed: int
    metrics: Sequence[MetricSpec]
    figures: Mapping[str, Mapping[str, float]]

    @property
    def shown(self) -> list[MetricSpec]:
        """For tables: all metrics but the optional ones that no strategy has a figure of."""
        rows = self.figures.values()
        return [m for m in self.metrics if not m.optional or any(not isnan(row[m.name]) for row in rows)]

    def best(self, metric: MetricSpec) -> float | None:
        """The best figure of a metric; None where all strategies are alike or none has one."""
        found = [row[metric.name] for row in self.figures.values() if not isnan(row[metric.name])]
        if len(set(found)) < 2:
            return None
        return max(found) if metric.better == "higher" else min(found)


def as_text(value: float) -> str:
    """A figure for people: whole numbers with separators, others with three digits that matter."""
    if isnan(value):
        return "-"
    if isinf(value):
        return f"{value}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def as_json(comparison: Comparison) -> str:
    """One object; figures that a run does not have are null."""
    document: dict[str, Any] = {
        "scenario": comparison.scenario,
        "seed": comparison.seed,
        "strategies": [
            {"strategy": strategy, "metrics": {n: None if isnan(v) else v for n, v in figures.items()}}
            for strategy, figures in comparison.figures.items()
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def as_csv(comparison: Comparison) -> str:
    """A row a strategy, a column a metric; figures that a run does not have are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [metric.name for metric in comparison.metrics]
    writer.writerow(["scenario", "seed", "strategy", *names])
    for strategy, figures in comparison.figures.items():
        row = ["" if isnan(figures[n]) else f"{figures[n]:.12g}" for n in names]
        writer.writerow([comparison.scenario, comparison.seed, strategy, *row])
    return text.getvalue()


def as_html(comparison: Comparison) -> str:
    """A page with one table; the best figure of each row is bold."""
    head = "".join(f"<th scope=col>{escape(s)}</th>" for s in comparison.figures)
    rows = "\n".join(_html_row(comparison, metric) for metric in comparison.shown)
    title = escape(comparison.scenario)
    style = (
        "body{font:15px system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
        "th,td{padding:.3rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
        "th[scope=row]{text-align:left;font-weight:400}b{color:#0072b2}"
    )
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<style>{style}</style></head>\n<body><h1>{title}</h1>\n"
        f"<table><thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n"
        f"<p>Seed {comparison.seed}. Bold: best of the row.</p></body></html>\n"
    )


def _html_row(comparison: Comparison, metric: MetricSpec) -> str:
    best = comparison.best(metric)
    cells = []
    for figures in comparison.figures.values():
        value = figures[metric.name]
        cells.append(f"<td><b>{as_text(value)}</b></td>" if value == best else f"<td>{as_text(value)}</td>")
    label = f'<th scope=row title="{escape(metric.doc)}">{metric.name}</th>'
    return f"<tr>{label}{''.join(cells)}</tr>"
