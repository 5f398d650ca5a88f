"""Traces of live groups: they are written and measured like simulated ones, and agree with the members."""

from itertools import count

import msgspec
import pytest

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.events import TraceEvent
from coordinator_core.registry.registry import default_registry
from rebalance_kafka import Consumer
from rebalance_kafka.broker import recorder
from rebalance_kafka.broker.node import Node
from rebalance_kafka.wire.apis import Api
from rebalance_lab.traces.entries import Occurrence
from rebalance_lab.traces.history import History
from rebalance_lab.traces.rounds import entries, rounds
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.measuring import measure
from tests.rebalance_kafka.frames import their_class
from tests.rebalance_kafka.live import ask, broker, member, polled, produce, run, settled, values

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
STRATEGIES = ("range", "cooperative-sticky")
QUICK = {"group.consumer.heartbeat.interval.ms": 50, "group.consumer.assignment.interval.ms": 0}


def named(kafka, name, **options):
    settings = {"client.id": name} | options.pop("settings", {})
    return member(kafka, settings=settings, **options)


def events(trace, *kinds):
    return [each.event for each in trace.events if isinstance(each.event, kinds)]


def owners(trace):
    """Consumer to partitions, by what was assigned, revoked and ended."""
    owned = {}
    for event in events(trace, ev.MemberStarted, ev.MemberStopped, ev.Assigned, ev.Revoked):
        match event:
            case ev.MemberStarted():
                owned[event.client] = set()
            case ev.MemberStopped():
                del owned[event.client]
            case ev.Assigned():
                owned[event.client] = pairs(event.owned)
            case ev.Revoked():
                owned[event.client] -= pairs(event.partitions)
    return owned


def pairs(listed):
    return {(topic, number) for topic, numbers in listed.items() for number in numbers}


def by_the_members(*consumers):
    return {each._config.client_id: set(each.assignment) for each in consumers}


def check(trace, tmp_path):
    """Whole, in order, the same after it was written and read, told and measured without complaint."""
    times = [each.at_ms for each in trace.events]
    assert times == sorted(times)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(trace.encode())
    assert read_trace(path) == trace
    assert all(msgspec.json.decode(line, type=TraceEvent) for line in trace.encode().splitlines())
    figures = measure(trace, default_registry())
    assert figures["stopped_partition_seconds"] >= 0
    assert entries(trace)
    return figures


# --- rounds


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_trace_agrees_with_the_members(strategy, tmp_path):
    async def work():
        async with broker() as kafka, named(kafka, "a", strategy=strategy) as a:
            await settled(a)
            assert owners(kafka.trace("g")) == by_the_members(a)
            async with (
                named(kafka, "b", strategy=strategy) as b,
                named(kafka, "c", strategy=strategy) as c,
            ):
                await settled(a, b, c)
                trace = kafka.trace("g")
                assert owners(trace) == by_the_members(a, b, c)
                assert (trace.scenario, trace.strategy) == ("g", strategy)
                assert (trace.ended.group_state, trace.ended.generation) == ("Stable", a.generation)
                check(trace, tmp_path)
            await settled(a)
            trace = kafka.trace("g")
            assert owners(trace) == by_the_members(a)
            figures = check(trace, tmp_path)
            later = [each for each in rounds(trace) if each.stable_ms][1:]
            assert figures["rounds"] == len(later), "of the rounds after the first rest"
            assert History(trace).topics == {"t": 4}

    run(work())


