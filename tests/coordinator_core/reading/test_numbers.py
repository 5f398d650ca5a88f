"""Numbers in text: read as they are written, or refused."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.reading.numbers import parse_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        (" 12 ", 12),
        ("1,000", 1_000),
        ("12,345,678.5", 12_345_678.5),
        ("2.5", 2.5),
        ("2.50", 2.5),
        ("1e9", 1_000_000_000),
        ("2.5E3", 2_500),
        ("1e-2", 0.01),
        ("-3", -3),
        ("+3", 3),
    ],
)
def test_a_number_is_what_is_written(text, number):
    read = parse_number(text, "rate")
    assert (read, type(read)) == (number, type(number))


@pytest.mark.parametrize(
    "text", ["", "2,5", "1,00", "1.2.3", "1e", "e3", "1 000", "0x10", "inf", "nan", "3 m", "1e999"]
)
def test_what_is_no_number_is_refused(text):
    with pytest.raises(InputError) as caught:
        parse_number(text, "rate")
    assert str(caught.value) == f"rate: found {text!r}, expected a number such as 1000, 2.5 or 1e3"
