"""Logs of coordinators alone: old wording, and groups of the consumer protocol."""

from datetime import UTC, datetime

import pytest

from rebalance_logs.findings import Cause
from tests.places import DATA
from tests.rebalance_logs.test_round_trip import diagnosis

LOGS = DATA / "logs"

IDS = {name: f"{name}-{number}aaaaaaa-1111-2222-3333-444444444444" for number, name in enumerate("abc")}


def written(tmp_path, *lines):
    """Write the log of a broker: seconds and messages, in which ``{a}`` is the id of the member ``a``."""
    path = tmp_path / "server.log"
    texts = [
        f"[2026-03-01 10:{int(at // 60):02}:{at % 60:06.3f}] INFO [GroupCoordinator 3]: {text.format(**IDS)}"
        for at, text in lines
    ]
    path.write_text("".join(line.replace(".", ",", 1) + "\n" for line in texts))
    return tmp_path


PREPARING = "Preparing to rebalance group pay in state PreparingRebalance with old generation {} (reason: {})"


def round_of(old, reason, began, joined):
    """Return the lines of a round of the group."""
    number = old + 1
    return [
        (began, PREPARING.format(old, reason)),
        (joined, f"Stabilized group pay generation {number} with 2 members"),
        (joined + 0.05, f"Assignment received from leader {{a}} for group pay for generation {number}."),
    ]


def adding(name):
    return f"Adding new member {{{name}}} with group instance id null; client reason: not provided"


def joins(name):
    return (
        f"Pending dynamic member with id {{{name}}} joins group pay in Stable state. Adding to the group now."
    )


FAILED = "Member {{{}}} in group pay has failed, removing it from the group"
START = round_of(0, adding("a"), 0, 3.0)


def lengths(found):
    return [(each.generation, each.until_ms - each.began_ms) for each in found.group.rounds]


def test_old_brokers_give_rounds_and_reasons_and_no_stopped_time():
    old = diagnosis(LOGS / "broker-old")
    assert lengths(old) == [(1, 3_050), (2, 5_050), (3, 2_099)]
    assert [(each.cause, each.members, each.generations) for each in old.causes] == [
        (Cause.MEMBER_JOINED, ["c-2"], [2]),
        (Cause.MEMBER_LEFT, ["c-2"], [3]),
        (Cause.SESSION_EXPIRED, ["c-1"], []),
        (Cause.MEMBER_JOINED, ["c-1"], [1]),
        (Cause.INITIAL_DELAY, [], [1]),
    ]
    assert {each.stopped_ms for each in old.causes} == {None}


def test_epochs_of_the_consumer_protocol_are_rounds_with_owners():
    new = diagnosis(LOGS / "broker-consumer")
    assert new.group.is_consumer_protocol
    assert lengths(new) == [(1, 2), (2, 4_002), (3, 2_103)]
    first, second, _ = new.causes
    assert (first.cause, first.generations) == (Cause.SESSION_EXPIRED, [3])
    assert (second.cause, second.generations) == (Cause.MEMBER_JOINED, [2])
    # two partitions, from half an interval after the last heartbeat, 45 s before the expiry, to the take-over
    assert first.stopped_ms == pytest.approx(2 * (45_000 - 1_500 + 2_104), abs=10)
    assert second.stopped_ms == pytest.approx(8_000, abs=10)
    assert first.remedies == []  # brokers accept no session of this protocol that is shorter


def test_the_wait_for_more_members_of_an_empty_group_is_its_initial_delay(tmp_path):
    first = [(0.0, joins("a")), *START, (1.2, joins("b"))]
    found = diagnosis(written(tmp_path, *sorted(first)))
    (delay,) = [each for each in found.causes if each.cause is Cause.INITIAL_DELAY]
    assert (delay.members, delay.generations, delay.stopped_ms) == ([], [1], None)
    assert [(r.setting, r.of, r.value) for r in delay.remedies] == [
        ("group.initial.rebalance.delay.ms", "broker", "1500")
    ]


def test_a_round_that_waits_for_a_batch_has_no_initial_delay(tmp_path):
    second = round_of(7, adding("b"), 60, 65)  # nobody says that the group was empty
    assert Cause.INITIAL_DELAY not in {
        each.cause for each in diagnosis(written(tmp_path, *second, (60, joins("b")))).causes
    }


