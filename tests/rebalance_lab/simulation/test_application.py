"""The application around a client: its polls decide when rounds end, and what stands still meanwhile."""

from random import Random
from types import SimpleNamespace

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import HeartbeatRequest, JoinGroupRequest
from coordinator_core.protocol.reconcile import ConsumerGroupHeartbeatRequest
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.process.application import Application
from rebalance_lab.simulation.process.clients import CLIENTS
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.invariants import Invariants
from tests.rebalance_lab.simulation import runs

JOINS_AT = 60_000


def run(strategy="range", *, duration="2m", config=None, events=None, seed=8, exchanged=None, **member):
    """Three members with a backlog of records of 100 ms, in batches of 50. A fourth joins after a minute."""
    fields = {"topics": ["t"], "process_rate": 10, "record_cv": 0, "batch_overhead": 0, **member}
    joins = [{"at": JOINS_AT, "join": {"id": "late", **fields, "start_up": "1s"}}]
    scenario = runs.scenario_of(
        *(joins if events is None else events),
        name="batches",
        duration=duration,
        phase="0s",
        seed=seed,
        topics={"t": {"partitions": 12, "backlog": 1_200_000}},
        members=[{"id": "m", "count": 3, **fields}],
        config={"max.poll.records": 50, "session.timeout.ms": "10s", **(config or {})},
    )
    return simulate(scenario, strategy, default_registry(), exchanged=exchanged)


def seen(trace, kind, *, from_ms=JOINS_AT, **fields):
    return runs.seen(trace, kind, from_ms=from_ms, **fields)


def rests(trace):
    return [line.at_ms - JOINS_AT for line in seen(trace, ev.GroupStateChanged, after="Stable")]


def size(partitions):
    return sum(map(len, partitions.values()))


# --- rounds wait for batches


def test_members_join_again_at_the_end_of_their_batches():
    """Exact batches began together: all end within milliseconds, up to five seconds after the heartbeat."""
    trace = run(client="java")
    revoked = [line.at_ms for line in seen(trace, ev.Revoked)]
    first_assigned = min(line.at_ms for line in seen(trace, ev.Assigned, from_ms=0, client="m-0"))
    assert len(revoked) == 3
    assert max(revoked) - min(revoked) < 100
    assert (min(revoked) - first_assigned) % 5_000 < 200


def test_batches_that_differ_in_length_keep_all_waiting_for_the_last():
    trace = run(record_cv=1)
    revoked = [line.at_ms for line in seen(trace, ev.Revoked)]
    (rest,) = rests(trace)
    assert max(revoked) - min(revoked) > 500
    assert 0 <= rest + JOINS_AT - max(revoked) < 100


@pytest.mark.parametrize("client", ["java", "librdkafka", "kafka-python"])
def test_an_eager_round_waits_for_batches_whatever_the_client(client):
    (rest,) = rests(run(record_cv=1, client=client))
    assert rest > 3_500


def test_aiokafka_goes_through_a_round_while_it_handles_a_batch():
    (rest,) = rests(run(record_cv=1, client="aiokafka"))
    assert rest < 1_000 + 3_000 + 100


def test_the_first_cooperative_round_of_librdkafka_does_not_wait_for_batches():
    """It gives nothing up. The second round waits, as the listener is called before."""
    first, second = rests(run("cooperative-sticky", record_cv=1, client="librdkafka"))
    assert first < 1_000 + 3_000 + 100
    assert second - first > 100


