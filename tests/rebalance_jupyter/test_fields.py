"""A field for a number: what it reads, what it refuses, and what it keeps."""

from functools import partial

import pytest

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import whole
from rebalance_jupyter.fields import NumberField


@pytest.fixture
def field():
    made = NumberField("members", partial(whole, low=1, high=10_000))
    made.value = 3
    return made


def typed(field, text):
    """Type a text; what the field's value changes to."""
    seen = []
    field.observe(lambda change: seen.append(change.new), "value")
    field.text.value = text
    return seen


@pytest.mark.parametrize(("text", "value"), [("5", 5), (" 1,000 ", 1_000), ("1e3", 1_000), ("7.0", 7)])
def test_a_number_that_can_be_read_is_the_value(field, text, value):
    assert typed(field, text) == [value]
    assert (field.value, field.error.value) == (value, "")


@pytest.mark.parametrize("text", ["2.5", "1e9", "0", "-1", "many", "", "2,5"])
def test_a_text_that_cannot_be_read_changes_nothing_and_is_refused_beside_the_field(field, text):
    assert typed(field, text) == []
    assert (field.value, field.text.value) == (3, text)
    assert 'role="alert"' in field.error.value
    assert field.error.value.endswith("it is still 3</span>")


def test_a_number_after_a_refused_text_takes_the_error_away(field):
    typed(field, "2.5")
    assert typed(field, "3") == []
    assert field.error.value == ""
    assert typed(field, "4") == [4]


def test_a_value_that_is_set_is_shown_and_checked(field):
    typed(field, "2.5")
    field.value = 12_000 - 2_000
    assert (field.text.value, field.error.value) == ("10000", "")
    with pytest.raises(InputError, match="expected a whole number from 1 to 10,000"):
        field.value = 2.5
    assert field.value == 10_000
