"""The contents of a report: the summaries of scores, small enough for the driver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator_core.registry.registry import default_registry
from coordinator_core.reports.tables import BEST, Cell, as_text
from rebalance_spark.choices import Status
from rebalance_spark.summaries import (
    higher_is_better,
    metric_names,
    pareto,
    quantiles,
    statuses,
    summary,
    wins,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Figures:
    """One metric under one strategy."""

    rows: int
    mean: float
    p50: float
    p95: float
    p99: float
    worst: float
    worst_scenario: str


@dataclass(frozen=True, slots=True)
class OnFront:
    """A strategy in the plane of moves and balance."""

    strategy: str
    moves: float
    balance: float
    on_front: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """The contents of a report. Metrics and strategies are in their orders.

    ``figures`` maps (metric, strategy) to figures; metrics that no row has are not in ``metrics``. ``wins``
    maps (metric, strategy, other) to the numbers of scenarios in which the first strategy is better, even
    and worse. ``curves`` maps (metric, strategy) to values at evenly spaced quantiles. ``balance`` is the
    metric of the front beside the moves.
    """

    scenarios: int
    fidelities: Sequence[str]
    versions: Sequence[str]
    strategies: Sequence[str]
    metrics: Sequence[str]
    figures: Mapping[tuple[str, str], Figures]
    statuses: Mapping[str, Mapping[str, int]]
    wins: Mapping[tuple[str, str, str], tuple[int, int, int]]
    front: Sequence[OnFront]
    common: int
    curves: Mapping[tuple[str, str], Sequence[float]]
    balance: str = "imbalance"

    @property
    def failed(self) -> int:
        """Rows that are not ok."""
        return sum(n for counts in self.statuses.values() for s, n in counts.items() if s != Status.OK)

    @property
    def headlines(self) -> list[str]:
        """The metrics of the short form: headlines and the metric of the front, or all if none is scored."""
        specs = default_registry().metrics()
        chosen = {name for name, spec in specs.items() if spec.headline} | {self.balance}
        return [name for name in self.metrics if name in chosen] or list(self.metrics)

    def best(self, metric: str, statistic: str) -> float | None:
        """Return the best figure of a metric, or None if all strategies are alike."""
        values: set[float] = {getattr(f, statistic) for (m, _), f in self.figures.items() if m == metric}
        if len(values) < 2:
            return None
        return max(values) if higher_is_better(metric) else min(values)


def figures_table(
    findings: Findings, statistic: str, metrics: Sequence[str]
) -> tuple[list[str], list[list[Cell]]]:
    """Return the head and the rows of a table: a row for each metric, a column for each strategy."""
    rows = []
    for metric in metrics:
        cells = [Cell(metric)]
        best = findings.best(metric, statistic)
        for strategy in findings.strategies:
            figures = findings.figures.get((metric, strategy))
            value = None if figures is None else getattr(figures, statistic)
            text = "-" if value is None else as_text(value)
            cells.append(Cell(text, BEST if value is not None and value == best else ""))
        rows.append(cells)
    return [statistic, *findings.strategies], rows


def found_in(scores: "DataFrame", balance: str = "imbalance") -> Findings:
    """Return the findings of scores, which are read by several jobs.

    Raises:
        InputError: if the scores do not have the metric ``balance``.
    """
    from pyspark.sql import functions as sf

    scores = scores.cache()
    try:
        facts: Any = scores.agg(
            sf.count_distinct("scenario_id").alias("scenarios"),
            sf.sort_array(sf.collect_set("fidelity")).alias("fidelities"),
            sf.sort_array(sf.collect_set(_version())).alias("versions"),
        ).first()
        figures = {
            (r["metric"], r["strategy"]): Figures(
                r["rows"], r["mean"], r["p50"], r["p95"], r["p99"], r["worst"], r["worst_scenario"]
            )
            for r in summary(scores).collect()
        }
        counts: dict[str, dict[str, int]] = {
            r["strategy"]: {status.value: r[status.value] for status in Status}
            for r in statuses(scores).orderBy("strategy").collect()
        }
        names = metric_names(scores)
        front_rows: list[Any] = []
        if "moved_partitions" in names:
            plane = pareto(scores, "moved_partitions", balance)
            front_rows = plane.orderBy("moved_partitions", balance, "strategy").collect()
        return Findings(
            scenarios=facts["scenarios"],
            fidelities=facts["fidelities"],
            versions=facts["versions"],
            strategies=list(counts),
            metrics=[n for n in names if any(metric == n for metric, _ in figures)],
            figures=figures,
            statuses=counts,
            wins={
                (r["metric"], r["strategy"], r["other"]): (r["wins"], r["ties"], r["losses"])
                for r in wins(scores).collect()
            },
            front=[
                OnFront(r["strategy"], r["moved_partitions"], r[balance], r["on_front"]) for r in front_rows
            ],
            common=front_rows[0]["scenarios"] if front_rows else 0,
            curves={(r["metric"], r["strategy"]): r["values"] for r in quantiles(scores).collect()},
            balance=balance,
        )
    finally:
        scores.unpersist()


def _version() -> Any:
    from pyspark.sql import functions as sf

    program = sf.concat(sf.lit("rebalance-lab "), "program_version")
    plugins = sf.when(sf.col("plugin_versions") != "", sf.concat(sf.lit(", "), "plugin_versions"))
    return sf.concat(program, sf.coalesce(plugins, sf.lit("")))