def test_librdkafka_learns_of_a_round_with_the_first_heartbeat_after_a_call():
    """Heartbeats that are answered before, while the call waits for the end of the batch, change nothing."""
    sent, fields = [], {"topics": ["t"], "process_rate": 10, "client": "librdkafka"}
    joins = [{"at": at, "join": {"id": f"late-{at}", **fields}} for at in (JOINS_AT - 40_000, JOINS_AT)]
    trace = run("cooperative-sticky", events=joins, record_cv=1, client="librdkafka", exchanged=sent.append)
    moved = {line.event.client for kind in (ev.Revoked, ev.MemberStarted) for line in seen(trace, kind)}
    kept = [line for line in seen(trace, ev.Assigned) if line.event.client not in moved]
    assert len(kept) >= 4
    for line in kept:
        requests = [e.request for e in sent if e.client == line.event.client and e.sent_ms > line.at_ms]
        of_group = [r for r in requests if isinstance(r, (HeartbeatRequest, JoinGroupRequest))]
        assert isinstance(of_group[0], HeartbeatRequest)


def test_a_cooperative_round_of_the_java_client_takes_several_batches():
    """It commits, joins, syncs and takes over in polls of their own, as it returns records in each."""
    first, second = rests(run("cooperative-sticky"))
    assert first > 2 * 5_000
    assert second - first > 2 * 5_000


# --- what stands still in a round


def test_java_works_on_what_it_keeps():
    trace = run("cooperative-sticky", client="java")
    assert seen(trace, ev.WorkStopped) == []


def test_kafka_python_hands_out_nothing_in_a_round():
    trace = run("cooperative-sticky", client="kafka-python", record_cv=1)
    stopped = seen(trace, ev.WorkStopped, why="round")
    assert {line.event.client for line in stopped} >= {"m-0", "m-1", "m-2"}
    for line in stopped:
        again = [s for s in seen(trace, ev.WorkStarted, client=line.event.client) if s.at_ms >= line.at_ms]
        assert again


def test_kafka_python_handles_a_batch_before_it_joins_again():
    """In its follow-up round. The Java client joins in the poll that gave partitions up."""
    after = {}
    for client in ("kafka-python", "java"):
        trace = run("cooperative-sticky", client=client, config={"enable.auto.commit": False})
        revoked = seen(trace, ev.Revoked)[0]
        joins = seen(trace, ev.ClientStateChanged, client=revoked.event.client, after="preparing-rebalance")
        after[client] = min(j.at_ms for j in joins if j.at_ms >= revoked.at_ms) - revoked.at_ms
    assert after["kafka-python"] == pytest.approx(5_000, abs=100)
    assert after["java"] < 100


def test_librdkafka_has_no_records_for_a_moment_after_a_round_in_which_it_kept_some():
    trace = run("cooperative-sticky", client="librdkafka")
    assert seen(trace, ev.WorkStopped, why="round")
    assert not seen(trace, ev.WorkStopped, why="callback")


