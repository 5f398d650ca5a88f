"""Traces of ``watch`` in ``diagnose``: alone, and beside logs."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rebalance_kafka.watching import Watch
from rebalance_logs.causes import diagnose
from rebalance_logs.findings import Cause, Confidence
from rebalance_logs.reading import read_logs
from rebalance_logs.report import not_shown
from rebalance_logs.unlogged import OTHERS
from tests.places import DATA
from tests.rebalance_kafka.test_watching import group

KILLED = DATA / "logs" / "java-killed"
BEGAN_MS = 1_795_000_000_000


def watched(path, *looks, began_ms=BEGAN_MS, group_id="g", strategy="range"):
    """Write the trace of a look every second; None is a second without one."""
    watch = Watch(group_id)
    for number, look in enumerate(looks):
        if look is not None:
            watch.see(replace(look, strategy=strategy), {}, now_ms=began_ms + 1_000 * number)
    path.write_bytes(watch.trace().encode())
    return path


REST = group("Stable", a=(1, [0]), b=(1, [1]))
ROUND = group("PreparingRebalance", a=(1, []), b=(1, []))
GONE = group("Stable", a=(1, [0, 1]))


def test_a_member_that_is_gone_ended_in_a_way_that_no_look_shows(tmp_path):
    (found,) = diagnose(watched(tmp_path / "g.jsonl", REST, REST, ROUND, ROUND, GONE))
    (cause,) = found.causes
    assert (cause.cause, cause.members, cause.confidence) == (Cause.SESSION_EXPIRED, ["b"], Confidence.LOW)
    (this,) = found.group.rounds  # the state in which the group was found is none
    assert (this.began_ms, this.until_ms) == (BEGAN_MS + 2_000, BEGAN_MS + 4_000)
    assert found.stopped_ms == 2 * 2_000
    assert any(text.startswith("how members ended") for text in not_shown(found))


def test_an_empty_group_that_is_watched_starts_with_a_round(tmp_path):
    (found,) = diagnose(watched(tmp_path / "g.jsonl", group("Empty"), ROUND, REST))
    assert [this.was_empty for this in found.group.rounds] == [True]
    assert [(cause.cause, cause.is_start) for cause in found.causes] == [(Cause.MEMBER_JOINED, True)]


@pytest.mark.parametrize("strategy", ["range", "uniform+reconcile"])
def test_members_with_other_ids_one_after_another_are_a_rolling_restart(tmp_path, strategy):
    looks = [
        REST,
        *[None] * 19,
        group("Stable", a=(2, [0]), b=(1, [1])),
        *[None] * 19,
        group("Stable", a=(2, [0]), b=(2, [1])),
    ]
    (found,) = diagnose(watched(tmp_path / "g.jsonl", *looks, strategy=strategy))
    assert [(cause.cause, cause.members) for cause in found.causes] == [(Cause.ROLLING_RESTART, ["a", "b"])]
    assert found.group.is_consumer_protocol == ("reconcile" in strategy)


def test_members_of_the_consumer_protocol_keep_what_they_do_not_give_up(tmp_path):
    path = watched(tmp_path / "g.jsonl", REST, ROUND, ROUND, GONE, strategy="uniform+reconcile")
    (found,) = diagnose(path)
    assert [stop.owner for stop in found.stops] == ["b"]


IDS = {
    "c-0": "4a597f5f-a812-499f-ad63-b81e724a92aa",
    "c-1": "4fb734a9-8e69-424b-911e-60c26ccdfc6f",
    "c-2": "3267414b-31d0-4727-95df-be5e9490bb4d",
}
"""What follows the client in the member ids of those logs."""


def shares(**numbers):
    return group("Stable", **{name: (IDS[name], owned) for name, owned in numbers.items()})


def test_beside_the_log_of_one_member_it_shows_the_others(tmp_path):
    path = watched(
        tmp_path / "payments.jsonl",
        shares(**{"c-0": [0], "c-1": [1, 2], "c-2": [3]}),  # `watch` counts one generation more
        *[shares(**{"c-0": [0, 1], "c-1": [2], "c-2": [3]})] * 11,
        shares(**{"c-0": [0, 1], "c-2": [2, 3]}),
        began_ms=round(datetime(2026, 11, 23, 21, 23, 26, tzinfo=UTC).timestamp() * 1_000),
        group_id="payments",
        strategy="cooperative-sticky",
    )
    (alone,) = diagnose(KILLED / "c-2.log")
    (both,) = diagnose(KILLED / "c-2.log", path)
    assert OTHERS in clients(alone)
    assert clients(both) == {"c-0", "c-1", "c-2"}
    assert [this.generation for this in both.group.rounds] == [this.generation for this in alone.group.rounds]
    (cause,) = [each for each in both.causes if not each.is_start]
    assert (cause.cause, cause.members) == (Cause.SESSION_EXPIRED, ["c-1"])


def clients(diagnosis):
    return {event.event.client for event in diagnosis.trace.events if hasattr(event.event, "client")}


def test_a_trace_that_is_cut_off_tells_of_what_is_there(tmp_path):
    path = watched(tmp_path / "g.jsonl", REST, ROUND, GONE)
    path.write_bytes(path.read_bytes()[:-30])
    (found,) = diagnose(path)
    assert len(found.group.rounds) == 1
    assert read_logs([str(path)]).files[0].problem == ""


def test_a_trace_of_a_run_has_no_time_of_day(tmp_path, lab):
    path = watched(tmp_path / "g.jsonl", REST, ROUND, GONE)
    path.write_bytes(path.read_bytes().replace(b',"since_1970_ms":%d' % BEGAN_MS, b""))
    answer = lab("diagnose", path)
    assert answer.status == 1
    assert "a trace: found no time of day, expected one of `watch`" in answer.err


def test_a_line_that_is_no_event_is_named(tmp_path, lab):
    path = watched(tmp_path / "g.jsonl", REST, ROUND, GONE)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{}\n", *lines[4:]]))
    answer = lab("diagnose", path)
    assert f"{path}: line 5: found" in answer.err
