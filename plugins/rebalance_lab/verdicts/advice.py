"""Advice for a scenario: the changes to a strategy that are tried, and which of them to make."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator_core.registry.hookspecs import MetricSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.verdicts.aims import (
    CLOSED,
    COSTS,
    CRASHED,
    FRONT,
    GAINS,
    LEFT,
    MOVES,
    REQUESTS,
    STOPS,
    TWICE,
)
from rebalance_lab.verdicts.calibrated import worth
from rebalance_lab.verdicts.changes import Change, Facts, Kind, Trouble, changes, delay_ms, troubles
from rebalance_lab.verdicts.choice import Choice, Decision, choose
from rebalance_lab.verdicts.finding import Finding, found
from rebalance_lab.verdicts.grid import Aim, Grid, Setup, under
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.reasons import parts_under
from rebalance_lab.verdicts.rule import fewest_pairs
from rebalance_lab.verdicts.runs import Run, faults_of, figures_of
from rebalance_lab.verdicts.screen import Screen, screen_of
from rebalance_lab.verdicts.switching import CLASSES
from rebalance_lab.verdicts.verdict import Enough

MOST_EVENTS = 48_000
"""The most events of the runs of the scenario with `SEEDS`, as estimated from the first run."""
SEEDS = 12
"""The number of seeds, if the runs have so few events; else there are as many as a choice needs."""
MOST_ROWS = 8
"""The most rows of the table; `--all` shows the others."""

ASKED_FOR = (Kind.CONSUMER, Kind.STATIC, Kind.MEMBERS, Kind.LONG_SESSION)
"""The kinds of changes that people come for: they are shown even if they do not help."""

FIXED = frozenset({"java", "librdkafka", "franz-go"})
"""The clients that have Kafka's assignors alone, as far as members of a scenario are concerned."""

_SHOWN = (STOPS, MOVES, TWICE, LEFT, CRASHED, CLOSED, REQUESTS)


@dataclass(frozen=True)
class Plan:
    """The runs of an advice: the present strategy and the changes, on the scenario and under each trouble."""

    scenario: Scenario
    facts: Facts
    changes: Sequence[Change]
    seeds: Sequence[int]
    troubles: Mapping[Trouble, Scenario]
    registry: Registry

    def scenarios(self, change: Change) -> list[Scenario]:
        """Return the scenarios of a change: one for each seed, then those of each trouble."""
        return [
            replace(change.of(scenario, self.registry), seed=seed)
            for scenario, seeds in zip((self.scenario, *self.troubles.values()), self._seeds, strict=True)
            for seed in seeds
        ]

    @property
    def _seeds(self) -> list[Sequence[int]]:
        """The seeds of the scenario, and those of each trouble: as many as a choice needs."""
        few = self.seeds[: fewest_pairs(len(self.changes) - 1)]
        return [self.seeds, *[few] * len(self.troubles)]

    def grid(self, runs: Sequence[Sequence[Run]]) -> Grid:
        """Return the grid of the runs of all changes. A change of which one failed has no figures."""
        figures, setups = [], []
        for change, own in zip(self.changes, runs, strict=True):
            rest = iter(own)
            parts = [{seed: next(rest) for seed in seeds} for seeds in self._seeds]
            error = next((run.error for run in own if run.error), "")
            by_seed: dict[int, dict[str, float]] = {} if error else figures_of(parts[0])
            for trouble, of_trouble in zip(self.troubles, parts[1:], strict=True):
                for seed, values in figures_of(of_trouble).items() if not error else ():
                    by_seed[seed] |= {under(name, trouble): value for name, value in values.items()}
            figures.append(by_seed)
            setups.append(self._setup(change, faults_of(parts[0]), error))
        partitions = sum(self.facts.history.topics.values())
        return Grid.of(setups, figures, units=self.seeds, partitions=partitions)

    def _setup(self, change: Change, findings: Sequence[str], error: str) -> Setup:
        strategy = self.registry.strategy(change.strategy)
        protocol = self.registry.protocol(strategy.protocol)
        return Setup(
            change.strategy,
            {name: (text, change.settings[name]) for name, text in change.texts.items()},
            findings,
            parts_under(protocol, delayed=strategy.delay_ms is not None),
            change.kinds,
            error,
            protocol.on_kafka and strategy.delay_ms is None and not lacking(self.scenario, strategy),
            change.more,
        )


def lacking(scenario: Scenario, strategy: Strategy) -> str:
    """Return the client of members that does not have the assignor of a strategy, or an empty text."""
    if strategy.protocol != "classic" or strategy.assignor in CLASSES:
        return ""
    clients = (member.application.client for member in scenario.members)
    return next((client for client in clients if client in FIXED), "")


