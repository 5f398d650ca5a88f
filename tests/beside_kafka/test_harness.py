"""The comparison itself: it finds what differs, knows what has a reason, and makes scripts shorter."""

import asyncio

import pytest

from tests.beside_kafka import steps as s
from tests.beside_kafka.clocks import MARGIN, Clocks
from tests.beside_kafka.comparing import Difference, compared, where
from tests.beside_kafka.gate import Gate
from tests.beside_kafka.kinds import KINDS, RESTARTING
from tests.beside_kafka.known import History, reason_of
from tests.beside_kafka.names import Names
from tests.beside_kafka.playing import Fixed
from tests.beside_kafka.requests import request_of
from tests.beside_kafka.shrinking import shrunk
from tests.beside_kafka.subscribed import assignment, share_of
from tests.real_kafka.wire import Key, decode, encode

JOIN = s.JoinGroup(member="A", topics=("t1",))


def joined(leader, generation=1, member_id="client-A-1"):
    return {"error_code": "none", "generation_id": generation, "leader": leader, "member_id": member_id}


def test_errors_come_first_in_what_differs():
    kafka = {"assignment": None, "error_code": "none"}
    other = {"assignment": "00", "error_code": "unknown_member_id"}
    assert where(kafka, other) == (".error_code", "none", "unknown_member_id")


def test_what_differs_in_a_row_has_its_path():
    kafka, other = ({"groups": [{"members": [{"id": name}]}]} for name in "ab")
    assert where(kafka, other) == (".groups[].members[].id", "a", "b")
    assert where(kafka, kafka) is None


def test_texts_and_the_order_of_rows_are_not_compared():
    rows = [{"name": "b", "error_message": "Kafka's"}, {"name": "a", "error_message": None}]
    assert compared(Key.OFFSET_DELETE, {"topics": rows}, "g") == {"topics": [{"name": "a"}, {"name": "b"}]}


def test_the_order_of_topics_in_an_assignment_is_not_compared():
    shares = ({"t1": (0,), "t2": (1, 2)}, {"t2": (1, 2), "t1": (0,)})
    bodies = ({"error_code": "none", "assignment": assignment(share).hex()} for share in shares)
    kafka, other = (compared(Key.SYNC_GROUP, body, "g") for body in bodies)
    assert kafka == other == {"error_code": "none", "assignment": {"t1": [0], "t2": [1, 2]}}


def test_an_assignment_is_read_as_it_was_written():
    assert share_of(assignment({"t1": (0, 5), "t2": ()})) == {"t1": (0, 5), "t2": ()}
    with pytest.raises(IndexError):
        share_of(b"\0\1")


def difference(kafka, other):
    return Difference(3, JOIN, ".leader", kafka["leader"], other["leader"], (kafka, other))


def test_another_leader_has_a_reason_only_where_the_leader_has_left():
    history = History()
    history.add(JOIN, joined("k1"), joined("o1"))
    assert reason_of(difference(joined("k2", 2), joined("o3", 2)), history) is not None
    assert reason_of(difference(joined("k2", 2), joined("o1", 2)), history) is None
    assert reason_of(difference(joined("k1", 2), joined("o3", 2)), history) is None
    assert reason_of(difference(joined("k2"), joined("o3")), History()) is None


def test_shares_have_a_reason_only_beside_members_of_the_classic_protocol():
    step = s.ConsumerHeartbeat(member="B", epoch="join", topics=("t1",))
    body = {"error_code": "none", "member_id": "B"}
    found = Difference(1, step, ".assignment.topic_partitions[].partitions", [0], [1], (body, body))
    history = History()
    history.add(step, body, body)
    assert reason_of(found, history) is None
    history.add(JOIN, joined("x"), joined("y"))
    assert reason_of(found, history) is not None
    assert reason_of(found._replace(path=".heartbeat_interval"), history) is None


def test_names_of_the_broker_become_names_of_the_script():
    names = Names("g", {"t1": "00000000-0000-0000-0000-000000000001"}, seed=1)
    names.learn(JOIN, joined("client-A-1"))
    row = {"member": "client-A-1", "topic": "00000000-0000-0000-0000-000000000001"}
    assert names.normal(row) == {"member": "member A", "topic": "t1"}
    assert request_of(s.Heartbeat(member="A", shift=1), names)[1]["generation_id"] == 2


def test_members_make_the_same_ids_in_a_second_run():
    step = s.ConsumerHeartbeat(member="A", id="new", epoch="join")
    first, second = (Names(group, {}, seed=7) for group in ("g", "h"))
    made = [first.made_id(step), first.made_id(step)]
    assert made == [second.made_id(step), second.made_id(step)]
    assert made[0] != made[1]


def test_nothing_is_sent_where_a_timer_may_end():
    clocks = Clocks(consumer_session=4.0)
    clocks.sent(s.ConsumerHeartbeat(member="A", epoch="join"), 100.0)
    assert clocks.wait(100.5) == 0
    assert clocks.wait(103.9) == pytest.approx(0.1 + MARGIN)
    assert clocks.wait(104.5) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_is_the_same_for_the_same_seed_and_is_read_as_it_was_written(kind):
    def script():
        source, steps = KINDS[kind](11, 12), []
        while (step := source.next(frozenset())) is not None:
            steps.append(step)
            if isinstance(step, s.JoinGroup):
                source.told(step, {**joined("client-A-1"), "protocol_name": "range"})
        return s.Script(tuple(steps), source.seed, source.is_old)

    first = script()
    assert script() == first
    assert s.read(s.written(first)) == first
    assert kind != RESTARTING or s.Restart() in first.steps


