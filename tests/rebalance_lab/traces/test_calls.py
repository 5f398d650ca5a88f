"""What findings say about members that dropped out of their group in a callback of a rebalance."""

import re

import pytest

from coordinator_core.protocol import events as ev
from tests.rebalance_lab.traces.traces import (
    SHARED,
    assigned,
    found,
    found_in,
    generation,
    joined,
    lost,
    removed,
    revoked,
    started,
    state,
    stopped,
)


def application_of(**times):
    members = [{"id": "m", "count": 3, "topics": ["t"], "process_rate": 100, **times}]
    return {
        "name": "calls",
        "duration": "8m",
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": members,
        "events": [{"at": "10s", "crash": "m-2"}],
        "config": {"max.poll.interval.ms": "60s", "session.timeout.ms": "10s"},
    }


def test_a_call_of_on_revoked_in_which_the_session_expires_is_named():
    """As it does with a library that sends no heartbeats in calls."""
    texts = found_in(application_of(on_revoked="20s", client="kafka-python"))
    assert texts[0] == (
        "calls of on_revoked outlast the session, as no heartbeats are sent before it returns: the group lost"
        " m-0, m-1 2 times in all; make on_revoked shorter, or session.timeout.ms longer"
    )
    assert found_in(application_of(on_revoked="5s", client="kafka-python")) == ()


@pytest.mark.parametrize("client", ["java", "librdkafka"])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "cooperative-sticky+delay=5s"])
def test_a_session_does_not_expire_in_a_call_if_the_library_sends_heartbeats(client, strategy):
    assert found_in(application_of(on_revoked="20s", on_assigned="20s", client=client), strategy) == ()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "cooperative-sticky+delay=5m"])
def test_a_call_of_on_assigned_that_outlasts_the_poll_interval_is_named(strategy):
    first, *others = found_in(application_of(on_assigned="70s"), strategy)
    assert first.startswith("calls of on_assigned outlast max.poll.interval.ms: the group lost m-0, m-1")
    assert first.endswith("make on_assigned shorter, or max.poll.interval.ms longer")
    assert not any("make the duration" in text or "batches" in text for text in others)


def test_a_call_that_outlasts_the_rebalance_timeout_outlasts_the_poll_interval():
    """The timeout of a round is max.poll.interval.ms. A cooperative member is assigned what it keeps before
    the call, which is still that of on_revoked."""
    document = application_of(on_revoked="40s")
    document["config"] = {"max.poll.interval.ms": "30s", "session.timeout.ms": "45s"}
    for strategy in ("range", "cooperative-sticky"):
        texts = found_in(document, strategy)
        assert not any("session" in text or "on_assigned" in text for text in texts), texts
        assert strategy != "range" or texts[0].startswith("calls of on_revoked outlast max.poll.interval.ms")


def test_partitions_that_have_no_owner_because_of_callbacks_need_shorter_ones():
    document = application_of(on_revoked="10m")
    first, *_, last = found_in(document)
    assert first.startswith("calls of on_revoked outlast")
    assert last.endswith("make the callbacks shorter")


def test_new_partitions_wait_for_a_round_and_for_shorter_callbacks():
    document = application_of(on_assigned="70s") | {"events": [{"at": "460s", "add_partitions": {"t": 8}}]}
    _, text = found_in(document)
    assert (
        "; make the callbacks shorter, and the duration of the scenario longer than metadata.max.age" in text
    )


def test_a_session_that_expires_without_a_callback_is_that_of_a_member_that_ended():
    crashed = [(10_000, stopped("b", "crashed")), (20_000, removed("b"))]
    assert not any("calls" in text for text in found(SHARED, crashed))
    stands = [(9_000, ev.WorkStopped(client="b", partitions={"t": [2]}, why="callback"))]
    paused = [(10_000, ev.MemberPaused(client="b")), (20_000, removed("b"))]
    assert not any("calls" in text for text in found(SHARED, stands, paused))
    assert found(SHARED, stands, (20_000, removed("b")))[0].startswith("calls of on_assigned outlast")


def test_the_session_of_an_ended_process_does_not_expire_in_a_call_of_the_next_one():
    again = [(8_000, stopped("b", "crashed")), (9_000, started("b", "t")), (10_000, joined("b", 1, "b2"))]
    again += [(10_000, assigned("b", 1, {"t": [2, 3]}))]
    called = (10_000, ev.WorkStopped(client="b", partitions={"t": [2, 3]}, why="callback"))
    assert not any("calls" in text for text in found(SHARED, again, called, (18_000, removed("b"))))
    assert any("calls" in text for text in found(SHARED, again, called, (18_000, removed("b2"))))


# --- static members


def with_config(document, **config):
    document["config"] |= {name.replace("_", "."): value for name, value in config.items()}
    return document


DROPPED_OUT = (
    "calls of on_assigned outlast max.poll.interval.ms: m-0, m-1, m-2 dropped out {} times in all, while the"
    " group kept the places of static members; make on_assigned shorter, or max.poll.interval.ms longer"
)


