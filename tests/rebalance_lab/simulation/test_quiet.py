"""Periodic messages of a group at rest are left out: the trace is that of a run with every message."""

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.protocol.events import GroupStateChanged
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import Run, simulate
from rebalance_lab.traces.invariants import Invariants
from tests.examples import scaled
from tests.places import DATA

MEMBERS = ("m0", "m1", "m2", "m3")
STRATEGIES = (
    "range",
    "cooperative-sticky",
    "cooperative-sticky+static",
    "lag-aware",
    "range+static",
    "cooperative-sticky+delay=60s",
    "cooperative-sticky+static+delay=20s",
    "range+server-side",
    "sticky+reconcile",
    "sticky+reconcile+static",
    "watcher",
    "watcher+owners=off",
    "rocketmq",
    "range+peers",
    "lag-aware+peers",
)
REGISTRY = default_registry()
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
def events(draw, protocol):
    """Anything that may happen to a group of a protocol and its brokers, at most eight times."""
    running, listed = dict.fromkeys(MEMBERS, True), []
    kinds = ["leave", "crash", "restart", "pause", "freeze", "cut", "partial cut", "slow", "subscribe"]
    kinds += ["lag_view"] if protocol.servers else []
    kinds += ["remove_member"] if protocol.remove_members else []
    others = {
        "coordinator_failover": {"down": "3s"},
        "add_partitions": {"a": 6},
        "calm": True,
        "create_topic": {"c": {"partitions": 2, "rate": 1}},
        "rolling_restart": {"every": "20s", "down": "5s"},
        "failover in a step": {"down": "1s", "after": "append"},
        "log_fault": {"for": "8s"},
        "late log": {"for": "8s", "by": "3s"},
        "slow": {"broker": 0, "by": "300ms", "for": "15s"},
    }
    names = {"failover in a step": "coordinator_failover", "late log": "log_fault"}
    for at in sorted(draw(st.lists(st.integers(0, WHOLE_S * 10), max_size=8))):
        if draw(st.integers(0, 3)) == 0 and others:
            kind = draw(st.sampled_from(sorted(others)))
            listed.append({"at": at * 100, names.get(kind, kind): others[kind]})
            if kind in ("add_partitions", "create_topic"):
                del others[kind]
            continue
        name, kind = draw(st.sampled_from(MEMBERS)), draw(st.sampled_from(kinds))
        event = {"at": at * 100, (kind if running[name] else "restart"): name}
        running[name] = kind not in ("leave", "crash") or not running[name]
        if "partial cut" in event:
            event["cut"] = event.pop("partial cut")
            event |= draw(st.sampled_from([{"way": "requests"}, {"way": "responses"}, {"broker": 0}]))
        if "pause" in event or "freeze" in event or "cut" in event:
            event["for"] = draw(st.sampled_from(["1s", "7s", "15s", "70s"]))
        if "slow" in event:
            event["slow"] = {"member": name, "by": draw(st.sampled_from(["20ms", "2s"])), "for": "15s"}
        if "subscribe" in event:
            event["topics"] = draw(st.sampled_from([["a"], ["b"], ["a", "b"]]))
        if "lag_view" in event:
            event["lag_view"] = {"member": name, "by": draw(st.sampled_from(["0s", "2s", "10s", "100s"]))}
        listed.append(event)
    return listed


SPANS = ("0s", "50ms", ["0s", "3s"], "5s", "20s", "70s")
"""The times of callbacks, restores, starts and shut-downs: shorter and longer than max.poll.interval.ms."""


@st.composite
def members(draw):
    """Four members: some with a rate, with batches or callbacks that may be long, of any client library."""
    listed = []
    for name in MEMBERS:
        member = {"id": name, "topics": ["a", "b"]}
        if draw(st.booleans()):
            member["process_rate"] = draw(st.sampled_from([5, 50, 500]))
            member["record_cv"] = draw(st.sampled_from([0, 1]))
            member["client"] = draw(st.sampled_from(["java", "librdkafka", "kafka-python", "aiokafka"]))
        for field in ("on_revoked", "on_assigned", "restore", "start_up", "shut_down"):
            if draw(st.integers(0, 4)) == 0:
                member[field] = draw(st.sampled_from(SPANS))
        if draw(st.integers(0, 5)) == 0:
            member.pop("topics")
            member["topics_pattern"] = ".*"
        listed.append(member)
    return listed


