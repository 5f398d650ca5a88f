"""What members report: bytes that say what went in, damage that says nothing, and means that fade."""

import struct
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assigning.limits import within
from coordinator_core.model import TopicPartition
from coordinator_core.registry.providers.report import (
    HALF_LIFE_SECONDS,
    Estimate,
    Report,
    decode_report,
    encode_report,
)

amounts = st.floats(0, 2.0**100, width=32)
estimates = st.builds(Estimate, amounts, amounts, amounts)
partitions = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1))
capacities = st.none() | st.floats(1e-3, 1e12)
reports = st.builds(Report, capacities, st.dictionaries(partitions, estimates, max_size=6))

SAID = Report(
    2_000.0, {TopicPartition("t", 1): Estimate(10, 20, 30), TopicPartition("ü", 0): Estimate(1, 2, 3)}
)


@given(reports)
def test_a_report_says_what_went_in(report):
    assert decode_report(encode_report(report)) == report


@given(reports)
def test_equal_reports_give_equal_bytes_in_whatever_order_they_were_made(report):
    """C-21: a JoinGroup that says the same is no news."""
    turned = Report(report.capacity, dict(reversed(report.estimates.items())))
    assert encode_report(turned) == encode_report(report)


def test_the_bytes_are_those_that_the_format_says():
    expected = struct.pack(">di", 2_000.0, 2)
    expected += struct.pack(">h1si", 1, b"t", 1) + struct.pack(">ifff", 1, 10, 20, 30)
    expected += struct.pack(">h2si", 2, "ü".encode(), 1) + struct.pack(">ifff", 0, 1, 2, 3)
    assert encode_report(SAID) == expected


@pytest.mark.parametrize("length", range(len(encode_report(SAID))))
def test_a_report_that_is_cut_short_says_nothing(length):
    assert decode_report(encode_report(SAID)[:length]) is None


def test_a_report_with_something_behind_it_says_nothing():
    assert decode_report(encode_report(SAID) + b"\0") is None


def is_sound(report):
    named = all(isfinite(a) and a >= 0 for e in report.estimates.values() for a in e)
    return named and (report.capacity is None or 0 < report.capacity < inf)


@given(reports, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=5))
def test_damage_says_nothing_or_at_least_amounts(report, changes):
    data = bytearray(encode_report(report))
    for at, byte in changes:
        data[at % len(data)] = byte
    decoded = decode_report(bytes(data))
    assert decoded is None or is_sound(decoded)


@given(st.binary(max_size=80))
def test_any_bytes_may_come(data):
    decoded = decode_report(data)
    assert decoded is None or is_sound(decoded)


def head(topics, capacity=nan):
    return struct.pack(">di", capacity, topics)


def topic(*entries, name=b"t", length=None, count=None):
    said = struct.pack(">h", len(name) if length is None else length) + name
    said += struct.pack(">i", len(entries) if count is None else count)
    return said + b"".join(struct.pack(">ifff", *entry) for entry in entries)


GOOD = (0, 1.0, 1.0, 1.0)

DAMAGED = {
    "a negative partition": head(1) + topic((-1, 1, 1, 1)),
    "no seconds": head(1) + topic((0, nan, 1, 1)),
    "negative seconds": head(1) + topic((0, -1, 1, 1)),
    "an endless rate": head(1) + topic((0, 1, inf, 1)),
    "a negative lag": head(1) + topic((0, 1, 1, -1)),
    "a name that is not UTF-8": head(1) + topic(GOOD, name=b"\xff"),
    "a name that is longer than the rest": head(1) + topic(GOOD, length=30_000),
    "a name of less than nothing": head(1) + topic(GOOD, length=-1),
    "more partitions than there are": head(1) + topic(GOOD, count=2**31 - 1),
    "fewer partitions than none": head(1) + topic(GOOD, count=-1),
    "topics without end, each of which goes back to the first": (
        head(2**31 - 1) + topic(GOOD, name=b"x" * 10, count=-1)
    ),
    "a capacity of nothing": head(0, capacity=0.0),
    "a negative capacity": head(0, capacity=-5.0),
    "a capacity without end": head(0, capacity=inf),
    "a capacity whose square may not be finite": head(0, capacity=1e100),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_report_says_nothing(data):
    assert within(30, lambda: decode_report(data)) is None


def test_the_examples_of_damage_begin_with_something_sound():
    sound = decode_report(head(1) + topic(GOOD))
    assert sound == Report(None, {TopicPartition("t", 0): Estimate(1, 1, 1)})
    assert decode_report(head(0)) == Report(None, {})


# --- means that fade

seconds = st.floats(1e-3, 1e6)


@given(estimates, seconds, amounts, amounts)
def test_a_mean_lies_between_what_it_was_and_what_was_measured(before, for_seconds, rate, lag):
    after = before.with_measured(for_seconds, rate, lag)
    low, high = sorted((before.rate, rate))
    assert low * (1 - 1e-9) <= after.rate <= high * (1 + 1e-9)
    assert after.lag == lag
    assert after.seconds == pytest.approx(before.aged(for_seconds).seconds + for_seconds)


@given(amounts, st.lists(seconds, min_size=1, max_size=5))
def test_a_rate_that_stays_is_measured_as_it_is(rate, windows):
    measured = Estimate(0.0, 0.0, 0.0)
    for each in windows:
        measured = measured.with_measured(each, rate, 0.0)
    assert measured.rate == pytest.approx(rate)


def test_two_windows_count_by_their_lengths():
    """Ten seconds of 30 records/s and thirty of 10, all but fresh: 15 records/s."""
    measured = Estimate(0, 0, 0).with_measured(10, 30, 1).with_measured(30, 10, 2)
    assert measured.rate == pytest.approx(15, rel=0.01)
    assert measured.rate < 15  # the older one counts a little less
    assert measured.seconds == pytest.approx(40, rel=0.01)


@given(estimates, st.floats(-1e3, 0))
def test_a_window_of_no_time_has_no_rate_but_a_lag(before, no_time):
    assert before.with_measured(no_time, 5.0, 7.0) == before._replace(lag=7.0)


@given(estimates, seconds, seconds)
def test_growing_old_in_two_steps_is_growing_old(before, one, two):
    assert before.aged(one).aged(two).seconds == pytest.approx(before.aged(one + two).seconds)


def test_after_an_hour_an_estimate_rests_on_half_and_says_the_same():
    old = Estimate(600.0, 20.0, 3.0).aged(HALF_LIFE_SECONDS)
    assert old == Estimate(300.0, 20.0, 3.0)
