"""A comparison of strategies: every metric of every run, as a table, JSON, CSV and HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isnan

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.reports.tables import BEST, Cell, as_text, csv_text, html_table, json_text


@dataclass(frozen=True)
class Comparison:
    """The figures of several strategies on one scenario: ``figures[strategy][metric]``."""

    scenario: str
    seed: int
    metrics: Sequence[MetricSpec]
    figures: Mapping[str, Mapping[str, float]]

    @property
    def shown(self) -> list[MetricSpec]:
        """The metrics of tables: all but the optional ones that no strategy has a figure of."""
        rows = self.figures.values()
        return [m for m in self.metrics if not m.optional or any(not isnan(row[m.name]) for row in rows)]

    def best(self, metric: MetricSpec) -> float | None:
        """Return the best figure of a metric, or None if all strategies are alike or none has a figure."""
        found = [row[metric.name] for row in self.figures.values() if not isnan(row[metric.name])]
        if len(set(found)) < 2:
            return None
        return max(found) if metric.better == "higher" else min(found)


def table_of(comparison: Comparison) -> tuple[list[str], list[list[Cell]]]:
    """Return the head and the rows of a table: a row for each metric, a column for each strategy."""
    rows = []
    for metric in comparison.shown:
        best = comparison.best(metric)
        values = [figures[metric.name] for figures in comparison.figures.values()]
        cells = [Cell(as_text(value), BEST if value == best else "") for value in values]
        rows.append([Cell(metric.name, hint=metric.doc), *cells])
    return ["", *comparison.figures], rows


def as_json(comparison: Comparison) -> str:
    """Write one object. Figures that a run does not have are null."""
    return json_text(
        {
            "scenario": comparison.scenario,
            "seed": comparison.seed,
            "strategies": [
                {"strategy": strategy, "metrics": {n: None if isnan(v) else v for n, v in figures.items()}}
                for strategy, figures in comparison.figures.items()
            ],
        }
    )


def as_csv(comparison: Comparison) -> str:
    """Write a row for each strategy, a column for each metric. Figures that a run does not have are empty."""
    names = [metric.name for metric in comparison.metrics]
    return csv_text(
        ["scenario", "seed", "strategy", *names],
        (
            [comparison.scenario, comparison.seed, strategy, *(figures[name] for name in names)]
            for strategy, figures in comparison.figures.items()
        ),
    )


def as_html(comparison: Comparison) -> str:
    """Write a page with one table. The best figure of each row is bold."""
    title = escape(comparison.scenario)
    style = (
        "body{font:15px system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
        "th,td{padding:.3rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
        "th[scope=row]{text-align:left;font-weight:400}b{color:#0072b2}"
    )
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<style>{style}</style></head>\n<body><h1>{title}</h1>\n"
        f"{html_table(*table_of(comparison))}\n"
        f"<p>Seed {comparison.seed}. Bold: best of the row.</p></body></html>\n"
    )
