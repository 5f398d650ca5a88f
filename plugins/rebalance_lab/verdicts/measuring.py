"""The metrics of a trace: how they are defined, and their figures."""

from collections.abc import Callable, Collection, Iterable
from math import nan
from typing import TypeAlias, TypeVar

from coordinator_core.errors import PluginError
from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.history import History
from rebalance_lab.traces.ledger import Ledger
from rebalance_lab.traces.trace import Trace

Compute: TypeAlias = Callable[[History], float]
_C = TypeVar("_C", bound=Compute)

STOPS = "stops"
"""The group of metrics that need the stopped time."""

DEFINED: list[MetricSpec] = []
"""The metrics of this package; those of a group in the order in which they are shown."""


def metric(
    group: str, unit: str, *, headline: bool = False, planned: bool = False, optional: bool = False
) -> Callable[[_C], _C]:
    """Define a metric by its function, which has its name and, in the first paragraph, its definition."""

    def define(compute: _C) -> _C:
        doc = " ".join((compute.__doc__ or "").partition("\n\n")[0].split())
        DEFINED.append(
            MetricSpec(
                compute.__name__,
                unit,
                compute,
                group=group,
                headline=headline,
                planned=planned,
                rests=planned,
                optional=optional,
                doc=doc,
            )
        )
        return compute

    return define


def metrics_of(registry: Registry, *, planned: bool, only: Collection[str] = ()) -> list[MetricSpec]:
    """Return the metrics of a run, or of a planned run, in order; those in ``only`` if it is not empty."""
    return [
        metric
        for metric in registry.metrics().values()
        if (metric.planned or not planned) and (metric.name in only or not only)
    ]


def history_of(trace: Trace, registry: Registry, metrics: Iterable[MetricSpec]) -> History:
    """Return the history of a run for some metrics."""
    return History(trace, registry, stops=any(metric.group == STOPS for metric in metrics))


def measure(
    run: Trace | History | Ledger,
    registry: Registry,
    *,
    planned: bool = False,
    only: Collection[str] = (),
    failed: dict[str, PluginError] | None = None,
) -> dict[str, float]:
    """Return every metric of a run by name; of a planned run, the metrics that it has.

    ``run`` is a trace, or its history. ``only`` are the names of the metrics to return, if it is not empty.
    Of a planned history without a trace, they must be computed from `History.rests`.

    With a mapping ``failed``, a metric whose code fails is NaN, and the mapping gets its error.

    Raises:
        PluginError: if the code of a metric fails and there is no such mapping.
    """
    metrics = metrics_of(registry, planned=planned, only=only)
    history = history_of(run, registry, metrics) if isinstance(run, Trace) else run
    figures = {}
    for metric in metrics:
        try:
            figures[metric.name] = float(metric.compute(history))
        except (Exception, SystemExit) as error:
            blamed = _blamed(registry, metric, error)
            if failed is None:
                raise blamed from error
            failed[metric.name] = blamed
            figures[metric.name] = nan
    return figures


def _blamed(registry: Registry, metric: MetricSpec, error: BaseException) -> PluginError:
    """Return the error of a metric's code as one that names its plugin."""
    try:
        with registry.blaming("metrics", metric.name, passing=()):
            raise error
    except PluginError as blamed:
        return blamed