def test_librdkafka_fetches_again_at_whole_seconds_from_its_last_new_partitions():
    trace = run("cooperative-sticky", client="librdkafka", record_cv=1)
    last, waited = {}, []
    for line in trace.events:
        match line.event:
            case ev.Assigned(client=client, added=added) if added:
                last[client] = line.at_ms
            case ev.WorkStarted(client=client):
                assert (line.at_ms - last[client]) % 1_000 == 0
            case ev.Assigned(client=client) if client in last:
                waited.append(-(line.at_ms - last[client]) % 1_000)
    assert len(waited) >= 4
    assert len({ms // 100 for ms in waited}) > 2


# --- callbacks and state


def test_librdkafka_fetches_on_if_a_reconciliation_gives_it_another_epoch_and_nothing_else():
    """Four members become five of equal shares: two of the four give up partitions, and only they pause."""
    events = [{"at": JOINS_AT, "join": {"id": "late", "topics": ["t"], "process_rate": 10, "start_up": "1s"}}]
    trace = run("uniform-848+reconcile", client="librdkafka", events=events, count=4)
    paused = {line.event.client for line in seen(trace, ev.WorkStopped, why="round")}
    assert paused == {line.event.client for line in seen(trace, ev.Revoked)}
    assert len(paused) == 2


def test_a_callback_delays_the_join_and_stops_all_work():
    quick, slow = run(), run(on_revoked="700ms")
    assert rests(slow)[0] - rests(quick)[0] == pytest.approx(700, abs=50)


def test_nothing_is_handled_while_partitions_are_being_assigned():
    trace = run(on_assigned="2s")
    for line in seen(trace, ev.Assigned):
        begins, ends = (
            seen(trace, kind, from_ms=line.at_ms, client=line.event.client)[0]
            for kind in (ev.WorkStopped, ev.WorkStarted)
        )
        assert (begins.at_ms, ends.at_ms) == (line.at_ms, line.at_ms + 2_000)
        assert begins.event.partitions == line.event.owned


def test_the_state_of_new_partitions_is_restored_and_the_others_are_worked_on():
    trace = run("cooperative-sticky", restore="10s")
    moved = [line for line in seen(trace, ev.Assigned) if line.event.added]
    assert [size(line.event.added) for line in moved] == [3]
    (stopped,) = seen(trace, ev.WorkStopped, why="restore")
    (started,) = seen(trace, ev.WorkStarted)
    assert stopped.event.partitions == started.event.partitions == moved[0].event.added
    assert started.at_ms - moved[0].at_ms == 10_000


def test_state_that_a_member_has_is_not_restored():
    """An eager round takes all partitions away, and gives most of them back."""
    trace = run("sticky", restore="10s")
    assert sum(size(line.event.partitions) for line in seen(trace, ev.WorkStopped, why="restore")) == 3


@pytest.mark.parametrize("how", ["pause", "freeze"])
@pytest.mark.parametrize("at_ms", [JOINS_AT + 33_000, JOINS_AT + 40_000])
def test_a_restore_that_stands_still_ends_later_by_that_time(how, at_ms):
    """It is under way from 31.7 s to 41.7 s after the join. The member stands still in it, or at its end."""
    joins = {"at": JOINS_AT, "join": {"id": "late", "topics": ["t"], "process_rate": 10, "restore": "10s"}}
    trace = run("cooperative-sticky", record_cv=0, events=[joins, {"at": at_ms, how: "late", "for": "2s"}])
    (stopped,) = seen(trace, ev.WorkStopped, client="late", why="restore")
    (started,) = seen(trace, ev.WorkStarted, client="late")
    assert stopped.at_ms < at_ms < stopped.at_ms + 10_000
    assert started.at_ms - stopped.at_ms == 12_000
    assert started.event.partitions == stopped.event.partitions


# --- start, stop, and what goes wrong


def test_a_member_subscribes_when_it_has_started_up():
    trace = run(events=[], start_up="20s")
    assert min(line.at_ms for line in seen(trace, ev.Joined, from_ms=0)) > 20_000


def test_a_member_closes_after_its_batch_and_its_shut_down():
    leaves = [{"at": JOINS_AT, "leave": "m-0"}]
    quick, slow = (run(events=leaves, shut_down=time) for time in ("0s", "4s"))
    ends = [seen(trace, ev.MemberStopped, client="m-0")[0].at_ms for trace in (quick, slow)]
    assert ends[1] - ends[0] == pytest.approx(4_000, abs=50)
    assert seen(slow, ev.WorkStopped, why="shut_down")


def test_a_member_whose_batch_outlasts_the_poll_interval_leaves_the_group():
    trace = run(events=[], duration="2m", config={"max.poll.interval.ms": "4s"})
    left = [
        line
        for line in seen(trace, ev.MemberRemoved, from_ms=0)
        if "max.poll.interval.ms" in line.event.reason
    ]
    assert left


def test_a_member_whose_batches_are_shorter_than_the_poll_interval_stays():
    trace = run(events=[], duration="5m", config={"max.poll.interval.ms": "6s"})
    assert seen(trace, ev.MemberRemoved) == []


@pytest.mark.parametrize("meanwhile", [[], [{"at": "51s", "cut": "m-1", "for": "500ms"}]])
def test_a_batch_that_stands_still_ends_later_by_that_time(meanwhile):
    """Exact batches end together, but for the one of the member that stood still for two seconds."""
    pause, join = {"at": "50s", "pause": "m-1", "for": "2s"}, {"id": "late", "topics": ["t"]}
    trace = run(events=[pause, *meanwhile, {"at": "1m", "join": join}])
    revoked = {line.event.client: line.at_ms for line in seen(trace, ev.Revoked)}
    later = (revoked["m-1"] - revoked["m-0"]) % 5_000
    assert later == pytest.approx(2_000, abs=100)


def test_after_a_crash_the_records_since_the_last_commit_are_handled_again():
    """Polls commit every 5 s, so that at most a batch and the interval are repeated."""
    trace = run(events=[{"at": "60s", "crash": "m-1"}], client="java")
    again = sum(line.event.duplicates for line in seen(trace, ev.LagMeasured))
    assert 0 < again <= 10 * (5 + 5)


@pytest.mark.parametrize(("client", "more"), [("java", 0), ("kafka-python", 1)])
def test_a_member_whose_partitions_others_have_handles_its_batch_to_the_end_when_it_continues(client, more):
    """kafka-python has found its coordinator for an interval when it sends a heartbeat: another batch."""
    frozen = run(events=[{"at": JOINS_AT, "freeze": "m-0", "for": "30s"}], client=client)
    crashed = run(events=[{"at": JOINS_AT, "crash": "m-0"}], client=client)
    (lost,) = seen(frozen, ev.Lost)
    rest_ms = lost.at_ms - JOINS_AT - 30_000
    assert more * 5_000 + 1_000 < rest_ms < (more + 1) * 5_000
    again, once = (sum(line.event.duplicates for line in seen(t, ev.LagMeasured)) for t in (frozen, crashed))
    assert again - once == pytest.approx(rest_ms / 100, abs=3)


def test_batches_after_a_known_end_begin_there():
    """A question between two polls draws the end of a batch. A later one does not draw that batch anew."""
    begun, clock = [], SimpleNamespace(now_ms=100)

    def end_ms(now_ms, begun_ms, work, random):
        begun.append(begun_ms)
        return now_ms + 500

    application = Application(
        SimpleNamespace(partitions={}),
        SimpleNamespace(name="m", flows={"t-0": None}),
        None,
        SimpleNamespace(mean_ms=1.0, end_ms=end_ms),
        CLIENTS["librdkafka"],
        Random,
        clock=clock,
        load=SimpleNamespace(work=lambda worker, now_ms: None, set_working=lambda *_, now_ms: None),
        emit=None,
    )
    application.polled(is_at_rest=True, took_over=False)
    assert [application.next_poll_ms(), application.next_poll_ms()] == [601, 601]
    clock.now_ms = 700
    application.next_poll_ms()
    assert begun == [100, 601]


@pytest.mark.parametrize(("client", "later_ms"), [("java", 5_000), ("rebalance-lab", 0)])
def test_what_a_reconciliation_takes_is_reported_when_the_client_takes_over(client, later_ms):
    """Java commits at the end of a batch, gives up at that of the next, and reports it a batch later."""
    trace = run("uniform-848+reconcile", client=client)
    revoked = seen(trace, ev.Revoked)
    assert revoked
    for line in revoked:
        told = seen(trace, ev.Assigned, from_ms=line.at_ms, client=line.event.client, called=True)
        assert told[0].at_ms - line.at_ms == pytest.approx(later_ms, abs=20)
    assert all(line.at_ms - JOINS_AT > 5_000 for line in revoked)


def test_of_the_polls_of_java_every_second_one_looks_at_what_the_coordinator_has_assigned():
    """The first or the second poll after the response commits, and the next one takes over."""
    batches = set()
    for seed in range(4):
        exchanges = []
        leaves = [{"at": JOINS_AT, "leave": "m-0"}]
        trace = run(
            "uniform-848+reconcile", events=leaves, client="java", seed=seed, exchanged=exchanges.append
        )
        for line in seen(trace, ev.Assigned, called=True):
            told_ms = max(
                each.answered_ms
                for each in exchanges
                if each.client == line.event.client
                and isinstance(each.request, ConsumerGroupHeartbeatRequest)
                and each.answered_ms is not None
                and each.answered_ms <= line.at_ms
                and each.response.assignment is not None
            )
            batches.add(-(-(line.at_ms - told_ms) // 5_000))
    assert batches == {2, 3}


def repeated(trace):
    return sum(line.event.duplicates for line in seen(trace, ev.LagMeasured))


def test_an_eager_round_of_franz_go_costs_the_batch_in_hand():
    """It commits what was handled before, and finishes the batch that it fetches again."""
    config = {"auto.commit.interval.ms": "5s", "heartbeat.interval.ms": "3s"}
    assert repeated(run("range", client="franz-go", config=config)) == 3 * 50
    assert repeated(run("range", client="aiokafka", config=config)) == 0


@pytest.mark.parametrize(("client", "again"), [("franz-go", 50), ("java", 0)])
def test_the_last_batch_of_a_franz_go_member_that_leaves_is_handled_again(client, again):
    """No poll follows it, so that the commit at the end is without it."""
    trace = run("cooperative-sticky", client=client, events=[{"at": "60s", "leave": "m-0"}])
    assert repeated(trace) == pytest.approx(again, abs=2)


def test_a_cooperative_round_of_franz_go_costs_the_batch_in_hand_if_its_partition_moves():
    again = {round(repeated(run("cooperative-sticky", client="franz-go", seed=seed))) for seed in range(8)}
    assert again <= {0, 48, 49, 50}
    assert len(again) > 1


def test_equal_seeds_give_equal_batches():
    assert run(record_cv=1, seed=3).encode() == run(record_cv=1, seed=3).encode()
    assert run(record_cv=1, seed=3).encode() != run(record_cv=1, seed=4).encode()


def test_heartbeats_of_members_that_began_together_drift_apart():
    """By a few milliseconds each, so that they do not all learn of a change at once."""

    def intervals(**member):
        beats = {}

        def exchanged(exchange):
            if isinstance(exchange.request, HeartbeatRequest):
                beats.setdefault(exchange.client, []).append(exchange.sent_ms)

        run(events=[], exchanged=exchanged, **member)
        return {client: times[-1] - times[-2] for client, times in beats.items()}

    assert set(intervals(process_rate=None).values()) == {3_000}
    drifting = intervals()
    assert all(3_000 < interval < 3_020 for interval in drifting.values())
    assert len(set(drifting.values())) > 1


@pytest.mark.parametrize(
    ("client", "strategy"),
    [("librdkafka", "cooperative-sticky"), ("aiokafka", "range"), ("franz-go", "cooperative-sticky")],
)
def test_committed_offsets_do_not_go_back_when_rates_change_during_a_batch(client, strategy):
    """The last poll has returned the records of the batch: the records produced since then are not in it."""
    rows = [[0, 300, 3_000, 3_000], [3_000, 3_000, 300, 3_000], [0, 0, 3_000, 0]]
    document = {
        "name": "rates",
        "duration": "90s",
        "seed": 7,
        "topics": {"t": {"partitions": 4, "rates_rows": rows, "interval": "30s"}},
        "members": [{"id": "m", "topics": ["t"], "process_rate": 10, "record_cv": 0, "client": client}],
        "config": {"auto.commit.interval.ms": 1_000},
    }
    watch, offsets = Invariants(), []
    watch.committed = lambda partition, offset: offsets.append((partition, offset))
    scenario = parse_scenario(document, where="s")
    simulate(scenario, strategy, default_registry(), watch=watch, every_message=True)
    for number in range(4):
        own = [offset for partition, offset in offsets if partition.partition == number]
        assert len(own) > 60
        assert own == sorted(own)
