"""The figures of a comparison as the view shows them: sentences first, then metrics by groups."""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.timeline import Timeline
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.comparison_tables import by_group, front_line, title_of
from rebalance_lab.verdicts.grid import Figure
from rebalance_lab.verdicts.of_traces import comparison_of_traces
from rebalance_lab.verdicts.rule import is_tie
from rebalance_lab.verdicts.switching import what_it_takes
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import clock, counted, listed_names

_MOST_EVENTS = 6
"""The most events of the scenario that are listed above the figures."""


def figures_of(traces: Sequence[Trace], registry: Registry) -> dict[str, Any]:
    """Return the sentences and the metrics of traces. A cell has its text, and its number or None."""
    if not traces:
        return {}
    comparison = comparison_of_traces(traces, registry)
    first, *others = answers(comparison) or [""]
    groups = [
        {"name": name, "metrics": [_row(comparison, metric) for metric in metrics]}
        for name, metrics in by_group(comparison.shown).items()
    ]
    return {
        "title": title_of(comparison),
        "workload": workload_of(traces[0]),
        "answer": first,
        "choice": choice_of(comparison),
        "reasons": [
            *others,
            *filter(None, [what_it_takes({t.strategy: t.strategy for t in traces}, registry)]),
        ],
        "strategies": [comparison.label(candidate) for candidate in comparison.candidates],
        "groups": groups,
        "front": sorted(comparison.front),
        "front_line": front_line(comparison),
    }


def workload_of(trace: Trace) -> str:
    """Return what happens to a group: its partitions, the scenario's events, and the load at the end."""
    now, changes = Timeline(work=False), []
    rates: dict[str, list[float]] = {}
    for entry in trace.events:
        match entry.event:
            case ev.Changed(cause=""):
                at = clock(entry.at_ms).strip().removesuffix(".000")
                changes.append(f"{at} {entry.event.kind} {entry.event.target}")
            case ev.RatesChanged():
                rates[entry.event.topic] = entry.event.rates
    now.read(trace)
    first, last = (sum(topics.values()) for topics in (trace.started.topics, now.topics))
    sentences = [f"{counted(first, 'partition')}{f', {last} at the end' if last != first else ''}."]
    if changes:
        sentences.append(f"Events: {listed_names(changes, _MOST_EVENTS)}.")
    handled = [consumer.handles for consumer in now.consumers.values()]
    known = [rate for rate in handled if rate is not None]
    produced = sum(map(sum, rates.values()))
    if produced and known and len(known) == len(handled):
        most = f"{counted(len(known), 'member')} can handle {as_text(float(f'{sum(known):.3g}'))}"
        sentences.append(f"At the end {as_text(produced)} records/s are produced, and {most}.")
        largest, name = max((rate, f"{topic}-{n}") for topic in rates for n, rate in enumerate(rates[topic]))
        if largest > max(known):
            sentences.append(
                f"Partition {name} alone has {as_text(largest)}, more than any member can handle."
            )
    return " ".join(sentences)


def choice_of(comparison: Comparison) -> str:
    """Return which strategy no other one is better than, or what each strategy is best in.

    A strategy is left out if another one is best in the same and in more, a figure if all that are named are
    best in it. The text is empty if no figure is known to be better.
    """
    labels = [comparison.label(candidate) for candidate in comparison.candidates]
    best = {metric.name: found for metric in comparison.headlines if (found := comparison.best(metric))}
    if not best:
        return ""
    beaten = {i for metric in comparison.headlines for i in comparison.beaten(metric)}
    if leading := [i for i in comparison.working if i not in beaten]:
        names = " or ".join(labels[i] for i in leading)
        return f"No main figure is known to be better with another strategy than with {names}."
    won = [{name for name, found in best.items() if i in found} for i in range(len(labels))]
    named = {
        label: own for label, own in zip(labels, won, strict=True) if not any(own < other for other in won)
    }
    shared = set.intersection(*named.values())
    parts = [
        f"{label} is best in {', '.join(name for name in best if name in own - shared)}"
        for label, own in named.items()
    ]
    return f"None is best in everything: {'; '.join(parts)}."


def _differs(figures: Sequence[Figure]) -> bool:
    """Return whether medians differ by more than a tie, or only some are known."""
    known = [figure.median for figure in figures if not isnan(figure.median)]
    if len(known) in (0, len(figures)):
        return bool(known) and not is_tie(max(known), min(known))
    return True


def _row(comparison: Comparison, metric: MetricSpec) -> dict[str, Any]:
    figures = comparison.figures(metric)
    best = comparison.best(metric)
    known = [figure.median for figure in figures if not isnan(figure.median)]
    most = max(map(abs, known), default=0.0)
    compared = [figures[i].median for i in comparison.working if not isnan(figures[i].median)]
    least = (max if metric.better == "higher" else min)(compared, default=nan)
    cells = []
    for i, figure in enumerate(figures):
        low, high = map(as_text, figure.spread)
        cells.append(
            {
                "text": as_text(figure.median),
                "number": None if isnan(figure.median) else figure.median,
                "spread": "" if low == high else f"{low} to {high}",
                "share": abs(figure.median) / most if most and not isnan(figure.median) else 0,
                "best": i in best,
                "difference": "" if i in best else _difference(figure.median, least),
            }
        )
    return {
        "name": metric.name,
        "unit": metric.unit,
        "definition": metric.doc + " Higher is better." * (metric.better == "higher"),
        "headline": metric.headline,
        "differs": _differs(figures),
        "cells": cells,
    }


def _difference(value: float, least: float) -> str:
    if value == least or isnan(value - least):
        return ""
    return f"{'+' if value > least else '−'}{as_text(abs(value - least))}"