@pytest.mark.parametrize(
    ("session", "ends"),
    [(45, Cause.NO_HEARTBEAT), (10, Cause.NO_HEARTBEAT), (27, Cause.SESSION_EXPIRED)],
)
def test_a_member_that_fails_a_session_after_its_join_never_sent_a_heartbeat(session, ends, tmp_path):
    new = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    failed = 62.05 + session + 0.2
    removed = round_of(2, "removing member {b} on heartbeat expiration", failed, failed + 1)
    found = diagnosis(
        written(tmp_path, (0.0, joins("a")), *START, *new, (failed, FAILED.format("b")), *removed)
    )
    assert [each.cause for each in found.causes if 3 in each.generations] == [ends]
    assert {tuple(each.members) for each in found.causes if each.cause is ends} == {("b",)}


def test_a_member_that_was_in_two_rounds_has_sent_heartbeats(tmp_path):
    new = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    third = [(80.0, joins("c")), *round_of(2, adding("c"), 80.001, 82)]
    failed = 62.05 + 45.2
    removed = round_of(3, "removing member {b} on heartbeat expiration", failed, failed + 1)
    lines = [(0.0, joins("a")), *START, *new, *third, (failed, FAILED.format("b")), *removed]
    found = diagnosis(written(tmp_path, *lines))
    assert [each.cause for each in found.causes if 4 in each.generations] == [Cause.SESSION_EXPIRED]


def test_a_round_that_waits_for_a_member_that_never_came_back_with_its_id_says_so(tmp_path):
    expired = "Pending member {c} in group pay has been removed after session timeout expiration."
    second = round_of(1, adding("b"), 60.001, 105)
    found = diagnosis(
        written(
            tmp_path,
            (0.0, joins("a")),
            *START,
            (60.0, joins("b")),
            second[0],
            (104.999, expired),
            *second[1:],
        )
    )
    (silent,) = [each for each in found.causes if each.cause is Cause.NO_HEARTBEAT]
    assert (silent.members, silent.generations) == (["c"], [2])
    assert [[(wait.member, wait.why) for wait in this.waits] for this in found.group.rounds] == [
        [],
        [("c", "session")],
    ]


LEFT = "Member {{b}} has left group pay through explicit LeaveGroup; client reason: {}"
EXCEEDED = "consumer poll timeout has expired."


@pytest.mark.parametrize(
    ("reason", "cause"),
    [(EXCEEDED, Cause.POLL_INTERVAL), ("the consumer is being closed", Cause.MEMBER_LEFT)],
    ids=["max.poll.interval.ms", "closed"],
)
@pytest.mark.parametrize("said", ["line", "reason", "both", "without a round"])
def test_a_leave_for_max_poll_interval_is_no_other_leave(said, reason, cause, tmp_path):
    left = (100.0, LEFT.format(reason))
    third = round_of(2, f"Removing member {{b}} on LeaveGroup; client reason: {reason}", 100.001, 102)
    lines = {
        "line": [left, (100.001, PREPARING.format(2, "not given")), *third[1:]],
        "reason": third,
        "both": [left, *third],
        "without a round": [left],
    }[said]
    start = [(0.0, joins("a")), *START, (60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    found = diagnosis(written(tmp_path, *start, *lines))
    assert [each.members for each in found.causes if each.cause is cause] == [["b"]]
    assert not {Cause.POLL_INTERVAL, Cause.MEMBER_LEFT} - {cause} & {each.cause for each in found.causes}


@pytest.mark.parametrize(("second", "told"), [(False, False), (True, True)], ids=["of all", "of one"])
def test_the_leave_of_all_members_at_the_end_is_no_cause(second, told, tmp_path):
    new = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)] if second else []
    left = LEFT.replace("{{b}}", "{{a}}").format("the consumer is being closed")
    found = diagnosis(written(tmp_path, (0.0, joins("a")), *START, *new, (100.0, left)))
    assert (Cause.MEMBER_LEFT in {each.cause for each in found.causes}) == told