@pytest.mark.parametrize("session", ["10s", "100s"])
@pytest.mark.parametrize("strategy", ["range+static", "cooperative-sticky+static", "range+reconcile+static"])
def test_a_call_in_which_static_members_drop_out_is_named(strategy, session):
    """They do not leave: they come back under their instance ids, or their sessions expire."""
    document = with_config(application_of(on_assigned="70s"), session_timeout_ms=session) | {"events": []}
    first, *others = found_in(document, strategy)
    dropped_out = first.split(" dropped out ")[1].split()[0]
    assert first == DROPPED_OUT.format(dropped_out)
    assert not any("outlast" in text or "make the duration" in text for text in others)


@pytest.mark.parametrize(
    "strategy", ["range+static", "cooperative-sticky+static", "range+reconcile+static", "range+reconcile"]
)
def test_a_long_call_within_the_poll_interval_has_no_finding(strategy):
    document = with_config(application_of(on_assigned="50s"), session_timeout_ms="10s")
    assert found_in(document | {"duration": "15m"}, strategy) == ()


def test_a_call_in_which_a_reconciled_member_leaves_is_named():
    """Its heartbeats go on in the call, and may tell it a new epoch."""
    first, *_ = found_in(application_of(on_assigned="70s"), "range+reconcile")
    assert first.startswith("calls of on_assigned outlast max.poll.interval.ms: the group lost m-0, m-1")


def test_a_call_of_a_reconciled_member_goes_on_when_it_learns_of_an_epoch():
    document = application_of(on_revoked="70s")
    document["events"] = [{"at": "60s", "join": {"id": "x", "topics": ["t"], "on_revoked": "70s"}}]
    (text,) = found_in(document, "range+reconcile")
    assert re.match(
        r"calls of on_revoked outlast max.poll.interval.ms: the group lost (m-\d, )+x \d times", text
    )


OUTSIDE = ev.ClientStateChanged(client="a", before="stable", after="unjoined")
IN_CALL = [*SHARED, (8_000, ev.WorkStopped(client="a", partitions={"t": [0, 1]}, why="callback"))]


@pytest.mark.parametrize(
    ("event", "count"),
    [
        (ev.Changed(kind="pause", target="b"), 1),
        (ev.MemberReplaced(group="g", instance_id="one", old_member_id="a", new_member_id="other"), 0),
        (ev.CoordinatorElected(node=1, groups=1, group_state="Stable", generation=1, members=["b"]), 0),
        (ev.CoordinatorElected(node=1, groups=1, group_state="Stable", generation=1, members=["a", "b"]), 1),
    ],
)
def test_a_member_on_which_the_group_no_longer_counts_does_not_drop_out(event, count):
    """It was fenced, or the coordinator does not know it."""
    texts = found(IN_CALL, (9_000, event), (9_500, OUTSIDE), (9_500, ev.MemberResumed(client="b")))
    assert sum("dropped out once" in text for text in texts) == count


@pytest.mark.parametrize("event", [{"leave": "m-1"}, {"subscribe": "m-1", "topics_pattern": "t.*"}])
@pytest.mark.parametrize("strategy", ["range", "range+static", "range+reconcile+static"])
def test_a_member_that_closes_or_unsubscribes_in_a_call_has_not_dropped_out(strategy, event):
    document = application_of(on_assigned="50s") | {"events": [{"at": "20s", **event}]}
    assert not any("outlast" in text for text in found_in(document, strategy))


def test_a_call_goes_on_while_its_member_is_cut_off():
    """The partitions of the member are not handled meanwhile, so that no batch is the reason."""
    document = with_config(
        application_of(on_assigned="50s"), max_poll_interval_ms="30s", session_timeout_ms="90s"
    )
    document["members"][0]["process_rate"] = 20
    document["events"] = [{"at": "8s", "cut": "m-1", "for": "10s"}]
    outlast = [text.split(" max.poll")[0] for text in found_in(document, "range+static") if "outlast" in text]
    assert outlast == ["calls of on_assigned outlast"]
    cut = [(8_000, ev.WorkStopped(client="b", partitions={"t": [2]}, why="callback"))]
    cut += [(9_000, ev.MemberCutOff(client="b")), (20_000, removed("b"))]
    assert not any("calls" in text for text in found(SHARED, cut))


def test_static_members_that_join_after_the_end_of_a_round_are_named():
    """They stay in the group, and are not in the generation: their joins start the next one.

    A library that sends heartbeats in calls learns of it, and joins as a new member.
    """
    document = application_of(on_revoked="40s", client="kafka-python")
    late = {"id": "x", "topics": ["t"], "on_revoked": "40s", "client": "kafka-python"}
    document["events"] = [{"at": "60s", "join": late}]
    with_config(document, max_poll_interval_ms="30s", session_timeout_ms="45s")
    (text,) = found_in(document, "range+static")
    assert text.startswith("callbacks outlast the waits of rounds, which end after max.poll.interval.ms: m-")
    assert text.endswith("; make the callbacks shorter, or max.poll.interval.ms longer")
    with_config(document, max_poll_interval_ms="50s", session_timeout_ms="60s")
    assert found_in(document, "range+static") == ()
    with_config(document, max_poll_interval_ms="20s", session_timeout_ms="60s")
    (text,) = found_in(document, "range+static")
    assert "the group lost" in text  # it removes members that do not join or sync in time


