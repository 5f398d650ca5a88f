"""Periodic messages of a group at rest are left out: the trace is that of a run with every message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.documents.scenario import parse_scenario
from coordinator_core.protocol.events import GroupStateChanged
from coordinator_core.registry.registry import default_registry
from coordinator_core.simulation.run import Run, simulate
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


# --- examples

HOUR_MS = 3_600_000


def document(**fields):
    """Two members that keep up for an hour in which nothing happens."""
    return {
        "name": "g",
        "duration": HOUR_MS,
        "topics": {"t": {"partitions": 4, "rate": 10}},
        "members": [{"id": f"m{n}", "topics": ["t"], "process_rate": 1_000} for n in range(2)],
        **fields,
    }


def run_of(fields, *, every_message=False):
    """A run that is not started."""
    registry = default_registry()
    scenario = parse_scenario(fields, where="example", registry=registry)
    return Run(scenario, "cooperative-sticky", registry, every_message=every_message)


def actions_until(run, end_ms):
    """The number of actions on the clock up to a time."""
    count = 0
    while (next_ms := run.clock.next_ms()) is not None and next_ms <= end_ms:
        run.clock.step()
        count += 1
    return count


def arrivals(run):
    """The times at which requests arrive at the brokers, by kind, of a run to its end."""
    listed = {}
    arrived = run.brokers.arrived

    def note(request, *arguments):
        listed.setdefault(type(request).__name__.removesuffix("Request"), []).append(run.clock.now_ms)
        arrived(request, *arguments)

    run.brokers.arrived = note
    run.advance(run.scenario.duration_ms)
    return listed


def test_heartbeats_of_a_quiet_hour_are_counted_and_not_sent():
    some, every = run_of(document()), run_of(document(), every_message=True)
    assert actions_until(some, HOUR_MS) * 20 < actions_until(every, HOUR_MS)
    messages = every.finish().ended.messages
    assert some.finish().ended.messages == messages
    assert every.left_out == {}
    assert set(some.left_out) == {"Heartbeat", "OffsetCommit", "Metadata"}
    assert all(0.9 * messages[kind] < count < messages[kind] for kind, count in some.left_out.items())


@pytest.mark.parametrize(("rates", "behind"), [([1, 1, 1], False), ([1, 10_000, 1], True)])
def test_a_member_that_falls_behind_commits_again(rates, behind):
    changes = {"t": {"partitions": 4, "rates_rows": [[n * 600] * 4 for n in rates], "interval": "10m"}}
    times = arrivals(run_of(document(topics=changes, duration="30m")))["OffsetCommit"]
    middle = [at_ms for at_ms in times if 605_000 < at_ms < 1_195_000]
    assert len([at_ms for at_ms in times if 60_000 < at_ms < 595_000]) == 0
    assert (len(middle) > 100) is behind


@pytest.mark.parametrize("every_message", [True, False])
def test_an_event_that_comes_unannounced_needs_every_message(every_message):
    run = run_of(document(duration="20m"), every_message=every_message)
    run.advance(600_000)
    run.stage.consumers["m1"].crash()
    run.advance(1_200_000)
    changes = [entry.at_ms for entry in run.finish().events if isinstance(entry.event, GroupStateChanged)]
    session_ended = any(600_000 < at_ms <= 645_000 for at_ms in changes)
    assert session_ended is every_message


@pytest.mark.parametrize("loss", [0, 0.01])
def test_a_lost_heartbeat_is_simulated(loss):
    lossy = document(duration="20m", network={"latency": [1, 5], "loss": loss})
    sent = arrivals(run_of(lossy))["Heartbeat"]
    known = arrivals(run_of(lossy, every_message=True))["Heartbeat"]
    middle = [at_ms for at_ms in sent if 60_000 < at_ms < 1_180_000]
    assert bool(middle) is bool(loss)
    assert set(middle) <= set(known)


def test_the_last_commit_before_a_backlog_is_sent():
    """The next one may never come: the first batch of the backlog lasts longer than the member lives."""
    changes = {"t": {"partitions": 4, "rates_rows": [[100] * 4, [10_000] * 4], "interval": "100s"}}
    slow = {"process_rate": 5, "record_cv": 0}
    members = [{"id": "m0", "topics": ["t"]}, {"id": "m1", "topics": ["t"], **slow}]
    crash = {"at": "120s", "crash": "m1"}
    config = {"max.poll.records": 500}
    fields = document(topics=changes, members=members, events=[crash], duration="200s", config=config)
    every, some = both(fields, "range")
    assert every == some