def test_who_joined_and_never_asked_for_its_assignment_is_named(tmp_path):
    new = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    third = round_of(2, "Removing [{b}] on pending sync request expiration", 107, 108)
    found = diagnosis(written(tmp_path, (0.0, joins("a")), *START, *new, *third))
    (never,) = [each for each in found.causes if each.cause is Cause.NEVER_SYNCED]
    assert (never.members, never.generations) == (["b"], [3])


def test_a_group_that_was_deleted_counts_its_generations_anew(tmp_path):
    second = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    anew = [(300.0, joins("c")), *round_of(0, adding("c"), 300.001, 303), *round_of(1, adding("c"), 400, 403)]
    found = diagnosis(written(tmp_path, (0.0, joins("a")), *START, *second, *anew))
    assert [this.generation for this in found.group.rounds] == [1, 2, 1, 2]


@pytest.mark.parametrize("removed", [True, False], ids=["one after another", "together"])
def test_members_with_one_client_id_are_told_apart_if_they_are_there_together(removed, tmp_path):
    """A client id without a log may be that of a process and of the one that replaced it."""
    other = IDS["b"].replace("b-", "a-")
    new = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    ended = [(55.0, FAILED.format("a"))] if removed else []
    lines = [(0.0, joins("a")), *START, *ended, *new, (400.0, joins("c"))]
    with_one_id = [(at, text.replace("{b}", other)) for at, text in lines]
    found = diagnosis(written(tmp_path, *with_one_id))
    assert set(found.group.members) == ({"a", "c"} if removed else {"a-0aaaaaaa", "a-1aaaaaaa", "c"})


BROD = "'app@host-{}'/<0.474.0>-{}aaaaaaa-1111-2222-3333-444444444444"
"""The member ids of Erlang's clients begin with a part in quotes."""


@pytest.mark.parametrize("removed", ["removed", "remove"], ids=["new wording", "old wording"])
@pytest.mark.parametrize(
    "ids", [IDS, {"a": BROD.format(1, 0), "b": BROD.format(2, 1), "c": BROD.format(3, 2)}]
)
def test_who_does_not_join_until_the_rebalance_timeout_is_removed_as_too_slow(ids, removed, tmp_path):
    new = [(60.0, joins("b")), *round_of(1, adding("b"), 60.001, 62)]
    third = [(80.0, joins("c")), *round_of(2, adding("c"), 80.001, 140)]
    left = (139.999, f"Group pay {removed} dynamic members who haven't joined: Set({{b}})")
    lines = [(0.0, joins("a")), *START, *new, *third[:2], left, *third[2:]]
    found = diagnosis(written(tmp_path, *((at, text.format(**ids)) for at, text in lines)))
    assert list(found.group.rounds[-1].members.values()) == [ids["a"], ids["c"]]
    (slow,) = [each for each in found.causes if each.cause is Cause.SLOW_BATCH]
    assert (slow.members, slow.generations) == ([ids["b"][:-37]], [3])


def test_a_member_without_a_line_of_its_own_is_in_the_round_that_adds_it(tmp_path):
    """Brokers of old versions log no line for a JoinGroup."""
    second, third = round_of(1, adding("b"), 60, 62), round_of(2, adding("c"), 80, 82)
    found = diagnosis(written(tmp_path, *START, *second, *third))
    assert [sorted(this.members) for this in found.group.rounds] == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_a_client_that_left_for_max_poll_interval_says_why_though_its_broker_does_not(tmp_path):
    second = round_of(1, adding("b"), 60, 62)
    left = (
        100.0,
        "Member[group.instance.id None, member.id {b}] in group pay has left, removing it from the group",
    )
    third = round_of(2, "removing member {b} on LeaveGroup", 99.999, 102)
    written(tmp_path, *START, *second, *sorted([left, *third]))
    at_s = datetime(2026, 3, 1, 10, 1, 39, 990_000, UTC).timestamp()
    (tmp_path / "b.log").write_text(
        f"%4|{at_s:.3f}|MAXPOLL|b#consumer-1| [thrd:main]: Application maximum poll interval (300000ms)"
        " exceeded by 55ms (adjust max.poll.interval.ms for long-running message processing): leaving group\n"
    )
    found = diagnosis(tmp_path)
    assert [each.members for each in found.causes if each.cause is Cause.POLL_INTERVAL] == [["b"]]
    assert Cause.MEMBER_LEFT not in {each.cause for each in found.causes}
