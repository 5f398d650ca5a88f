"""Why a strategy stops partitions: the largest part of its stopped time, and the remedies that were run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isnan

from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.causes import AWAY, CAUSES, DETECTION, PARTS, UNASSIGNED, WAITING, WAITS, happens_in
from rebalance_lab.verdicts import dimensions
from rebalance_lab.verdicts.comparison import Comparison, Remedy
from rebalance_lab.verdicts.grid import Candidate
from rebalance_lab.verdicts.tables import as_text

STOPS = dimensions.STOPS.name
"""The metric that is divided into parts."""

_DELAYED = "no round ran, and the group kept the partitions of members that had ended for them"
"""The cause ``unassigned`` if lost partitions wait for their owner."""


def parts_under(protocol: ProtocolSpec, *, delayed: bool) -> Mapping[str, str]:
    """Return for each part what happens in it under a protocol. ``delayed``: lost partitions wait."""
    parts = {**{part: happens_in(part) for part in (*PARTS, *CAUSES)}, **protocol.stops}
    if WAITING in protocol.stops:
        parts |= dict.fromkeys(WAITS, protocol.stops[WAITING])
    if protocol.stops and UNASSIGNED not in protocol.stops:
        parts[UNASSIGNED] = parts[DETECTION]
    if delayed:
        parts[UNASSIGNED] = _DELAYED
    return parts


def largest_part(candidate: Candidate) -> tuple[str, float] | None:
    """Return the largest part of the stopped time of all seeds, as `largest_of`."""
    return largest_of(lambda part: _total(candidate, part))


def largest_of(time_in: Callable[[str], float]) -> tuple[str, float] | None:
    """Return the largest part of a stopped time and its share, or None if nothing was stopped.

    ``time_in`` returns the time of a part or a cause. In place of ``detection`` and ``away`` their causes
    count, and in place of ``waiting`` the cause of more than half of it, if there is one.
    """
    parts = {part: time_in(part) for part in PARTS}
    total = sum(parts.values())
    if not total > 0:
        return None
    for part in (DETECTION, AWAY):
        further = {cause: time_in(cause) for cause in PARTS[part] if cause != part}
        parts |= {part: parts[part] - sum(further.values()), **further}
    waits = {cause: time_in(cause) for cause in WAITS}
    cause = max(waits, key=lambda name: waits[name])
    if waits[cause] > parts[WAITING] / 2:
        del parts[WAITING]
        parts[cause] = waits[cause]
    part = max(parts, key=lambda name: parts[name])
    return part, parts[part] / total


def metric_of(part: str) -> str:
    """Return the name of the metric of a part or a cause of the stopped time."""
    return f"stopped_{part}_partition_seconds"


def _total(candidate: Candidate, part: str) -> float:
    """Return a part or a cause of the stopped time of all seeds; 0 if it is unknown."""
    values = candidate.figure(metric_of(part)).values
    return sum(value for value in values if not isnan(value))


def largest_parts(
    comparison: Comparison, best: Collection[int] | None = None
) -> list[tuple[Candidate, str, float]]:
    """Return the candidates whose stopped time is explained, with its largest part or cause and the share.

    They are the present one and one of the best, if they work and the largest parts are not the same.
    """
    if best is None:
        best = sorted(comparison.best(dimensions.STOPS))
    found: dict[str, tuple[Candidate, str, float]] = {}
    one = sorted(best, key=lambda i: i not in comparison.front)[:1]
    for candidate in (comparison.candidates[i] for i in [*one, comparison.now] if i in comparison.working):
        if (largest := largest_part(candidate)) is not None:
            found[largest[0]] = (candidate, *largest)
    return list(reversed(found.values()))


def why(comparison: Comparison, candidate: Candidate, part: str, share: float) -> str:
    """Return why a candidate stops partitions, and the remedies that were tried.

    Those that are candidates themselves are left out: the verdict and the table have them.
    """
    label = comparison.label(candidate)
    reason = candidate.parts.get(part, happens_in(part))
    of_seeds = " of all seeds" if len(comparison.seeds) > 1 else ""
    said = f"{label}, {100 * share:.0f} % of the stopped time{of_seeds}: {reason}."
    compared = set(map(comparison.label, comparison.candidates))
    strategy, settings = candidate.strategy, label.removeprefix(candidate.strategy)
    tried = [
        remedy
        for remedy in comparison.remedies.get(label, ())
        if compared.isdisjoint((f"{remedy.label}{settings}", f"{strategy} with {remedy.label}"))
    ]
    is_beaten = any(
        dimensions.STOPS.is_better(comparison.candidates[i], candidate) for i in comparison.working
    )
    helps = sorted((remedy for remedy in tried if remedy.helps), key=lambda remedy: remedy.after)
    unsure = [remedy for remedy in tried if not remedy.is_known]
    others = [remedy.label for remedy in tried if remedy.is_known]
    if helps:
        said += f" What {'else ' * is_beaten}helps: {'; '.join(map(_effect, helps))}.{_later(helps)}"
    elif others:
        said += f" No {'other ' * is_beaten}change that was tried is known to help: {', '.join(others)}."
    if unsure:
        seeds = f"{len(comparison.seeds)} seeds"
        said += f" Not known from {seeds} whether it helps: {'; '.join(map(_effect, unsure))}."
    return said


def _effect(remedy: Remedy) -> str:
    """Return the stopped time before a remedy and with it, and its price."""
    worse = (f"{name} {as_text(before)} -> {as_text(after)}" for name, before, after in remedy.price)
    price = f" (price: {', '.join(worse)})" if remedy.price else ""
    return f"{remedy.label}: {as_text(remedy.before)} -> {as_text(remedy.after)}{price}"


def _later(remedies: Sequence[Remedy]) -> str:
    """Return where the price of remedies is measured that costs in crashes and freezes, too."""
    if not any(remedy.costs_later for remedy in remedies):
        return ""
    return " `rebalance-lab advise` has the price when a member crashes, is closed or freezes."