def test_the_trace_of_a_consumer_group_agrees_with_the_members(tmp_path):
    """Its epochs are those of the members, and a member revokes only what it loses."""

    def consumer(kafka, name):
        own = {"client.id": name, "enable.auto.commit": False}
        return Consumer("t", bootstrap_servers=kafka.address, group_id="g", protocol="consumer", settings=own)

    async def work():
        async with broker(settings=QUICK) as kafka, consumer(kafka, "a") as a:
            async with consumer(kafka, "b") as b:
                await polled(a, b, until=lambda _: is_shared(kafka, a, b))
                trace = kafka.trace("g")
                assert owners(trace) == by_the_members(a, b)
                assert (trace.strategy, trace.started.protocol) == ("uniform", "reconcile")
                assert trace.ended.generation == a.generation == b.generation
                revoked = [(e.client, len(e.partitions["t"])) for e in events(trace, ev.Revoked)]
                assert revoked == [("a", 2)]
                assert [e.client for e in events(trace, ev.Joined)] == ["a", "b"]
            await polled(a, until=lambda _: is_shared(kafka, a))
            trace = kafka.trace("g")
            assert owners(trace) == by_the_members(a)
            changes = [(e.kind, e.target) for e in events(trace, ev.Changed)]
            assert changes == [("join", "a"), ("join", "b"), ("leave", "b")]
            assert check(trace, tmp_path)["rounds"] == 2
            assert trace.ended.messages["ConsumerGroupHeartbeat"] > 4

    run(work())


def is_shared(kafka, *members):
    """Return whether the group is Stable with these members, and they know it."""
    if "g" not in kafka.groups:
        return False
    owned, end = [tp for each in members for tp in each.assignment], kafka.trace("g").ended
    epochs = {each.generation for each in members}
    return end.group_state == "Stable" and len(set(owned)) == len(owned) == 4 and epochs == {end.generation}


def test_a_group_that_changes_its_protocol_begins_another_trace():
    async def work():
        async with broker() as kafka:
            async with named(kafka, "a") as a:
                await settled(a)
            own = {"client.id": "b", "enable.auto.commit": False}
            options = {"bootstrap_servers": kafka.address, "group_id": "g", "protocol": "consumer"}
            async with Consumer("t", settings=own, **options) as b:
                await polled(b, until=lambda _: len(b.assignment) == 4)
            trace = kafka.trace("g")
            assert {e.client for e in events(trace, ev.MemberStarted)} == {"b"}
            assert trace.started.protocol == "reconcile"

    run(work())


@pytest.mark.parametrize(("strategy", "given_up"), [("range", {0, 1, 2, 3}), ("cooperative-sticky", {2, 3})])
def test_eager_members_revoke_everything_and_cooperative_members_what_moves(strategy, given_up):
    async def work():
        ids = [{"group.instance.id": name} for name in "ab"]
        async with broker() as kafka, named(kafka, "x", strategy=strategy, settings=ids[0]) as a:
            await settled(a)
            async with named(kafka, "y", strategy=strategy, settings=ids[1]) as b:
                await settled(a, b)
                revoked = [e for e in events(kafka.trace("g"), ev.Revoked) if e.client == "a"]
                assert {number for e in revoked for number in e.partitions["t"]} == given_up
                added = [e.added for e in events(kafka.trace("g"), ev.Assigned) if e.client == "b"]
                assert {number for each in added for number in each.get("t", [])} == {2, 3}

    run(work())


def test_joins_and_leaves_are_recorded_by_client_id():
    async def work():
        async with broker() as kafka:
            async with named(kafka, "a") as a:
                await settled(a)
                async with named(kafka, "b") as b:
                    await settled(a, b)
                await settled(a)
            trace = kafka.trace("g")
            changes = [(e.kind, e.target) for e in events(trace, ev.Changed)]
            assert changes == [("join", "a"), ("join", "b"), ("leave", "b"), ("leave", "a")]
            assert [(e.client, e.how) for e in events(trace, ev.MemberStopped)] == [
                ("b", "closed"),
                ("a", "closed"),
            ]
            texts = [each.text for each in entries(trace) if isinstance(each, Occurrence)]
            assert texts == [
                "join a",
                "join b",
                "leave b",
                "leave a",
                "the group is Empty: a left (the consumer is being closed)",
            ]
            assert (trace.ended.group_state, owners(trace)) == ("Empty", {})

    run(work())


