"""What is checked on a run of a scenario: each check returns what is wrong, or nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from math import isclose, isnan
from typing import Any

from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.errors import RebalanceLabError
from coordinator_core.reading.raised import raised
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.fuzzing.coverage import Coverage
from rebalance_lab.fuzzing.liveness import LEARNING_MS, QUIET_MS, learns_in_ms, prevented_by, settles_in_ms
from rebalance_lab.fuzzing.reference import reference_metrics
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.simulation.run import Run, simulate
from rebalance_lab.simulation.world.collector import collecting_rarely
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import measure

RAISES = "raises"
INVARIANTS = "broken-rule"
LIVENESS = "not-settled"
SUPERFLUOUS = "round-without-cause"
SKIPPING = "skipping-differs"
METRICS = "metrics-differ"
RECOVERY = "log-differs"
HASH_SEED = "depends-on-hash-seed"
HANGS = "hangs"
ENDS = "ends-the-process"

_AFTER_CALM = {"lag_view", "join", "add_partitions"}
"""The events that may follow the end of all faults. The group settles after them, too."""

_MOST_TOLD = 3

_COARSE = 1e-6
"""The relative difference of two sums of floats in another order."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A check that failed, and what was wrong."""

    check: str
    detail: str


@dataclass(slots=True)
class Examined:
    """A run that was examined: the defect or None, the digest of its trace, and what it reached.

    ``prevented``: why the group need not come to rest; "" if it has to.
    """

    defect: Defect | None = None
    digest: str = ""
    prevented: str = ""
    coverage: Coverage = field(default_factory=Coverage)


@collecting_rarely()
def examine(scenario: Scenario, strategy: Strategy, registry: Registry) -> Examined:
    """Run a scenario with every message and without, and check both runs.

    It is the first check that fails that counts. Liveness is asked for if the last event ends all faults.
    """
    examined = Examined(prevented=prevented_by(scenario, strategy, registry))
    try:
        examined.defect = next(_defects(scenario, strategy, registry, examined), None)
    except RebalanceLabError as error:
        examined.defect = Defect(RAISES, str(error))
    except Exception as error:
        examined.defect = Defect(RAISES, f"the program itself: {raised(error)}")
    return examined


def _defects(
    scenario: Scenario, strategy: Strategy, registry: Registry, examined: Examined
) -> Iterator[Defect]:
    watch = Invariants(registry)
    run = Run(
        scenario, strategy, registry, watch=watch, exchanged=examined.coverage.observer(scenario, watch),
        every_message=True,
    )  # fmt: skip
    generations: list[int] = []
    for until_ms in (max(0, scenario.duration_ms - QUIET_MS), scenario.duration_ms):
        run.advance(until_ms)
        if watch.violations:
            first = watch.violations[0]
            yield Defect(INVARIANTS, str(first))
        generations.append(watch.generation)
    trace = run.finish()
    examined.coverage.close(trace.protocol)
    examined.digest = sha256(trace.encode()).hexdigest()
    ends_well = _has_time_to_settle(scenario, strategy, registry) and not examined.prevented
    if ends_well and (problems := watch.settled()):
        more = f" (and {len(problems) - _MOST_TOLD} more)" if len(problems) > _MOST_TOLD else ""
        yield Defect(LIVENESS, f"at the end {'; '.join(problems[:_MOST_TOLD])}{more}")
    if ends_well and generations[0] != generations[1]:
        yield Defect(
            SUPERFLUOUS, f"generation {generations[1]} began {QUIET_MS // 1_000} s before the end or later"
        )
    yield from _differences(trace, simulate(scenario, strategy, registry))
    yield from _log_differs(run, scenario)
    yield from _metrics_differ(trace, registry)


def _has_time_to_settle(scenario: Scenario, strategy: Strategy, registry: Registry) -> bool:
    """Whether all faults end so long before the end that the group has to be at rest.

    Members without a coordinator learn of what they have missed with the next change: one has to follow.
    """
    kinds = [event.kind for event in scenario.events]
    if "calm" not in kinds:
        return False
    after = kinds[len(kinds) - kinds[::-1].index("calm") :]
    views = {e.arguments.member: e.arguments.by_ms for e in scenario.events if e.kind == "lag_view"}
    if any(views.values()) or set(after) - _AFTER_CALM:
        return False
    if registry.protocol(strategy.protocol).servers is not None:
        calm_ms = max(event.at_ms for event in scenario.events if event.kind == "calm")
        learnt_ms = calm_ms + learns_in_ms(scenario, strategy, registry)
        if not any(event.kind == "join" and event.at_ms >= learnt_ms for event in scenario.events):
            return False
    needed_ms = settles_in_ms(scenario, strategy, registry) + QUIET_MS + LEARNING_MS
    return scenario.duration_ms - scenario.events[-1].at_ms >= needed_ms


def _differences(every: Trace, some: Trace) -> Iterator[Defect]:
    """Compare the trace with every message with the one in which a group at rest sends none."""
    for one, other in zip_longest(every.events, some.events):
        if one != other:
            yield Defect(SKIPPING, f"with every message {one}, and without {other}")
            return


def _log_differs(run: Run, scenario: Scenario) -> Iterator[Defect]:
    """Compare the coordinator with one that has replayed the log, if the group rests."""
    live, recovered = run.brokers.coordinator(), run.brokers.recovered()
    if live is None or not run.brokers.is_at_rest(run.family.spec.at_rest):
        return
    one, other = _stored(live, scenario.name), _stored(recovered, scenario.name)
    for what in one:
        if one[what] != other[what]:
            yield Defect(
                RECOVERY, f"{what}: {one[what]} in the coordinator, {other[what]} after a replay of the log"
            )


def _stored(coordinator: Coordinator, group_id: str) -> dict[str, Any]:
    """Return what a group must not lose with its coordinator.

    One that no member has joined has its offsets only: there may be none, if no commit was written.
    """
    group = coordinator.group(group_id)
    known: dict[str, Any] = {"members": [], "generation": -1}
    if group is not None and group.family:
        known = {"members": sorted(group.members), "generation": group.generation}
    offsets = coordinator.offsets(group_id)
    return known | {"offsets": {f"{t}-{n}": stored.offset for (t, n), stored in sorted(offsets.items())}}


def _metrics_differ(trace: Trace, registry: Registry) -> Iterator[Defect]:
    if trace.started.measure_from_ms != 0:
        return
    found = measure(History(trace, registry), registry)
    for name, wanted in reference_metrics(trace, registry.protocol(trace.protocol)).items():
        value = found[name]
        if isnan(value) or not isclose(value, wanted, rel_tol=_COARSE, abs_tol=_COARSE):
            yield Defect(METRICS, f"{name} is {value:g}, and {wanted:g} by the plain fold of the trace")
