"""A comparison in words: which strategy stops partitions least, why, and whether the lag comes down."""

from collections.abc import Collection, Iterator, Mapping
from math import isnan

from coordinator_core.registry.hookspecs import MetricSpec, ProtocolSpec
from coordinator_core.registry.registry import Registry
from coordinator_core.reports.comparison import Candidate, Comparison, Figure
from coordinator_core.reports.tables import as_text
from coordinator_core.reports.words import listed_names
from coordinator_core.scoring.lag import SLACK_RECORDS
from coordinator_core.simulation.clients import CLIENTS
from coordinator_core.traces.stopped import DETECTION, STANDING, UNASSIGNED

STOPS = "stopped_partition_seconds"
"""The metric that is divided into parts."""
TWICE = "duplicate_records"
"""The metric that is the price of members that do not wait for one another."""
LEFT, MOST, LOADED = "lag_at_end", "max_lag", "utilization"
"""The metrics that tell whether a group keeps up with its load."""
SHARE = "capacity_lost"
"""The metric of the records that come while their partition is stopped."""

_OF_KAFKA = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The assignors of Kafka's Java client. Those of other clients are among them."""

_LEAST_SHARE = 0.0001
"""Of a smaller share of the records, only that it is smaller is told."""

_UNKNOWN = Figure(())

RETURNS = frozenset({"restart", "rolling_restart"})
"""The events after which members are there again under their names."""

_STATIC, _COOPERATIVE = "static members", "a cooperative assignor"
_PARTS = {
    "detection": (
        "the group still counted on members that had ended",
        (_STATIC, "a shorter session.timeout.ms", "processes that close their consumer"),
    ),
    STANDING: (
        "members stood still or were cut off, and the group still counted on them",
        (
            "a shorter max.poll.interval.ms for pauses, in which heartbeats continue",
            "a shorter session.timeout.ms for freezes and cuts",
        ),
    ),
    UNASSIGNED: (
        "no round ran, and partitions that the group did not know of yet had no owner",
        ("a shorter metadata.max.age.ms",),
    ),
    "waiting": (
        "rounds waited for members to finish batches, and for members that had ended until their sessions"
        " expired",
        (_STATIC, _COOPERATIVE, "a smaller max.poll.records or session.timeout.ms"),
    ),
    "messages": ("assignments were under way", ("fewer rounds", "a faster network")),
    "application": (
        "members ran callbacks, restored state, or had yet to poll",
        ("shorter callbacks and batches", "fewer moves"),
    ),
    "away": ("static members were closed or starting", ("faster restarts", "fewer members at a time")),
}
"""The parts of the stopped time, and two causes of detection: what happened, and what makes it shorter."""

_FOR_BATCHES = ("rounds waited for members to finish batches", "a smaller max.poll.records")
"""The part ``waiting`` if the group never counted on a member that had ended, and its own remedy."""

_DELAYED = (
    "no round ran, and the group kept the partitions of members that had ended for them",
    (_STATIC, "a shorter delay"),
)
"""The cause ``unassigned`` if lost partitions wait for their owner."""

_VACANT = ("the group had no members", ("members that overlap",))
"""The part ``away`` without static members."""


