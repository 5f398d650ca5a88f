"""The metrics of a trace."""

from coordinator_core.registry.registry import Registry
from coordinator_core.traces.history import History
from coordinator_core.traces.trace import Trace


def measure(trace: Trace, registry: Registry, *, planned: bool = False) -> dict[str, float]:
    """Return every metric of a run by name; of a planned run, the metrics that it has.

    Raises:
        PluginError: if the code of a metric fails.
    """
    history = History(trace, registry)
    figures = {}
    for metric in registry.metrics().values():
        if metric.planned or not planned:
            with registry.blaming("metrics", metric.name, passing=()):
                figures[metric.name] = float(metric.compute(history))
    return figures
