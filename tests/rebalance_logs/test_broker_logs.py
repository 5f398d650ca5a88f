"""Logs of coordinators alone: old wording, and groups of the consumer protocol."""

import pytest

from rebalance_logs.triggers import Cause
from tests.places import DATA
from tests.rebalance_logs.test_round_trip import diagnosis

LOGS = DATA / "logs"


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
    assert [(r.setting, r.of) for r in first.remedies] == [("consumer.session.timeout.ms", "broker")]
