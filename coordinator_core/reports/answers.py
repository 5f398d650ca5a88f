"""A comparison in words: which strategy stops partitions least, and what stops them for most of the time."""

from collections.abc import Iterator, Mapping
from math import isnan

from coordinator_core.registry.hookspecs import MetricSpec, ProtocolSpec
from coordinator_core.reports.comparison import Candidate, Comparison
from coordinator_core.reports.tables import as_text
from coordinator_core.simulation.clients import CLIENTS
from coordinator_core.traces.stopped import DETECTION, STANDING

STOPS = "stopped_partition_seconds"
"""The metric that is divided into parts."""
TWICE = "duplicate_records"
"""The metric that is the price of members that do not wait for one another."""

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
    "waiting": (
        "rounds waited for batches, and for members that had ended until their sessions expired",
        (_STATIC, _COOPERATIVE, "a smaller max.poll.records or session.timeout.ms"),
    ),
    "messages": ("assignments were under way", ("fewer rounds", "a faster network")),
    "application": (
        "members ran callbacks, restored state, or had yet to poll",
        ("shorter callbacks and batches", "fewer moves"),
    ),
    "away": ("static members were closed or starting", ("faster restarts", "fewer members at a time")),
}
"""The parts of the stopped time, and the cause standing: what happened, and what makes it shorter."""


_DELAYED = (
    "the group still counted on members that had ended, or kept their partitions for them",
    (_STATIC, "a shorter delay or session.timeout.ms", "processes that close their consumer"),
)
"""The part ``detection`` if lost partitions wait for their owner."""

_VACANT = ("the group had no members", ("members that overlap",))
"""The part ``away`` without static members."""


def parts_under(protocol: ProtocolSpec, *, delayed: bool) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return for each part what happens in it under a protocol, and what makes it shorter.

    What the protocol does not support is no remedy. ``delayed``: lost partitions wait for their owner.
    """
    parts = {**_PARTS, **protocol.stops}
    if delayed:
        parts["detection"] = _DELAYED
    if "static" not in protocol.modifiers:
        parts["away"] = _VACANT
    without = {
        remedy
        for remedy, modifier in ((_STATIC, "static"), (_COOPERATIVE, "cooperative"))
        if modifier not in protocol.modifiers
    }
    return {
        part: (reason, tuple(remedy for remedy in remedies if remedy not in without))
        for part, (reason, remedies) in parts.items()
    }


def largest_part(candidate: Candidate) -> tuple[str, float] | None:
    """Return the largest part of the stopped time and its share, or None if nothing was stopped.

    If members that stood still are most of the part ``detection``, that cause is returned.
    """
    medians = {
        part: candidate.figures[name].median
        for part in _PARTS
        if (name := f"stopped_{part}_partition_seconds") in candidate.figures
    }
    standing = medians.pop(STANDING, 0.0)  # in the part detection
    total = sum(medians.values())
    if not total > 0:
        return None
    part = max(medians, key=lambda name: medians[name])
    if part == DETECTION and standing > medians[part] / 2:
        return STANDING, standing / total
    return part, medians[part] / total


def answers(comparison: Comparison) -> list[str]:
    """Return sentences: which candidate stops partitions least, and why the first and the best stop them."""
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
    return [*sentences, *reversed(found.values()), *_without_effect(comparison)]


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
    if not best:
        overlap = ", or the spreads overlap" if len(comparison.seeds) > 1 else ""
        return f"No strategy stops partitions least: the figures differ by at most 1 %{overlap}."
    names = [labels[i] for i in best]
    shown = names[0] if len(names) == 1 else f"{names[0]} and {names[1] if len(names) == 2 else 'others'}"
    verb = "stops" if len(names) == 1 else "stop"
    in_one = " in one run" if len(comparison.seeds) == 1 else ""
    least = f"{shown} {verb} partitions least{in_one}: {as_text(figures[best[0]])} {metric.unit}"
    if 0 in best or comparison.varied or comparison.candidates[0].findings:
        working = [i for i, candidate in enumerate(comparison.candidates) if not candidate.findings]
        most = max(working, key=lambda i: figures[i])
        return f"{least}. {labels[most]} stops them most: {as_text(figures[most])}."
    return f"{least}, {_less(figures[best[0]], figures[0])} less than {labels[0]}."


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
    """Return whether the comparison has candidates with a remedy, and all of them stop partitions longer."""
    tried = [
        other.figures[STOPS]
        for other in comparison.candidates
        if any(part in word for word in other.strategy.replace("-", "+").split("+"))
    ]
    return bool(tried) and all(candidate.figures[STOPS].is_better(figure, "lower") for figure in tried)


def _why(comparison: Comparison, candidate: Candidate, part: str, share: float) -> str:
    """Return why a candidate stops partitions, and remedies that help with the clients of the members."""
    reason, remedies = candidate.parts.get(part, _PARTS[part])
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