def test_two_callbacks_that_outlast_the_wait_of_a_round_together_are_named():
    """Each is within the interval, but not both."""
    times = {"on_revoked": "25s", "on_assigned": "45s", "client": "kafka-python"}
    document = application_of(**times)
    document["members"][0]["count"] = 1
    late = {"topics": ["t"], **times}
    document["events"] = [{"at": "8s", "join": {"id": "x", **late}}]
    with_config(document, session_timeout_ms="90s")
    (text,) = found_in(document, "range+static")
    assert text.startswith("callbacks outlast the waits of rounds")


@pytest.mark.parametrize("runs_a_call", [True, False])
def test_a_static_member_without_which_a_round_ended_is_late_if_it_runs_a_callback(runs_a_call):
    callback = (8_000, ev.WorkStopped(client="a", partitions={"t": [0, 1]}, why="callback"))
    call = [(8_000, revoked("a", {"t": [0]})), callback] if runs_a_call else []
    goes_on = [(9_000, generation(2, "a", "b")), (9_500, state("PreparingRebalance", cause="a rejoined"))]
    assert any("callbacks outlast" in text for text in found(SHARED, call, goes_on)) is runs_a_call


# --- members without a call, or without partitions


@pytest.mark.parametrize("strategy", ["range+static", "range+reconcile", "range+reconcile+static"])
def test_batches_in_which_members_drop_out_without_being_removed_are_named(strategy):
    """A static member comes back before its session expires. A reconciled one leaves without a reason."""
    document = {
        "name": "batches",
        "duration": "10m",
        "topics": {"t": {"partitions": 4, "rate": 10, "backlog": 10_000}},
        "members": [{"id": "m", "count": 2, "topics": ["t"], "process_rate": 10, "batch_overhead": 0}],
        "config": {"max.poll.interval.ms": "30s", "session.timeout.ms": "100s"},
    }
    text = found_in(document, strategy)[0]
    assert text.startswith("batches of 50 s on average outlast max.poll.interval.ms (30 s): m-0, m-1 left")
    document["config"]["max.poll.records"] = 100
    assert found_in(document, strategy) == ()


@pytest.mark.parametrize("strategy", ["range", "range+static"])
def test_batches_are_no_reason_for_a_member_without_partitions(strategy):
    document = application_of(on_assigned="70s") | {"topics": {"t": {"partitions": 2, "rate": 10}}}
    document["members"][0]["process_rate"] = 10
    document["events"] = []
    assert [text.split(" outlast")[0] for text in found_in(document, strategy) if "outlast" in text] == [
        "calls of on_assigned"
    ]


def test_a_member_without_partitions_that_leaves_is_in_a_call():
    call = ev.WorkStopped(client="c", partitions={}, why="callback")
    alone = [*SHARED, (2_000, started("c", "t")), (2_000, joined("c", 1)), (2_000, assigned("c", 1, {}))]
    alone.append((2_000, call))
    limits = ev.ApplicationStarted(
        client="c", batch_ms=500_000, max_poll_records=500, max_poll_interval_ms=300_000
    )
    polls, session = "max.poll.interval.ms has passed without a poll", "session expired"
    (text,) = found(alone, (2_000, limits), (9_000, removed("c", polls)))
    assert text.startswith("calls of on_assigned outlast max.poll.interval.ms: the group lost c once")
    returned = (8_000, ev.WorkStarted(client="c", partitions={}))
    assert found(alone, (2_000, limits), returned, (9_000, removed("c", polls))) == ()
    (text,) = found(alone, (2_000, limits), (9_000, removed("c", session)))
    assert text.startswith("calls of on_assigned outlast the session, as no heartbeats")


def test_a_member_that_has_lost_its_partitions_handles_no_batch():
    limits = ev.ApplicationStarted(
        client="b", batch_ms=500_000, max_poll_records=500, max_poll_interval_ms=300_000
    )
    outside = ev.ClientStateChanged(client="b", before="completing-rebalance", after="unjoined")
    timed = [(8_000, lost("b", {"t": [2, 3]})), (8_500, joined("b", 1)), (9_000, outside)]
    assert not any("batches of" in text for text in found(SHARED, (0, limits), timed))
    assert any("batches of" in text for text in found(SHARED, (0, limits), timed[1:]))


def test_a_member_that_an_administrator_removes_in_a_call_was_not_too_late():
    document = application_of(on_revoked="20s")
    document["config"] = {"max.poll.interval.ms": "60s", "session.timeout.ms": "30s"}
    document["events"] = [{"at": "10s", "crash": "m-2"}, {"at": "50s", "remove_member": "m-0"}]
    assert not any("outlast" in text for text in found_in(document))