@st.composite
def runs(draw, strategies=STRATEGIES):
    """A scenario with anything in it, and a strategy that goes with it."""
    strategy = draw(st.sampled_from(strategies))
    return draw(documents(REGISTRY.protocol(REGISTRY.strategy(strategy).protocol))), strategy


@st.composite
def documents(draw, protocol):
    """A scenario with anything in it that a protocol knows."""
    loss, duplicate = draw(st.sampled_from([(0, 0), (0, 0), (0.01, 0), (0, 0.01), (0.05, 0.05)]))
    return {
        "name": "g",
        "duration": f"{WHOLE_S}s",
        "seed": draw(st.integers(0, 2**32)),
        "brokers": draw(st.sampled_from([1, 3])),
        "topics": draw(topics()),
        "members": draw(members()),
        "events": draw(events(protocol)),
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
    scenario = parse_scenario(document, where="random", registry=REGISTRY)
    return [
        simulate(scenario, strategy, REGISTRY, every_message=every_message).events
        for every_message in (True, False)
    ]


@pytest.mark.slow
@settings(max_examples=scaled(150))
@given(runs())
def test_the_trace_of_any_run_is_that_with_every_message(run):
    document, strategy = run
    every, some = both(document, strategy)
    for one, other in zip(every, some, strict=False):
        assert one == other
    assert len(every) == len(some)


@settings(max_examples=scaled(150))
@given(runs())
def test_no_rule_is_broken_in_any_run(run):
    """Committed offsets never go back, whatever the client library commits. C-80 and others."""
    document, strategy = run
    watch = Invariants(REGISTRY)
    scenario = parse_scenario(document, where="random", registry=REGISTRY)
    simulate(scenario, strategy, REGISTRY, watch=watch, every_message=True)
    assert not watch.violations


# --- examples


def quiet_runs():
    """The runs of tests/data/quiet.yaml: each statement with its strategies and variants of its scenario."""
    for statement, run in yaml.safe_load((DATA / "quiet.yaml").read_text()).items():
        for number, variant in enumerate(run.get("variants", [{}])):
            for strategy in run["strategies"]:
                name = f"{statement}, {strategy} {number}"
                yield pytest.param({"name": "g", **run["scenario"], **variant}, strategy, id=name)


@pytest.mark.parametrize(("scenario", "strategy"), list(quiet_runs()))
def test_a_message_that_is_left_out_changes_nothing(scenario, strategy):
    every, some = both(scenario, strategy)
    assert every == some


HOUR_MS = 3_600_000


def document(**fields):
    """Two members that keep up for an hour in which nothing happens."""
    return {
        "name": "g",
        "duration": HOUR_MS,
        "phase": "0s",
        "topics": {"t": {"partitions": 4, "rate": 10}},
        "members": [{"id": f"m{n}", "topics": ["t"], "process_rate": 1_000} for n in range(2)],
        **fields,
    }


def run_of(fields, strategy="cooperative-sticky", *, every_message=False):
    """A run that is not started."""
    scenario = parse_scenario(fields, where="example", registry=REGISTRY)
    return Run(scenario, strategy, REGISTRY, every_message=every_message)


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
    assert all(0.9 * messages[kind] < count <= messages[kind] for kind, count in some.left_out.items())


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [
        ("range+server-side", {"Heartbeat"}),
        ("sticky+reconcile", {"ConsumerGroupHeartbeat"}),
        ("watcher", {"Ping"}),
        ("rocketmq", {"MemberHeartbeat", "MemberList"}),
    ],
)
def test_a_quiet_hour_costs_nothing_under_any_family(strategy, kinds):
    fields = document(brokers=3, events=[{"at": "50m", "crash": "m1"}])
    some, every = run_of(fields, strategy), run_of(fields, strategy, every_message=True)
    sent = arrivals(some)
    assert [at_ms for times in sent.values() for at_ms in times if 30_000 < at_ms < 2_900_000] == []
    assert set(some.left_out) == kinds | {"OffsetCommit", "Metadata"}
    assert sent.keys() >= kinds
    every.advance(HOUR_MS)
    assert some.finish().events == every.finish().events


