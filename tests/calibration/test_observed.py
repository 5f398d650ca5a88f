"""The figures of a run, from the lines of its members."""

import pytest

from coordinator_core import default_registry
from tests.calibration.actions import Action, actions_of
from tests.calibration.figures import Figures, figures
from tests.calibration.lines import Observed
from tests.calibration.member import Record, runs_of
from tests.calibration.observed import trace_of

JOINED = [
    Action(0.0, "start", "a", "go"),
    Action(0.0, "start", "b", "go"),
    Action(10.0, "join", "c", "go"),
]


def batches(*polls, partition=0, seconds=1.0):
    """Return the lines of batches that follow each other, each of ten records."""
    lines = []
    for number, at in enumerate(polls):
        lines.append((at, "polled", [[[partition, number * 10, 10]], seconds]))
        lines.append((at + seconds, "handled", []))
    return lines


def lines(*given):
    """Return lines in order of time."""
    return sorted((line for part in given for line in part), key=lambda line: line[0])


def at(seconds, event, *values):
    return [(seconds, event, list(values))]


def of(observed):
    return figures(trace_of(observed, "test", "range"), default_registry())


def running(partition):
    """Return the lines of a member that works on two partitions from the start, in batches of a second."""
    owned = [partition, partition + 1]
    return lines(at(0.1, "started"), at(1.0, "assigned", owned), batches(*range(1, 20), partition=partition))


def observed(**members):
    states = [(0.9, "Stable"), (10.1, "PreparingRebalance"), (13.0, "Stable")]
    return Observed(20.0, {"t": 4}, {"a": running(0), "b": running(2)} | members, JOINED, states)


def eager(partition, until, since):
    """Return the lines of a member that gives everything up at a time, and works again at a later one."""
    owned = [partition, partition + 1]
    return lines(
        at(0.1, "started"),
        at(1.0, "assigned", owned),
        batches(*range(1, until), partition=partition),
        at(until + 0.001, "revoked", owned),
        at(since - 0.01, "assigned", owned),
        [(t, event, values) for t, event, values in batches(*range(since, 20), partition=partition)],
    )


def test_nothing_is_stopped_while_batches_follow_each_other():
    found = of(observed())
    assert found == Figures(0.0, 0, 0.0, 3.0, 0.0)


def test_an_eager_member_stops_its_partitions_from_its_poll_to_the_first_batch_after_the_round():
    found = of(observed(a=eager(0, 11, 13)))
    assert found.stopped_seconds == pytest.approx(2 * 2.0, abs=0.01)
    assert found.stopped_partitions == 2
    assert found.longest_stop_seconds == pytest.approx(2.0, abs=0.01)


def test_a_member_that_gets_no_records_in_a_round_stops_without_a_call_of_the_listener():
    silent = lines(
        at(0.1, "started"),
        at(1.0, "assigned", [0, 1]),
        batches(*range(1, 11)),
        batches(*range(13, 20)),
    )
    found = of(observed(a=silent))
    assert found.stopped_seconds == pytest.approx(2 * 2.0)
    assert found.stopped_partitions == 2


def test_a_short_time_between_two_batches_is_no_stop():
    late = lines(at(0.1, "started"), at(1.0, "assigned", [0, 1]), batches(*[1 + 1.04 * n for n in range(19)]))
    assert of(observed(a=late)).stopped_seconds == 0


def test_a_partition_is_worked_on_if_its_owner_handles_records_of_another():
    moved = lines(at(10.0, "started"), at(12.0, "assigned", [1]), batches(*range(12, 20), partition=1))
    kept = [line for line in running(0) if line[0] < 11]
    kept += lines(at(11.0, "revoked", [1]), batches(*range(11, 20)))
    found = of(observed(a=kept, c=moved))
    assert found.stopped_seconds == pytest.approx(1.0)
    assert found.stopped_partitions == 1


@pytest.mark.parametrize("event", ["revoked", "lost"])
def test_a_callback_in_the_background_does_not_stop_what_is_kept(event):
    background = sorted(
        [*running(0), *at(11.5, event, [0, 1]), *at(11.6, "assigned", [0, 1])], key=lambda line: line[0]
    )
    found = of(observed(a=background))
    assert found.longest_stop_seconds == pytest.approx(0.1)
    assert found.stopped_seconds == pytest.approx(0.2)


def test_the_partitions_of_a_killed_member_are_stopped_until_others_work_on_them():
    killed = [line for line in running(0) if line[0] <= 10.5]
    others = lines(running(2), at(13.0, "assigned", [0, 1]))
    run = observed(a=killed, b=others)
    run.actions = [*JOINED[:2], Action(10.5, "crash", "a", "kill")]
    found = of(run)
    assert found.stopped_seconds == pytest.approx(2 * 2.5)
    assert found.longest_stop_seconds == pytest.approx(2.5)


def test_a_frozen_member_does_not_work():
    run = observed()
    run.actions = [*JOINED[:2], Action(10.25, "freeze", "a", "freeze"), Action(12.25, "thaw", "a", "thaw")]
    assert of(run).stopped_seconds == pytest.approx(2 * 2.0)


def test_records_that_two_members_handled_are_duplicates():
    again = lines(
        at(10.0, "started"),
        at(12.0, "assigned", [0]),
        [(12.0, "polled", [[[0, 85, 20]], 1.0])],
        at(13.0, "handled"),
    )
    kept = [line for line in running(0) if line[0] < 10.5]
    run = observed(a=kept, c=again)
    assert of(run).duplicates == 105 - 85 - 5
    run.actions = [*JOINED, Action(10.5, "crash", "a", "kill")]
    assert of(run).duplicates == 100 - 85 - 5


def test_runs_of_records():
    records = [Record(0, 5), Record(0, 6), Record(1, 0), Record(0, 7), Record(0, 9)]
    assert runs_of(records) == [(0, 5, 2), (1, 0, 1), (0, 7, 1), (0, 9, 1)]


def test_actions_of_a_rolling_restart():
    document = {
        "members": [{"id": "c", "count": 2}],
        "events": [{"at": "8s", "rolling_restart": {"every": "6s", "down": "2s"}}],
    }
    assert [(action.at, action.member, action.do) for action in actions_of(document)] == [
        (0.0, "c-0", "go"),
        (0.0, "c-1", "go"),
        (8.0, "c-0", "close"),
        (10.0, "c-0", "go"),
        (14.0, "c-1", "close"),
        (16.0, "c-1", "go"),
    ]
