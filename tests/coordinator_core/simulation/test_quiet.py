"""Periodic messages of a group at rest are left out: the trace is that of a run with every message."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.documents.scenario import parse_scenario
from coordinator_core.registry.registry import default_registry
from coordinator_core.simulation.run import simulate
from tests.examples import scaled

MEMBERS = ("m0", "m1", "m2", "m3")
STRATEGIES = ("range", "cooperative-sticky", "cooperative-sticky+static", "lag-aware", "range+static")
WHOLE_S = 600
"""The duration of the runs, in seconds."""


@st.composite
def topics(draw):
    """Two topics whose rates change, so that members fall behind and catch up."""
    steps = draw(st.lists(st.sampled_from([0, 3, 12, 30, 60]), min_size=1, max_size=6))
    counts = [[n * 100] * 4 for n in steps]
    return {
        "a": {"partitions": 4, "rates_rows": counts, "interval": "100s"},
        "b": {"partitions": 2, "rate": draw(st.sampled_from([0, 1, 10]))},
    }


@st.composite
def events(draw):
    """Anything that may happen to a group and its brokers, at most eight times."""
    running, listed = dict.fromkeys(MEMBERS, True), []
    kinds = ["leave", "crash", "restart", "pause", "freeze", "cut", "subscribe", "remove_member"]
    others = {
        "coordinator_failover": {"down": "3s"},
        "add_partitions": {"a": 6},
        "calm": True,
        "create_topic": {"c": {"partitions": 2, "rate": 1}},
        "rolling_restart": {"every": "20s", "down": "5s"},
    }
    for at in sorted(draw(st.lists(st.integers(0, WHOLE_S * 10), max_size=8))):
        if draw(st.integers(0, 3)) == 0 and others:
            kind = draw(st.sampled_from(sorted(others)))
            listed.append({"at": at * 100, kind: others[kind]})
            if kind in ("add_partitions", "create_topic"):
                del others[kind]
            continue
        name, kind = draw(st.sampled_from(MEMBERS)), draw(st.sampled_from(kinds))
        event = {"at": at * 100, (kind if running[name] else "restart"): name}
        running[name] = kind not in ("leave", "crash") or not running[name]
        if "pause" in event or "freeze" in event or "cut" in event:
            event["for"] = draw(st.sampled_from(["1s", "7s", "15s", "70s"]))
        if "subscribe" in event:
            event["topics"] = draw(st.sampled_from([["a"], ["b"], ["a", "b"]]))
        listed.append(event)
    return listed


@st.composite
def members(draw):
    """Four members: some with a rate, with batches that may be long, of any client library."""
    listed = []
    for name in MEMBERS:
        member = {"id": name, "topics": ["a", "b"]}
        if draw(st.booleans()):
            member["process_rate"] = draw(st.sampled_from([5, 50, 500]))
            member["record_cv"] = draw(st.sampled_from([0, 1]))
            member["client"] = draw(st.sampled_from(["java", "librdkafka", "kafka-python", "aiokafka"]))
        if draw(st.integers(0, 5)) == 0:
            member.pop("topics")
            member["topics_pattern"] = ".*"
        listed.append(member)
    return listed


@st.composite
def documents(draw):
    """A scenario with anything in it."""
    loss, duplicate = draw(st.sampled_from([(0, 0), (0, 0), (0.01, 0), (0, 0.01), (0.05, 0.05)]))
    return {
        "name": "g",
        "duration": f"{WHOLE_S}s",
        "seed": draw(st.integers(0, 2**32)),
        "brokers": draw(st.sampled_from([1, 3])),
        "topics": draw(topics()),
        "members": draw(members()),
        "events": draw(events()),
        "config": {
            "session.timeout.ms": draw(st.sampled_from([6_000, 45_000])),
            "max.poll.interval.ms": draw(st.sampled_from([10_000, 60_000, 300_000])),
            "max.poll.records": draw(st.sampled_from([5, 500])),
            "metadata.max.age.ms": draw(st.sampled_from([9_000, 300_000])),
            "auto.commit.interval.ms": draw(st.sampled_from([1_000, 5_000, 50_000])),
            "enable.auto.commit": draw(st.sampled_from([True, True, False])),
            "offsets.retention.minutes": draw(st.sampled_from([5, 10_080])),
        },
        "network": {
            "latency": draw(st.sampled_from([[0, 0], [1, 5], [2, 40], [100, 300]])),
            "loss": loss,
            "duplicate": duplicate,
        },
    }


def both(document, strategy):
    """Return the traces with every message and without the periodic ones of groups at rest."""
    registry = default_registry()
    scenario = parse_scenario(document, where="random", registry=registry)
    return [
        simulate(scenario, strategy, registry, every_message=every_message).events
        for every_message in (True, False)
    ]


@settings(max_examples=scaled(300))
@given(documents(), st.sampled_from(STRATEGIES))
def test_the_trace_of_any_run_is_that_with_every_message(document, strategy):
    every, some = both(document, strategy)
    for one, other in zip(every, some, strict=False):
        assert one == other
    assert len(every) == len(some)