def parts_under(
    protocol: ProtocolSpec, *, delayed: bool, events: Collection[str] = RETURNS
) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return for each part what happens in it under a protocol, and what makes it shorter.

    What the protocol does not support is no remedy. ``delayed``: lost partitions wait for their owner.
    ``events`` has the kinds of the scenario's events: static members help if members come back.
    """
    parts = {**_PARTS, **protocol.stops}
    if protocol.stops and UNASSIGNED not in protocol.stops:
        parts[UNASSIGNED] = parts[DETECTION]
    if delayed:
        parts[UNASSIGNED] = _DELAYED
    if "static" not in protocol.modifiers:
        parts["away"] = _VACANT
    without = {
        remedy
        for remedy, helps in (
            (_STATIC, "static" in protocol.modifiers and not RETURNS.isdisjoint(events)),
            (_COOPERATIVE, "cooperative" in protocol.modifiers),
        )
        if not helps
    }
    return {
        part: (reason, tuple(remedy for remedy in remedies if remedy not in without))
        for part, (reason, remedies) in parts.items()
    }


def largest_part(candidate: Candidate) -> tuple[str, float] | None:
    """Return the largest part of the stopped time and its share, or None if nothing was stopped.

    If it is ``detection``, the largest of its causes is returned.
    """
    parts = _medians(candidate)
    causes = {cause: parts.pop(cause, 0.0) for cause in (STANDING, UNASSIGNED)}  # in the part detection
    total = sum(parts.values())
    if not total > 0:
        return None
    part = max(parts, key=lambda name: parts[name])
    if part == DETECTION:
        causes[DETECTION] = parts[DETECTION] - sum(causes.values())
        part = max(reversed(causes), key=lambda name: causes[name])
        return part, causes[part] / total
    return part, parts[part] / total


def _medians(candidate: Candidate) -> dict[str, float]:
    """Return the parts of the stopped time, and the two causes, as far as they are known."""
    return {
        part: candidate.figures[name].median
        for part in _PARTS
        if (name := f"stopped_{part}_partition_seconds") in candidate.figures
    }


def answers(comparison: Comparison) -> list[str]:
    """Return sentences: which candidate stops partitions least, and why the first and the best stop them.

    Before them stands what is left of the lag, if a large part of it is left under all candidates; after
    them, if it is under some.
    """
    metric = next((m for m in comparison.metrics if m.name == STOPS), None)
    works = [not candidate.findings for candidate in comparison.candidates]
    if metric is None or any(isnan(figure.median) for figure in comparison.figures(metric)) or not any(works):
        return []
    best = sorted(comparison.best(metric))
    sentences = [_least(comparison, metric, best), *_twice(comparison, best)] if sum(works) > 1 else []
    found = {}
    for candidate in (comparison.candidates[i] for i in [*best[:1], 0]):
        if not candidate.findings and (largest := largest_part(candidate)) is not None:
            found[largest[0]] = _why(comparison, candidate, *largest)
    left, under_all = _left(comparison)
    sentences = [*left, *sentences] if under_all else [*sentences, *left]
    return [*sentences, *reversed(found.values()), *_without_effect(comparison)]


def _left(comparison: Comparison) -> tuple[list[str], bool]:
    """Return a sentence if more than half of the largest lag is left, and whether it is under all."""
    left: list[str] = []
    under_all = True
    for candidate in comparison.candidates:
        if candidate.findings:
            continue
        at_end, most, load = (candidate.figures.get(name, _UNKNOWN).median for name in (LEFT, MOST, LOADED))
        if not at_end > max(most / 2, SLACK_RECORDS):
            under_all = False
            continue
        first = "the busiest member has " if not left else ""
        of_what = " of what it can handle" if not left else ""
        busy = f" ({first}{100 * load:.0f} %{of_what})" if load > 1 else ""
        records = " records" if not left else ""
        left.append(f"{as_text(at_end)}{records} under {comparison.label(candidate)}{busy}")
    if not left:
        return [], False
    return [f"The lag has not come down by the end of the run: {listed_names(left)}."], under_all


def _counted_on_ended(candidate: Candidate) -> bool:
    """Return whether the group counted on members that had ended, stood still or were cut off."""
    parts = _medians(candidate)
    return parts.get(DETECTION, 0.0) > parts.get(UNASSIGNED, 0.0)


def _without_effect(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence for each setting that changes no figure of any strategy."""
    for name in comparison.varied:
        groups: dict[object, set[str]] = {}
        for candidate in comparison.candidates:
            others = {n: text for n, (text, _) in candidate.settings.items() if n != name}
            groups.setdefault((candidate.strategy, *others.items()), set()).add(repr(candidate.figures))
        if all(len(found) == 1 for found in groups.values()):
            yield f"{name} makes no difference."


def _least(comparison: Comparison, metric: MetricSpec, best: list[int]) -> str:
    figures = [figure.median for figure in comparison.figures(metric)]
    labels = [comparison.label(candidate) for candidate in comparison.candidates]
    working = [i for i, candidate in enumerate(comparison.candidates) if not candidate.findings]
    if not best:
        overlap = ", or the spreads overlap" if len(comparison.seeds) > 1 else ""
        low, high = (as_text(end(figures[i] for i in working)) for end in (min, max))
        shown = low if low == high else f"{low} to {high}"
        return f"All stop partitions alike, within 1 %{overlap}: {shown} {metric.unit}."
    names = [labels[i] for i in best]
    shown = names[0] if len(names) == 1 else f"{names[0]} and {names[1] if len(names) == 2 else 'others'}"
    verb = "stops" if len(names) == 1 else "stop"
    share, lag = (comparison.candidates[best[0]].figures.get(name, _UNKNOWN).median for name in (SHARE, MOST))
    percent = as_text(100 * share) if share > _LEAST_SHARE else f"under {100 * _LEAST_SHARE:g}"
    during = "" if isnan(share) or isnan(lag) else f" ({percent} % of the records came then)"
    least = f"{shown} {verb} partitions least: {as_text(figures[best[0]])} {metric.unit}{during}"
    others = [i for i in working if i not in best]
    following = min(others, key=lambda i: figures[i])
    most = max(others, key=lambda i: figures[i])
    is_compared = 0 not in best and not comparison.varied and not comparison.candidates[0].findings
    less = [f"{_less(figures[best[0]], figures[0])} less than {labels[0]}"] if is_compared else []
    if following != (0 if is_compared else most):
        less.append(f"{_less(figures[best[0]], figures[following])} less than {labels[following]}, the next")
    last = "" if is_compared else f" {labels[most]} stops them most: {as_text(figures[most])}."
    return f"{', '.join([least, ' and '.join(less)]) if less else least}.{last}"


