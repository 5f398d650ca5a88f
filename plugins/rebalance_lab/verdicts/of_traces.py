"""The comparison of traces that are at hand, as a notebook has them."""

from collections.abc import Iterable, Sequence
from math import nan

from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.comparison import Candidate, Comparison, Figure
from rebalance_lab.verdicts.load import overload, overload_of_all
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.words import findings_of_seeds, numbered


def by_candidate(traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    """Return the runs of each candidate by its name.

    Runs of a strategy on a scenario are of one candidate if their seeds differ. A strategy with several
    candidates has numbers: ``range (1)``, ``range (2)``.
    """
    found: list[list[Trace]] = []
    for trace in traces:
        own = next((runs for runs in found if _continues(runs, trace)), None)
        if own is None:
            found.append([trace])
        else:
            own.append(trace)
    return dict(zip(numbered([runs[0].strategy for runs in found]), found, strict=True))


def _continues(runs: Sequence[Trace], trace: Trace) -> bool:
    same = (runs[0].strategy, runs[0].scenario) == (trace.strategy, trace.scenario)
    return same and trace.started.seed not in [run.started.seed for run in runs]


def comparison_of_traces(
    traces: Sequence[Trace], registry: Registry, errors: Sequence[str] = ()
) -> Comparison:
    """Return the comparison of runs; ``errors`` are those of what failed.

    Raises:
        PluginError: if the code of a metric fails.
    """
    metrics = list(registry.metrics().values())
    seeds = list(dict.fromkeys(trace.started.seed for trace in traces))
    histories = {
        name: [History(trace, registry) for trace in runs] for name, runs in by_candidate(traces).items()
    }
    candidates = [candidate_of(name, runs, seeds, registry) for name, runs in histories.items()]
    scenario = ", ".join(dict.fromkeys(trace.scenario for trace in traces))
    load = overload_of_all(
        [
            (f"{name}, seed {run.started.seed}", overload(run))
            for name, runs in histories.items()
            for run in runs
        ]
    )
    return Comparison(scenario, seeds or [0], metrics, candidates, errors, load=load)


def candidate_of(
    name: str, histories: Sequence[History], seeds: Sequence[int], registry: Registry
) -> Candidate:
    """Return the candidate of runs of one strategy, with a value of each metric for each seed, or NaN.

    Raises:
        PluginError: if the code of a metric fails.
    """
    values = {history.started.seed: measure(history, registry) for history in histories}
    figures = {
        metric: Figure(tuple(values[seed][metric] if seed in values else nan for seed in seeds))
        for metric in registry.metrics()
    }
    first = histories[0]
    delayed = any(part.startswith("delay") for part in first.trace.strategy.split("+")[1:])
    parts = parts_under(family_of(first.started), delayed=delayed)
    found = findings_of_seeds({history.started.seed: findings(history) for history in histories})
    return Candidate(name, figures, findings=found, parts=parts)