def test_what_follows_from_one_request_has_one_time(monkeypatch):
    """The clock goes on with every reading, as on a busy machine. The last leave is no round then, either."""
    read, ticks = Node.now_ms, count()
    monkeypatch.setattr(Node, "now_ms", lambda node: read(node) + next(ticks))

    async def work():
        async with broker() as kafka:
            async with named(kafka, "a") as a:
                await settled(a)
            trace = kafka.trace("g")
            removed = next(each for each in trace.events if isinstance(each.event, ev.MemberRemoved))
            begun = [each for each in trace.events if isinstance(each.event, ev.GroupStateChanged)][-2]
            assert (begun.event.after, begun.at_ms) == ("PreparingRebalance", removed.at_ms)
            times = [each.at_ms for each in trace.events]
            assert times == sorted(times)
            texts = [each.text for each in entries(trace) if isinstance(each, Occurrence)]
            assert texts[-1] == "the group is Empty: a left (the consumer is being closed)"
            assert [each.generation for each in rounds(trace)] == [1]

    run(work())


def test_a_member_whose_session_expires_has_crashed(tmp_path):
    async def work():
        async with broker() as kafka, named(kafka, "a") as a:
            short = {"session.timeout.ms": 600}
            b = named(kafka, "b", settings=short)
            await b.start()
            await settled(a, b)
            await hang_up(b)
            await settled(a)
            trace = kafka.trace("g")
            assert [(e.kind, e.target) for e in events(trace, ev.Changed)][-1] == ("crash", "b")
            assert events(trace, ev.MemberStopped)[-1].how == "crashed"
            assert owners(trace) == by_the_members(a)
            check(trace, tmp_path)

    run(work())


async def hang_up(consumer):
    """Let a client disappear like a killed process: it sends nothing more."""
    links = consumer._links
    links.send = lambda *_: None
    await links.close()


def test_a_static_member_that_joins_again_has_restarted(tmp_path):
    async def work():
        static = {"group.instance.id": "ada", "session.timeout.ms": 600_000}
        async with broker() as kafka, named(kafka, "a") as a:
            for _ in range(2):
                async with named(kafka, "b", settings=static) as b:
                    await settled(a, b)
                    had = b.assignment
            trace = kafka.trace("g")
            assert [(e.kind, e.target) for e in events(trace, ev.Changed)][-1] == ("restart", "ada")
            assert [e.instance_id for e in events(trace, ev.MemberStarted)].count("ada") == 2
            assert owners(trace)["ada"] == set(had)
            check(trace, tmp_path)

    run(work())


def test_members_with_the_same_client_id_get_different_names(tmp_path):
    async def work():
        async with broker() as kafka, named(kafka, "a") as one, named(kafka, "a", seed=2) as other:
            await settled(one, other)
            trace = kafka.trace("g")
            names = [e.client for e in events(trace, ev.MemberStarted)]
            assert len(set(names)) == 2
            assert "a" in names
            assert all(name.startswith("a") for name in names)
            assert sorted(owners(trace).values(), key=sorted) == sorted(
                (set(one.assignment), set(other.assignment)), key=sorted
            )
            check(trace, tmp_path)

    run(work())


def test_the_leaders_assignment_is_recorded():
    async def work():
        async with broker() as kafka, named(kafka, "a", strategy="range") as a:
            await settled(a)
            (computed,) = events(kafka.trace("g"), ev.AssignmentComputed)
            assert (computed.client, computed.assignor, computed.generation) == ("a", "range", 1)
            assert computed.members == {a.member_id: ["t"]}
            assert computed.payload_bytes > 0

    run(work())


def test_a_new_subscription_is_recorded():
    async def work():
        async with broker({"t": 1, "u": 1}) as kafka, named(kafka, "a") as a:
            await settled(a, partitions=1)
            a.subscribe("t", "u")
            await settled(a, partitions=2)
            assert events(kafka.trace("g"), ev.SubscriptionChanged) == [
                ev.SubscriptionChanged(client="a", topics=["t", "u"])
            ]

    run(work())


def test_requests_are_counted_by_api():
    async def work():
        async with broker() as kafka, named(kafka, "a") as a:
            await settled(a)
            await a.commit({T0: 0})
            messages = kafka.trace("g").ended.messages
            assert list(messages) == sorted(messages)
            # the first JoinGroup is told its member id (KIP-394)
            assert (messages["JoinGroup"], messages["SyncGroup"], messages["OffsetCommit"]) == (2, 1, 1)

    run(work())


