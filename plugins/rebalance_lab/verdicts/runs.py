"""The result of a run, and the grid and the load of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator_core.errors import PluginError
from coordinator_core.reading.raised import traceback_of
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.load import Load, load_of
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.words import findings_of_seeds


@dataclass(frozen=True)
class Failure:
    """An error, and the traceback of the exception in an author's code that caused it; else an empty text."""

    text: str
    traceback: str = ""


@dataclass(frozen=True)
class Run:
    """The result of a run: its figures or, if requested, its trace; or an error.

    ``traceback`` is that of the exception in an author's code, if it caused the error. ``failed`` has the
    failures of metrics by their names. Their figures are NaN. ``findings`` are the faults of the group at the
    end of the run. ``events`` counts those of the trace.
    """

    strategy: str
    figures: dict[str, float] | None = None
    trace: Trace | None = None
    error: str = ""
    traceback: str = ""
    failed: Mapping[str, Failure] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    load: Load | None = None
    events: int = 0


def run_of(history: History, registry: Registry, failed: dict[str, PluginError] | None = None) -> Run:
    """Return the result of a run. ``failed``: see `measure`.

    Raises:
        PluginError: if the code of a metric fails and there is no such mapping.
    """
    figures = measure(history, registry, failed=failed)
    return Run(
        history.trace.strategy,
        figures,
        failed={name: Failure(str(error), traceback_of(error)) for name, error in (failed or {}).items()},
        findings=findings(history),
        load=load_of(history),
        events=len(history.trace.events),
    )


def figures_of(runs: Mapping[int, Run]) -> dict[int, dict[str, float]]:
    """Return the figures of the runs that succeeded, by seeds."""
    return {seed: run.figures for seed, run in runs.items() if run.figures is not None}


def faults_of(runs: Mapping[int, Run]) -> list[str]:
    """Return the findings of runs by seeds, each once."""
    return findings_of_seeds({seed: run.findings for seed, run in runs.items()})


def loads_of(runs: Sequence[Run]) -> Load | None:
    """Return the load of a candidate: that of its first run, with the partitions that are hot in all."""
    loads = [run.load for run in runs if run.load is not None]
    if not loads:
        return None
    hot = {name: rate for name, rate in loads[0].hot.items() if all(name in each.hot for each in loads)}
    return Load(
        **{name: getattr(loads[0], name) for name in Load.__struct_fields__}
        | {"hot": hot, "is_too_high": all(each.is_too_high for each in loads)}
    )
