"""Suggestions for names that are not known."""

import pytest

from coordinator_core.reading.suggestions import close_to, one_of, unknown_name


def test_a_known_name_that_is_close_is_suggested():
    assert close_to("rat", ["rate", "rack"]) == " (did you mean 'rate'?)"
    assert close_to("something else", ["rate", "rack"]) == ""


def test_the_suggestion_does_not_depend_on_the_order_of_the_names():
    assert close_to("ab", ["abd", "abc"]) == close_to("ab", ["abc", "abd"])


def test_a_very_long_name_is_compared_by_its_beginning():
    assert close_to("x" * 100_000, ["rate"]) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rat", "one of rate, lag (did you mean 'rate'?)"), ("none", "one of rate, lag")],
)
def test_the_expectation_lists_the_known_names_in_their_order(name, expected):
    assert one_of(name, iter(["rate", "lag"])) == expected


def test_a_suggestion_stands_in_place_of_more_than_a_dozen_names():
    names = [f"setting-{letter}" for letter in "abcdefghijkl"]
    listed = ", ".join(names)
    assert one_of("setting-", names) == f"one of {listed} (did you mean 'setting-l'?)"
    assert one_of("setting-", [*names, "other"]) == "one of 13 names (did you mean 'setting-l'?)"
    assert one_of("none", [*names, "other"]) == f"one of {listed}, other"


def test_an_unknown_name_is_an_error_with_the_known_names_sorted():
    error = unknown_name("option", "lga", ["rate", "lag"])
    assert str(error) == "option: found 'lga', expected one of lag, rate (did you mean 'lag'?)"
