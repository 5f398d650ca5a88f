"""The answer on traces that are at hand, as a notebook has them."""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.runs import faults_of, figures_of, loads_of, run_of
from rebalance_lab.verdicts.screen import Screen, screen_of
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


def screen_of_traces(traces: Sequence[Trace], registry: Registry, errors: Sequence[str] = ()) -> Screen:
    """Return the answer on runs; ``errors`` are those of what failed.

    Raises:
        PluginError: if the code of a metric fails.
    """
    runs = {name: [History(trace, registry) for trace in own] for name, own in by_candidate(traces).items()}
    return screen_of_histories(runs, registry, errors)


def screen_of_histories(
    runs: Mapping[str, Sequence[History]], registry: Registry, errors: Sequence[str] = ()
) -> Screen:
    """Return the answer on runs by the names of their candidates: see `screen_of_traces`."""
    by_seed = {
        name: {each.started.seed: run_of(each, registry) for each in own} for name, own in runs.items()
    }
    setups = [_setup(name, own[0], faults_of(by_seed[name]), registry) for name, own in runs.items()]
    scenario = ", ".join(dict.fromkeys(own.trace.scenario for each in runs.values() for own in each))
    first = next(iter(runs.values()), [])
    partitions = sum(first[0].topics.values()) if first else 1
    grid = Grid.of(setups, list(map(figures_of, by_seed.values())), partitions=partitions)
    load = loads_of(list(next(iter(by_seed.values())).values())) if by_seed else None
    metrics = list(registry.metrics().values())
    return screen_of(scenario, grid, metrics, load=load, errors=errors)


def _setup(name: str, run: History, findings: Sequence[str], registry: Registry) -> Setup:
    family = family_of(run.started, registry)
    delayed = any(part.startswith("delay") for part in run.trace.strategy.split("+")[1:])
    parts = parts_under(family, delayed=delayed)
    return Setup(name, findings=findings, parts=parts, is_kafka=family.on_kafka and not delayed)