def plan_of(
    scenario: Scenario, strategy: str, facts: Facts, registry: Registry, seeds: int | None = None
) -> Plan:
    """Return the runs for an advice. ``facts`` are those of one run of the present strategy.

    Without ``seeds`` there are `SEEDS`, or as many as a choice needs if the runs have many events.
    """
    wanted = [Change(strategy), *changes(scenario, strategy, facts, registry)]
    if seeds is None:
        events = len(facts.history.trace.events) * len(wanted)
        seeds = SEEDS if events * SEEDS <= MOST_EVENTS else fewest_pairs(len(wanted) - 1)
    longest_ms = max(facts.session_ms, *(change.settings.get(facts.session, 0) for change in wanted))
    delays_ms = [delay_ms(change, scenario, registry) for change in wanted]
    trials = troubles(scenario, facts, longest_ms + max(delays_ms))
    return Plan(scenario, facts, wanted, range(scenario.seed, scenario.seed + seeds), trials, registry)


def advised(
    plan: Plan,
    grid: Grid,
    choice: Choice,
    metrics: Sequence[MetricSpec],
    load: Load | None,
    enough: Enough | None = None,
) -> Screen:
    """Return the advice: one change, or none, and the changes that help or that people ask for."""
    rows = [0, *(i for i in range(1, len(grid.setups)) if helps(grid, i) or is_asked_for(grid, i))]
    rows = _ranked(grid, rows, choice)[:MOST_ROWS]
    return screen_of(
        plan.scenario.name,
        grid,
        metrics,
        choice=choice,
        aims=_columns(grid),
        rows=rows,
        load=load,
        enough=enough,
        know=list(_know(plan, grid, rows)),
    )


def choice_among_changes(grid: Grid) -> Choice:
    """Choose among single changes; members are added for a load only, which another verdict says."""
    fit = [
        i
        for i, setup in enumerate(grid.setups)
        if i == grid.now or (setup.is_one and Kind.MEMBERS not in setup.kinds)
    ]
    part = replace(grid, setups=[grid.setups[i] for i in fit], figures=grid.figures[:, fit])
    chosen = choose(part)
    price = [*chosen.price, *(a for a in COSTS[1:] if part.is_better(a, 0, chosen.chosen))]
    return replace(
        chosen,
        chosen=fit[chosen.chosen],
        alike=[fit[i] for i in chosen.alike],
        others=[fit[i] for i in chosen.others],
        price=price if chosen.decision is not Decision.KEEP else (),
    )


def helps(grid: Grid, number: int) -> bool:
    """Return whether it is one change that works and is better in something, and none dominates it."""
    setup = grid.setups[number]
    if number not in grid.working or not setup.is_kafka or not setup.is_one:
        return False
    if not any(grid.is_better(aim, number, grid.now) for aim in GAINS):
        return False
    singles = [i for i in grid.working if i != number and grid.setups[i].is_one]
    return not any(grid.dominates(i, number, (*FRONT, *COSTS)) for i in singles)


def is_asked_for(grid: Grid, number: int) -> bool:
    """Return whether it is one of the changes that people come for."""
    kinds = grid.setups[number].kinds
    return grid.setups[number].is_one and any(kind in kinds for kind in ASKED_FOR)


def _ranked(grid: Grid, rows: Sequence[int], choice: Choice) -> list[int]:
    """Return the present one, the chosen one, and the others by their stopped times."""
    return sorted(rows, key=lambda i: (i != grid.now, i != choice.chosen, grid.median(STOPS.key, i)))


def _columns(grid: Grid) -> list[Aim]:
    rows = range(len(grid.setups))
    known = [aim for aim in _SHOWN if any(grid.median(aim.key, i) >= 0 for i in rows)]
    return [aim for aim in known if aim is not LEFT or (grid.harm(aim) > 0).any()]


def _know(plan: Plan, grid: Grid, rows: Sequence[int]) -> Iterator[Finding]:
    lacks: dict[str, list[str]] = {}
    for setup in grid.setups[1:]:
        strategy = plan.registry.strategy(setup.strategy)
        if client := lacking(plan.scenario, strategy):
            lacks.setdefault(client, []).append(strategy.assignor)
    for client, assignors in lacks.items():
        yield found("not-in-client", client=client, assignors=list(dict.fromkeys(assignors)))
    shown = [plan.registry.strategy(grid.setups[i].strategy) for i in rows]
    yield worth(plan.scenario, shown, plan.registry)
    if plan.troubles:
        yield found("troubles")