def test_steps_of_a_member_that_waits_are_left_out():
    fixed = Fixed(s.Script((JOIN, s.Heartbeat(member="B"))))
    assert fixed.next(frozenset("A")) == s.Heartbeat(member="B")
    assert fixed.next(frozenset()) is None


def test_a_script_is_made_as_short_as_its_fault():
    needed = {s.DescribeGroup(), s.DeleteGroup()}
    steps = [s.Wait(seconds=n) for n in range(20)]
    steps[7:7], steps[13:13] = [s.DescribeGroup()], [s.DeleteGroup()]

    async def shows(scripts):
        return [needed <= set(script.steps) for script in scripts]

    assert set(asyncio.run(shrunk(s.Script(tuple(steps)), shows)).steps) == needed


def test_a_gate_opens_once_all_scripts_that_run_have_come():
    worked = []

    async def work():
        worked.append(len(worked))

    async def script(gate, comes):
        if comes:
            await gate.passed()
        await gate.leave()

    async def play():
        gate = Gate(work)
        for _ in range(3):
            gate.enter()
        await asyncio.gather(*(script(gate, comes) for comes in (True, False, True)))

    asyncio.run(play())
    assert worked == [0]


def test_a_request_has_the_fields_that_its_version_has():
    _, values = request_of(s.LeaveGroup(member="A", leaving=(("empty", "iA"),)), Names("g", {}, 0))
    assert len(encode(Key.LEAVE_GROUP, 2, 1, "c", values)) < len(encode(Key.LEAVE_GROUP, 5, 1, "c", values))


def test_a_response_is_plain_values():
    frame = bytes.fromhex("00000001 00000005 001b")
    assert decode(Key.HEARTBEAT, 3, frame) == {"throttle_time": 5, "error_code": "rebalance_in_progress"}


def test_a_group_that_a_join_has_deleted_may_be_shown_until_the_next_record():
    gone = {"groups": [{"error_code": "group_id_not_found"}]}
    shown = {"groups": [{"error_code": "none"}]}
    found = Difference(3, s.DescribeConsumerGroup(), ".groups[].error_code", "none", "gone", (shown, gone))
    history = History()
    history.add(s.ConsumerHeartbeat(epoch="join"), {"error_code": "none"}, {"error_code": "none"})
    assert reason_of(found, history) is None
    history.add(s.JoinGroup(), {"error_code": "unknown_member_id"}, {"error_code": "unknown_member_id"})
    assert reason_of(found, history) is not None


def test_uniform_may_fail_only_where_a_leader_gave_out_what_is_not_there():
    failed, fine = {"error_code": "unknown_server_error"}, {"error_code": "none"}
    found = Difference(
        3, s.ConsumerHeartbeat(), ".error_code", "unknown_server_error", "none", (failed, fine)
    )
    history = History()
    history.add(s.SyncGroup(shares={"A": {"t3": (2,)}}), fine, fine)
    assert reason_of(found, history) is None
    history.add(s.SyncGroup(shares={"A": {"t3": (3,)}}), fine, fine)
    assert reason_of(found, history) is not None


def test_a_generation_may_be_repeated_only_if_its_round_was_lost():
    history = History()
    for step, generation in ((JOIN, 1), (s.SyncGroup(member="A"), 1), (s.Restart(), 1), (JOIN, 2)):
        found = Difference(4, JOIN, ".generation_id", 1, 2, (joined("k", 1), joined("o", 2)))
        assert reason_of(found, history) is None
        history.add(step, joined("k", generation), joined("o", generation))
    history.add(s.Restart(), {}, {})
    assert reason_of(found, history) is not None
    assert reason_of(found._replace(kafka=3), history) is None


@pytest.mark.parametrize(
    "begins", ["a member leaves", "a join without a response", "a heartbeat tells of it"]
)
def test_a_round_that_had_begun_before_the_restart_is_lost_too(begins):
    history = History()
    for step, generation in ((JOIN, 1), (s.SyncGroup(member="A"), 1)):
        history.add(step, joined("k", generation), joined("o", generation))
    if begins == "a member leaves":
        history.add(s.LeaveGroup(), {"error_code": "none"}, {"error_code": "none"})
    elif begins == "a join without a response":
        history.lose(s.Heartbeat())
        assert not history.has_lost_a_round
        history.lose(JOIN)
    else:
        history.add(s.Heartbeat(), *[{"error_code": "rebalance_in_progress"}] * 2)
    history.add(s.Restart(), {}, {})
    found = Difference(4, JOIN, ".generation_id", 2, 3, (joined("k", 2), joined("o", 3)))
    assert reason_of(found, history) is not None


def test_a_leader_has_a_reason_after_members_of_the_consumer_protocol():
    history = History()
    history.add(JOIN, joined("k1"), joined("o1"))
    found = difference(joined("k1", 2), joined("o3", 2))
    assert reason_of(found, history) is None
    history.add(s.ConsumerHeartbeat(epoch="join"), {"error_code": "none"}, {"error_code": "none"})
    assert reason_of(found, history) is not None