# --- topics that come and grow


def grow(topic, count):
    topic_class = their_class(Api.CREATE_PARTITIONS, "Request").CreatePartitionsTopic
    return {"topics": [topic_class(name=topic, count=count, assignments=None)], "timeout_ms": 1_000}


@pytest.mark.parametrize("by_a_client", [False, True])
def test_added_partitions_are_recorded(by_a_client, tmp_path):
    async def work():
        quick = {"metadata.max.age.ms": 50}
        async with broker() as kafka, named(kafka, "a", settings=quick) as a:
            await settled(a)
            if by_a_client:
                await ask(kafka.address, Api.CREATE_PARTITIONS, **grow("t", 6))
            else:
                kafka.create_topics({"t": 6})
            await settled(a, partitions=6)
            trace = kafka.trace("g")
            assert events(trace, ev.PartitionsAdded) == [ev.PartitionsAdded(topic="t", partitions=6)]
            assert History(trace).topics == {"t": 6}
            check(trace, tmp_path)

    run(work())


# --- lag


def test_lag_is_measured_at_commits(monkeypatch):
    monkeypatch.setattr(recorder, "MEASURE_EVERY_MS", 0)

    async def work():
        async with broker({"t": 2}) as kafka, named(kafka, "a") as a:
            await produce(kafka.address, 0, *(b"%d" % n for n in range(5)))
            await values(a, 5)
            await a.commit({T0: 2})
            await a.commit({T0: 4, T1: 0})
            lags = events(kafka.trace("g"), ev.LagMeasured)
            assert [(each.lag, each.max_lag, each.by_client) for each in lags] == [
                (3.0, 3.0, {"a": 3.0}),
                (1.0, 3.0, {"a": 1.0}),
            ]
            assert lags[0].lag_record_seconds == 0

    run(work())


# --- what there is no trace of


def join(group_id, protocol_type, member_id=""):
    cls = their_class(Api.JOIN_GROUP, "Request")
    return {
        "group_id": group_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": protocol_type,
        "protocols": [cls.JoinGroupRequestProtocol(name="p", metadata=b"not ours")],
    }


def test_a_group_of_another_type_is_not_recorded():
    async def work():
        async with broker() as kafka:
            answer = await ask(kafka.address, Api.JOIN_GROUP, 3, **join("g", "connect"))
            assert answer.error_code == 0
            assert kafka.traces() == {}
            with pytest.raises(InputError, match=r"a group that a member has joined \(none yet\)"):
                kafka.trace("g")

    run(work())


def test_a_member_with_an_unreadable_subscription_has_no_topics():
    async def work():
        async with broker() as kafka:
            answer = await ask(kafka.address, Api.JOIN_GROUP, 3, **join("g", "consumer"))
            (started,) = events(kafka.trace("g"), ev.MemberStarted)
            assert (started.client, started.topics) == ("them", [])
            assert events(kafka.trace("g"), ev.Joined)[0].member_id == answer.member_id

    run(work())


def test_events_beyond_the_limit_are_not_kept(tmp_path):
    async def work():
        async with broker(most_trace_events=6) as kafka, named(kafka, "a") as a:
            await settled(a)
            trace = kafka.trace("g")
            assert len(trace.events) == 7
            check(trace, tmp_path)

    run(work())


# --- brokers that were there before


def test_members_from_before_a_restart_keep_their_names(tmp_path):
    async def work():
        options = {"data_dir": tmp_path / "data"}
        async with broker(**options) as kafka:
            port = int(kafka.address.split(":")[1])
            a, b = named(kafka, "a"), named(kafka, "b", seed=2)
            await a.start()
            await b.start()
            await settled(a, b)
        async with broker(port=port, **options) as kafka, named(kafka, "c", seed=3) as c:
            await settled(a, b, c)
            trace = kafka.trace("g")
            assert owners(trace) == by_the_members(a, b, c)
            check(trace, tmp_path)
            await a.close()
            await b.close()

    run(work())
