"""Scenarios that the tests of the notebook share, and what a trace says of itself, read in another way."""

import json
from functools import cache

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import run
from rebalance_jupyter.view_model import view_model
from rebalance_lab.fuzzing.campaign import Campaign

STRATEGIES = ("range", "cooperative-sticky", "sticky+static")
"""Those of random runs."""

SCALE_OUT = """\
name: scale-out
duration: 3m
topics:
  clicks: {partitions: 6, rate: 600}
members:
  - {id: c1, topics: [clicks], process_rate: 400}
  - {id: c2, topics: [clicks], process_rate: 400}
events:
  - {at: 30s, join: {id: c3, topics: [clicks], process_rate: 400}}
  - {at: 90s, crash: c2}
"""
NOBODY = """\
name: nobody
duration: 20s
topics:
  t: {partitions: 3, rate: 10}
members: []
"""
ALONE = """\
name: alone
duration: 20s
topics:
  t: {partitions: 1, rate: 10}
members:
  - {id: solo, topics: [t]}
"""
TOO_SHORT = """\
name: too-short
duration: 4s
phase: 0s
topics:
  t: {partitions: 2, rate: 10}
members:
  - {id: m, count: 2, topics: [t]}
"""
CUT_OFF = """\
name: cut-off
duration: 3m
topics:
  t: {partitions: 4, rate: 600}
members:
  - {id: c, count: 3, topics: [t], process_rate: 400}
events:
  - {at: 30s, cut: c-1, for: 100s}
  - {at: 90s, leave: c-2}
"""
CROWD = """\
name: crowd
duration: 1m
topics:
  t: {partitions: 40, rate: 400}
members:
  - {id: consumer-of-a-service-with-a-long-name, count: 14, topics: [t]}
events:
  - {at: 30s, leave: consumer-of-a-service-with-a-long-name-3}
"""
LATE_VIEW = """\
name: late-view
duration: 1m
seed: 1
topics:
  t: {partitions: 8, rate: 80}
members:
  - {id: c1, topics: [t], process_rate: 100}
  - {id: c2, topics: [t], process_rate: 100}
  - {id: c3, topics: [t], process_rate: 100}
events:
  - {at: 29s, lag_view: {member: c2, by: 10s}}
  - {at: 30s, join: {id: c4, topics: [t], process_rate: 100}}
network: {latency: [1ms, 1ms]}
"""
TWO_TOPICS = """\
name: two-topics
duration: 1m
topics:
  s: {partitions: 2, rate: 20}
  t: {partitions: 4, rate: 40}
members:
  - {id: a, topics: [t]}
  - {id: b, topics: [s, t]}
events:
  - {at: 30s, create_topic: {u: {partitions: 2}}}
"""
BACK = """\
name: back
duration: 4m
topics:
  t: {partitions: 6, rate: 60}
members:
  - {id: c, count: 3, topics: [t]}
events:
  - {at: 30s, crash: c-1}
  - {at: 90s, restart: c-1}
"""
MULTITUDE = CROWD.replace("count: 14", "count: 30")


@cache
def ran(scenario=SCALE_OUT, strategy="cooperative-sticky"):
    return run(scenario, strategy)


def lag_of(member):
    """[[at, records], ...] of the document of a member, None where it is not known."""
    found, at_ms, tenths = [], 0, 0
    for step, change in zip(*member["lag"], strict=True):
        at_ms, tenths = at_ms + step, tenths + (change or 0)
        found.append([at_ms, None if change is None else tenths / 10])
    return found


def at(series, at_ms):
    """The last value of [[at, value], ...] up to a time, None before the first one."""
    return next((value for when, value in reversed(series) if when <= at_ms), None)


def spans_of(trace):
    """[partition, owner's name, from, to] of the bytes, in their order."""
    model = view_model(trace)
    names = [member["name"] for member in model.document["members"]]
    words = memoryview(model.spans).cast("i")
    return [[words[i], names[words[i + 1]], words[i + 2], words[i + 3]] for i in range(0, len(words), 4)]


def random_run(number):
    """The trace of a random run with faults."""
    campaign, registry = Campaign(STRATEGIES, seed=7), default_registry()
    document = campaign.document_of(number, registry, aimed=False)
    return run(json.dumps(document) + "\n", campaign.strategy_of(number))


def owned_at(trace, client, at_ms):
    """What the last callbacks up to a time left a member with, by the trace's own words."""
    owned = set()
    for line in trace.events:
        event = line.event
        if line.at_ms > at_ms or getattr(event, "client", None) != client:
            continue
        if isinstance(event, ev.Assigned):
            owned = {(topic, n) for topic, numbers in event.owned.items() for n in numbers}
        elif isinstance(event, (ev.Revoked, ev.Lost)):
            owned -= {(topic, n) for topic, numbers in event.partitions.items() for n in numbers}
        elif isinstance(event, ev.MemberStopped):
            owned = set()
    return owned


def clock(at_ms):
    """As the page writes a time."""
    seconds, ms = divmod(at_ms, 1_000)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"


def told_at(entry, at_ms):
    """What a view says of a round at a time: not more than has happened."""
    return [text for since_ms, text in entry["sentences"] if since_ms <= at_ms][-1]
