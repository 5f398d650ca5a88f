"""A finding that asks for a longer run is gone, or tells another cause, when the run is longer."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_core.protocol import events as ev
from rebalance_lab.traces.findings import findings
from tests.examples import scaled
from tests.rebalance_lab.traces.traces import (
    SHARED,
    assigned,
    found,
    found_in,
    generation,
    history_in,
    joined,
    revoked,
    round_at,
    started,
)

STRATEGIES = [
    "range",
    "range+static",
    "cooperative-sticky",
    "cooperative-sticky+static",
    "cooperative-sticky+delay=30s",
    "range+reconcile",
    "range+reconcile+static",
    "range+server-side",
    "range+watcher",
    "rocketmq",
]
SECONDS = st.sampled_from([0, 2, 12, 25, 45])
NAMES = ("m0", "m1", "m2")


@st.composite
def scenarios(draw):
    """Members with callbacks, of which some end, start again or stand still; others join."""
    member = {"topics": ["t"], "process_rate": draw(st.sampled_from([50, 200]))}
    member |= {name: f"{draw(SECONDS)}s" for name in ("on_assigned", "on_revoked")}
    names = NAMES[: draw(st.integers(1, 3))]
    events, at_s = [], 5
    for number in range(draw(st.integers(0, 3))):
        at_s += draw(st.integers(5, 40))
        kind = draw(st.sampled_from(["restart", "leave", "crash", "pause", "join", "add_partitions"]))
        name = draw(st.sampled_from(names))
        if kind == "join":
            events.append({"at": f"{at_s}s", "join": {"id": f"j{number}", **member}})
        elif kind == "add_partitions":
            events.append({"at": f"{at_s}s", "add_partitions": {"t": 7 + number}})
        elif kind == "pause":
            events.append({"at": f"{at_s}s", "pause": name, "for": f"{draw(st.integers(1, 5))}s"})
            at_s += 5
        elif kind == "restart":
            events.append({"at": f"{at_s}s", "restart": name})
        else:
            events.append({"at": f"{at_s}s", kind: name})
            at_s += draw(st.integers(1, 40))
            events.append({"at": f"{at_s}s", "restart": name})
    poll_s, session_s = draw(st.sampled_from([10, 30, 60])), draw(st.sampled_from([10, 30, 45, 90]))
    return {
        "name": "longer",
        "seed": draw(st.integers(0, 999)),
        "duration": f"{at_s + draw(st.sampled_from([10, 100, 320]))}s",
        "topics": {"t": {"partitions": draw(st.integers(2, 6)), "rate": 20}},
        "members": [{"id": name, **member} for name in names],
        "events": events,
        "config": {
            "max.poll.interval.ms": f"{poll_s}s",
            "session.timeout.ms": f"{session_s}s",
            "heartbeat.interval.ms": "3s",
            "metadata.max.age.ms": "20s",
        },
    }


def three_times(document):
    return document | {"duration": f"{3 * int(document['duration'].removesuffix('s'))}s"}


def joining_one(on_revoked="20s", events=()):
    """A third static member joins: the leader gives up a partition for it."""
    member = {"topics": ["t"], "process_rate": 100, "on_revoked": on_revoked}
    return {
        "name": "forgotten",
        "seed": 60,
        "duration": "480s",
        "phase": "0s",
        "topics": {"t": {"partitions": 5, "rate": 10}},
        "members": [{"id": "m", "count": 2, **member}],
        "events": [{"at": "81s", "join": {"id": "x", **member}}, *events],
        "config": {"max.poll.interval.ms": "10s", "session.timeout.ms": "90s"},
    }


@settings(max_examples=scaled(100))
@example(joining_one("8s", [{"at": "85s", "restart": "m-0"}]), "cooperative-sticky+static")
@given(scenarios(), st.sampled_from(STRATEGIES))
def test_a_longer_run_is_not_asked_for_again_by_a_longer_run_with_the_same_partitions(document, strategy):
    history = history_in(document, strategy)
    if asks_for_a_longer_run(history):
        longer = history_in(three_times(document), strategy)
        still = set(now_unowned(history)) & set(now_unowned(longer))
        assert not (still and asks_for_a_longer_run(longer))


def asks_for_a_longer_run(history):
    return any("make the duration" in text for text in findings(history))


def now_unowned(history):
    """The partitions without an owner at the end, with the times since when."""
    return [(unowned.partition, unowned.since_ms) for unowned in history.stops.unowned_at_end]


# --- partitions that were given up, and forgotten


FORGOTTEN = (
    "1 partition has no owner at the end, since {} s (t {}): the group rested, and the member that had given"
    " up partitions and was to start the next round came back under its instance id: it takes over the"
    " assignment of the last round, and starts none, as in Kafka; {}"
)


def test_a_partition_that_a_member_gave_up_before_it_dropped_out_is_forgotten():
    """It drops out in the callback, before it joins again, and comes back into the generation."""
    strategy = "cooperative-sticky+static"
    for document in (joining_one(), three_times(joining_one())):
        first, second = found_in(document, strategy)
        assert first.startswith("calls of on_revoked outlast max.poll.interval.ms")
        assert second.split(": ", 1)[1] == FORGOTTEN.split(": ", 1)[1].format("make the callbacks shorter")
    assert found_in(joining_one("5s"), strategy) == ()


GIVEN_UP = [
    (0, started("c", "t")),
    (5_000, generation(2, "a", "b", "c")),
    *[(5_000, joined(name, 2)) for name in "abc"],
    (5_000, ev.GroupStateChanged("g", "CompletingRebalance", "Stable", 2, "")),
    (5_000, assigned("b", 2, {"t": [2, 3]}, added={})),
    (5_000, assigned("c", 2, {})),
    (6_000, revoked("a", {"t": [1]}, 2)),
    (6_000, assigned("a", 2, {"t": [0]}, added={})),
]
CAME_BACK = [
    (7_000, ev.MemberReplaced(group="g", instance_id="one", old_member_id="a", new_member_id="a2")),
    (7_000, joined("a", 2, "a2")),
    (7_000, assigned("a", 2, {"t": [0]}, added={})),
]


def test_a_member_that_comes_back_starts_no_round_for_what_it_gave_up():
    assert found(SHARED, GIVEN_UP, CAME_BACK, duration_ms=400_000) == (
        FORGOTTEN.format(6, 1, "start a round: let another member join"),
    )


def test_nothing_is_forgotten_before_the_member_comes_back_or_once_a_round_follows():
    (text,) = found(SHARED, GIVEN_UP, duration_ms=400_000)
    assert text.endswith(
        "a member had yet to take over its assignment, or to rejoin; make the duration of the scenario longer"
    )
    following = round_at(8_000, 3, {"a": {"t": [0]}, "b": {"t": [2, 3]}, "c": {"t": [1]}})
    assert found(SHARED, GIVEN_UP, CAME_BACK, following, duration_ms=400_000) == ()
    (text,) = found(SHARED, GIVEN_UP, CAME_BACK, following[:-1], duration_ms=400_000)
    assert "a member had yet to take over its assignment, or to rejoin; make the duration" in text


def test_nothing_is_forgotten_while_another_member_is_to_join_again():
    other = [(6_500, revoked("b", {"t": [3]}, 2)), (6_500, assigned("b", 2, {"t": [2]}, added={}))]
    (text,) = found(SHARED, GIVEN_UP, other, CAME_BACK, duration_ms=400_000)
    assert "2 partitions have no owner at the end" in text
    assert "make the duration" in text


def test_a_member_that_takes_over_an_earlier_assignment_forgets_nothing():
    """The partitions that it gives up may be those of others by now."""
    *given_up, _ = GIVEN_UP
    (text,) = found(
        SHARED, given_up, (6_000, assigned("a", 1, {"t": [0]}, added={})), CAME_BACK, duration_ms=400_000
    )
    assert "came back" not in text


def test_another_member_that_joins_gives_a_forgotten_partition_an_owner():
    """The member gives the partition up, and is started again before it joins the next round."""
    strategy = "cooperative-sticky+static"
    document = joining_one("8s", [{"at": "85s", "restart": "m-0"}])
    (text,) = found_in(document, strategy)
    assert text.endswith("start a round: let another member join")
    document["events"].append({"at": "200s", "join": {"id": "y", "topics": ["t"]}})
    assert found_in(document, strategy) == ()