def _less(least: float, other: float) -> str:
    """Return a difference in percent. Only a figure of 0 is 100 % less than another one."""
    percent = 100 * (1 - least / other)
    return f"{percent:.0f} %" if percent <= 99 or not least else "over 99 %"


def _twice(comparison: Comparison, best: list[int]) -> Iterator[str]:
    """Yield a sentence if the first of the best handles more records twice than another candidate.

    The difference must be more than a tenth of its largest lag.
    """
    metric = next((m for m in comparison.metrics if m.name == TWICE), None)
    if metric is None or not best:
        return
    figures = comparison.figures(metric)
    other = 0 if best[0] else min(range(len(figures)), key=lambda i: figures[i].median)
    lag = comparison.candidates[best[0]].figures.get("max_lag", figures[other]).median
    more = figures[best[0]].median - figures[other].median
    if more > lag / 10 and figures[other].is_better(figures[best[0]], metric.better):
        first, second = (comparison.label(comparison.candidates[i]) for i in (best[0], other))
        twice, fewer = (as_text(figures[i].median) for i in (best[0], other))
        yield f"{first} handles {twice} records twice, {second} {fewer}."


_TRIED = {_STATIC: "static", _COOPERATIVE: "cooperative"}
"""The remedies that a strategy may contain, and the part of its name that says so."""


def _is_refuted(comparison: Comparison, candidate: Candidate, part: str) -> bool:
    """Return whether the comparison has candidates with a remedy, and none of them stops partitions less."""
    tried = [
        other.figures[STOPS]
        for other in comparison.candidates
        if any(part in word for word in other.strategy.replace("-", "+").split("+"))
    ]
    return bool(tried) and not any(figure.is_better(candidate.figures[STOPS], "lower") for figure in tried)


def _why(comparison: Comparison, candidate: Candidate, part: str, share: float) -> str:
    """Return why a candidate stops partitions, and remedies that help with the clients of the members."""
    reason, remedies = candidate.parts.get(part, _PARTS[part])
    if reason == _PARTS["waiting"][0] and not _counted_on_ended(candidate):
        reason, without_sessions = _FOR_BATCHES
        remedies = (*(remedy for remedy in remedies if remedy in (_STATIC, _COOPERATIVE)), without_sessions)
    clients = sorted(comparison.clients)
    limit = ""
    if clients and not any(CLIENTS[name].gains_from_cooperation for name in clients):
        if _COOPERATIVE in remedies:
            limit = f" With {' and '.join(clients)} {_COOPERATIVE} does not shorten it."
        remedies = tuple(remedy for remedy in remedies if remedy != _COOPERATIVE)
    refuted = {remedy for remedy, part in _TRIED.items() if _is_refuted(comparison, candidate, part)}
    remedies = tuple(remedy for remedy in remedies if remedy not in refuted) or remedies
    return (
        f"{comparison.label(candidate)}, {100 * share:.0f} % of the stopped time: {reason}."
        f" To shorten it: {', '.join(remedies)}.{limit}"
    )


def what_it_takes(strategies: Mapping[str, str], registry: Registry) -> str:
    """Return what clients need for strategies whose assignors are not Kafka's, or an empty text.

    ``strategies`` maps names as they are shown to strategies. Only clients of the classic protocol assign.
    """
    foreign = {}
    for name, strategy in strategies.items():
        assignor, *modifiers = registry.aliases().get(strategy, strategy).split("+")
        if assignor not in _OF_KAFKA and registry.protocols().keys().isdisjoint(modifiers):
            foreign[name] = assignor
    if not foreign:
        return ""
    specs = registry.assignors()
    by_load = [
        name
        for name, assignor in foreign.items()
        if (spec := specs.get(assignor)) and (spec.provider or getattr(spec.factory, "provider", ""))
    ]
    loads = (
        f" Under {' and '.join(by_load)}, members must report their rates; otherwise partitions are counted."
        if by_load
        else ""
    )
    return (
        f"Kafka's own clients do not have {' and '.join(foreign)}; kafka-python, aiokafka and the Consumer of"
        f" rebalance_kafka do.{loads}"
    )