def test_the_looks_of_an_assignor_that_depends_on_more_than_the_group_are_simulated():
    sent = arrivals(run_of(document(duration="10m"), "lag-aware+peers"))
    assert len([at_ms for at_ms in sent["MemberList"] if at_ms > 300_000]) == 2 * 15


def test_nothing_is_sent_while_the_delay_of_lost_partitions_runs():
    fields = document(duration="20m", events=[{"at": "5m", "crash": "m1"}])
    strategy = "cooperative-sticky+delay=10m"
    some, every = run_of(fields, strategy), run_of(fields, strategy, every_message=True)
    sent = arrivals(some)
    rejoins = [at_ms for at_ms in sent["JoinGroup"] if at_ms > 500_000]
    assert rejoins
    assert [at for times in sent.values() for at in times if 360_000 < at < rejoins[0] - 5_000] == []
    every.advance(1_200_000)
    assert some.finish().events == every.finish().events


def test_a_heartbeat_that_changes_something_cannot_be_left_out():
    """Neither an error nor records of the group may be lost."""
    run = run_of(document(members=[{"id": "m0", "topics": ["t"]}]), "sticky+reconcile")
    run.advance(60_000)
    client = run.consumers["m0"].client
    request = client.periodic.heartbeats().request
    node = run.brokers.coordinator_node()
    run.brokers.keep_alive(node, request, client="m0", at_ms=60_001)
    for changed in ({"member_epoch": 99}, {"subscribed_topic_names": ("other",)}):
        wrong = msgspec.structs.replace(request, **changed)
        with pytest.raises(AssertionError, match="a heartbeat of m0 at 60002ms is left out"):
            run.brokers.keep_alive(node, wrong, client="m0", at_ms=60_002)


@pytest.mark.parametrize("client", ["java", "librdkafka", "aiokafka"])
@pytest.mark.parametrize("rates", [[1, 1, 1], [1, 10_000, 1]])
def test_commits_of_members_are_left_out_whether_they_keep_up_or_not(rates, client):
    """A batch of a member with a backlog ends before each of its commits.

    With this seed no commit is just before the last heartbeat in front of a cause, which would send both.
    """
    changes = {"t": {"partitions": 4, "rates_rows": [[n * 600] * 4 for n in rates], "interval": "10m"}}
    members = [{"id": f"m{n}", "topics": ["t"], "process_rate": 1_000, "client": client} for n in range(2)]
    fields = document(topics=changes, members=members, duration="30m", seed=2)
    some, every = run_of(fields), run_of(fields, every_message=True)
    assert "OffsetCommit" not in arrivals(some)
    assert len(arrivals(every)["OffsetCommit"]) == some.left_out["OffsetCommit"] > 500
    assert some.finish().events == every.finish().events


def test_nothing_is_sent_between_two_causes_that_are_five_seconds_apart():
    """With this seed no heartbeat is just before a cause, and no commit just before a heartbeat."""
    causes = [{"at": f"{at}s", "calm": True} for at in range(20, 180, 5)]
    fields = document(events=causes, duration="200s", seed=1, network={"latency": [1, 5]})
    sent = arrivals(run_of(fields))
    assert [at_ms for times in sent.values() for at_ms in times if at_ms > 20_000] == []
    every, some = both(fields, "cooperative-sticky")
    assert every == some


def test_an_hour_with_a_backlog_costs_little_if_rates_stay_the_same():
    """The polls are drawn together, and the coordinator stores the offsets of the last one only."""
    member = {"topics": ["t"], "process_rate": 100, "record_cv": 1}
    fields = document(
        duration="1h",
        topics={"t": {"partitions": 4, "rate": 800}},
        members=[{"id": f"m{n}", **member} for n in range(2)],
    )
    some, every = run_of(fields), run_of(fields, every_message=True)
    assert actions_until(some, HOUR_MS) * 15 < actions_until(every, HOUR_MS)
    assert some.finish().events == every.finish().events


@pytest.mark.parametrize("every_message", [True, False])
def test_an_event_that_comes_unannounced_needs_every_message(every_message):
    run = run_of(document(duration="20m"), every_message=every_message)
    run.advance(600_000)
    run.consumers["m1"].crash()
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
