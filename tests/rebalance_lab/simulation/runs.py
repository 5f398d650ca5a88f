"""Runs of small scenarios, and the events of their traces."""

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.invariants import Invariants


def scenario_of(*events, **fields):
    """Three minutes of three members and six partitions with 60 records/s, but for other ``fields``."""
    document = {
        "name": "test",
        "duration": "3m",
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c", "count": 3, "topics": ["t"]}],
        "events": list(events),
        **fields,
    }
    return parse_scenario(document, where="test", registry=default_registry())


def watched(scenario, strategy="cooperative-sticky"):
    """The trace of a run that breaks no rule, and the watch, which knows whether the group has settled."""
    watch = Invariants()
    trace = simulate(scenario, strategy, default_registry(), watch=watch)
    assert watch.violations == []
    return trace, watch


def settled(scenario, strategy="cooperative-sticky"):
    """The trace of a run that breaks no rule, of a group that has settled at its end."""
    trace, watch = watched(scenario, strategy)
    assert watch.settled() == []
    return trace


def seen(trace, kind, *, from_ms=0, **fields):
    """The lines of a trace with an event of a kind that has these fields."""
    found = [line for line in trace.events if isinstance(line.event, kind) and line.at_ms >= from_ms]
    return [line for line in found if all(getattr(line.event, name) == v for name, v in fields.items())]


def times(trace, kind, **fields):
    """The times of events of a kind that have these fields."""
    return [line.at_ms for line in seen(trace, kind, **fields)]


def rounds(trace, **fields):
    """The times at which generations started."""
    return times(trace, ev.GenerationStarted, **fields)
