"""Comparisons by hand: figures of the parts of stopped time, candidates that have them, and bounds."""

import numpy as np

from coordinator_core.model import TopicIndex
from coordinator_core.registry.hookspecs import MetricSpec
from rebalance_lab.traces.causes import PARTS
from rebalance_lab.verdicts.bounds import largest_load_bound
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.reasons import STOPS

METRICS = [
    MetricSpec(STOPS, "partition seconds", lambda history: 0.0, group="stops", headline=True),
    *(MetricSpec(f"stopped_{part}_partition_seconds", "", lambda history: 0.0) for part in PARTS),
    MetricSpec("stopped_standing_partition_seconds", "", lambda history: 0.0),
    MetricSpec("stopped_unassigned_partition_seconds", "", lambda history: 0.0),
    MetricSpec("duplicate_records", "records", lambda history: 0.0, group="lag"),
]


def figures(standing=0, unassigned=0, twice=0, waits=None, **parts):
    """The figures of a run with those parts of stopped time. Causes are counted in their parts, too."""
    parts["detection"] = parts.get("detection", 0) + standing + unassigned
    waits = {f"waiting_{name}": value for name, value in (waits or {}).items()}
    parts["waiting"] = parts.get("waiting", 0) + sum(waits.values())
    known = {f"stopped_{part}_partition_seconds": float(parts.get(part, 0)) for part in PARTS}
    causes = {"standing": standing, "unassigned": unassigned, **waits}
    more = {f"stopped_{name}_partition_seconds": float(value) for name, value in causes.items()}
    return {STOPS: sum(known.values()), **known, **more, "duplicate_records": float(twice)}


def stopped(values, **more):
    """The figures of runs with those stopped times, without their parts, and further figures."""
    return {**figures(), STOPS: values, **more}


def compared(seeds=6, now="", metrics=METRICS, findings=(), **candidates):
    """A comparison of candidates by their figures, each with a value for all seeds, or one for each."""
    found = dict(findings)
    made = [
        Candidate(
            name,
            {metric: Figure(v if isinstance(v, tuple) else (v,) * seeds) for metric, v in own.items()},
            findings=found.get(name, ()),
        )
        for name, own in candidates.items()
    ]
    return Comparison("day", range(7, 7 + seeds), metrics, made, now=[*candidates].index(now) if now else 0)


def comparison_of(scenario, seed, metrics, figures, *, seeds=1):
    """The comparison of ``figures[strategy][metric]``, which are the same for all seeds."""
    candidates = [
        Candidate(strategy, {name: Figure((value,) * seeds) for name, value in values.items()})
        for strategy, values in figures.items()
    ]
    return Comparison(scenario, range(seed, seed + seeds), metrics, candidates)


def least_largest_load(weights, members):
    """A lower bound of the largest load, over all assignments of partitions to their subscribers."""
    counts = {}
    for topic, number in weights:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    index = TopicIndex(counts)
    weight = np.zeros(index.size)
    for (topic, number), value in weights.items():
        weight[index.number(topic, number)] = value
    return largest_load_bound(weight, index, list(members.values()))
