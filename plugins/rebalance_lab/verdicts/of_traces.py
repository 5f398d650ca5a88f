"""The comparison of traces that are at hand, as a notebook has them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.grid import candidate_of, load_of, run_of
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.words import numbered


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
    runs = {name: [History(trace, registry) for trace in own] for name, own in by_candidate(traces).items()}
    return comparison_of_histories(runs, registry, errors)


def comparison_of_histories(
    runs: Mapping[str, Sequence[History]], registry: Registry, errors: Sequence[str] = ()
) -> Comparison:
    """Return the comparison of runs by the names of their candidates: see `comparison_of_traces`."""
    by_seed = {
        name: {history.started.seed: run_of(history, registry) for history in own}
        for name, own in runs.items()
    }
    seeds = list(dict.fromkeys(seed for own in by_seed.values() for seed in own))
    candidates = [
        replace(candidate_of(name, own, seeds), parts=_parts(runs[name][0])) for name, own in by_seed.items()
    ]
    scenario = ", ".join(dict.fromkeys(own.trace.scenario for each in runs.values() for own in each))
    metrics = list(registry.metrics().values())
    return Comparison(scenario, seeds or [0], metrics, candidates, errors, load=load_of(by_seed))


def _parts(run: History) -> Mapping[str, str]:
    delayed = any(part.startswith("delay") for part in run.trace.strategy.split("+")[1:])
    return parts_under(family_of(run.started), delayed=delayed)
