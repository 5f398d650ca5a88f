import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import LONGEST_MS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("250ms", 250),
        ("10s", 10_000),
        ("5m", 300_000),
        ("24h", 86_400_000),
        ("2d", 172_800_000),
        ("1.5s", 1_500),
        ("10 s", 10_000),
        ("1500", 1_500),
        (1_500, 1_500),
        (0, 0),
    ],
)
def test_a_duration_is_read_in_whole_milliseconds(written, ms):
    assert parse_duration(written, "at") == ms


@pytest.mark.parametrize(
    "written", ["", "s", "ten", "10 hours", "-5s", "1.0005s", 1.5, True, None, [], "9" * 40 + "s", "1e3s"]
)
def test_anything_else_is_an_error_that_names_the_place(written):
    with pytest.raises(InputError) as caught:
        parse_duration(written, "x.yaml: events[0].at")
    assert str(caught.value).startswith("x.yaml: events[0].at: found ")
    assert "expected a duration" in str(caught.value)


@pytest.mark.parametrize(("value", "least"), [(-1, 0), (0, 1), ("5ms", 6)])
def test_a_duration_below_the_least_says_what_the_least_is(value, least):
    with pytest.raises(InputError, match=f"expected a duration of at least {least}ms"):
        parse_duration(value, "for", at_least_ms=least)


@pytest.mark.parametrize(
    ("ms", "written"),
    [(0, "0ms"), (250, "250ms"), (10_000, "10s"), (90_000, "90s"), (120_000, "2m"), (86_400_000, "1d")],
)
def test_a_duration_is_written_in_the_largest_whole_unit(ms, written):
    assert format_duration(ms) == written
    assert parse_duration(written, "at") == ms


def test_the_longest_duration_is_ten_thousand_days():
    assert parse_duration("10000d", "at") == LONGEST_MS
    with pytest.raises(InputError, match="expected a duration of at most 10000d"):
        parse_duration(LONGEST_MS + 1, "at")


@pytest.mark.parametrize("value", [10**5_000, -(10**5_000)], ids=["a huge one", "a hugely negative one"])
def test_a_number_beyond_all_measure_is_refused_in_few_words(value):
    with pytest.raises(InputError, match="found a number of more than 60 digits"):
        parse_duration(value, "at")


@given(st.integers(0, LONGEST_MS))
def test_every_duration_is_written_so_that_it_is_read_back(ms):
    assert parse_duration(format_duration(ms), "at") == parse_duration(ms, "at") == ms


@given(st.integers(0, LONGEST_MS // 1_000 - 1), st.integers(0, 999))
def test_a_fraction_of_a_second_is_exact(seconds, ms):
    """No float comes between: 0.29 s are 290 ms, not 289."""
    assert parse_duration(f"{seconds}.{ms:03}s", "at") == seconds * 1_000 + ms
