"""The checks that documents are read with: each names the place, what was found and what was expected."""

import datetime as dt
import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from tests.approved import approved

AT = "x.yaml: here"


def error_of(check, *arguments, **options):
    with pytest.raises(InputError) as caught:
        check(*arguments, **options)
    return caught.value.where, caught.value.found, caught.value.expected


@pytest.mark.parametrize(
    ("where", "key", "place"),
    [
        ("x.yaml: ", "events", "x.yaml: events"),
        ("x.yaml: events", 3, "x.yaml: events[3]"),
        ("x.yaml: events[3]", "leave", "x.yaml: events[3].leave"),
        ("x.yaml: topics", "a.b", "x.yaml: topics.a.b"),
    ],
)
def test_a_place_is_the_path_to_it(where, key, place):
    assert doc.inside(where, key) == place


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "nothing"),
        ({}, "an empty mapping"),
        ({"a": 1, "b": 2}, "a mapping of 2 keys"),
        ([], "an empty list"),
        ([1, 2, 3], "a list of 3"),
        ((1,), "a list of 1"),
        ("text", "'text'"),
        ("line\nbreak", r"'line\nbreak'"),
        ("x" * 60, repr("x" * 60)),
        ("x" * 61, repr("x" * 60 + "...")),
        (7, "7"),
        (-1.5, "-1.5"),
        (True, "True"),
        (10**59, str(10**59)),
        (10**60, "a number of more than 60 digits"),
        (-(10**4_000), "a number of more than 60 digits"),
        (math.nan, "nan"),
        (dt.date(2024, 1, 1), "a date"),
    ],
)
def test_a_value_is_described_in_a_few_words(value, shown):
    assert doc.describe(value) == shown


def test_the_root_of_a_document_is_named_without_the_colon():
    assert error_of(doc.mapping, 3, "x.yaml: ") == ("x.yaml", "3", "a mapping")


def test_a_mapping_is_given_back_as_it_is():
    given_mapping = {"b": 1, "a": None}
    assert doc.mapping(given_mapping, AT) is given_mapping
    assert doc.mapping(given_mapping, AT, ["a", "b", "c"]) is given_mapping
    assert doc.mapping({}, AT, ["a"]) == {}


REFUSED = {
    "mapping": (
        lambda value: doc.mapping(value, AT, ("id", "topics")),
        [None, [], "a", 3, [("a", 1)], {1: 1}, {None: 1}, {True: 1}, {1.5: 1}, {"": 1}, {"topcis": 2}],
    ),
    "required": (lambda value: doc.required(value, "id", AT, "an id"), [{}, {"id": None}]),
    "sequence": (lambda value: doc.sequence(value, AT, "members"), [None, (1, 2), "ab", {"a": 1}, 3]),
    "text": (
        lambda value: doc.text(value, AT, "an id"),
        [None, "", "  \n", 3, ["a"], True, "x" * 250, "x" * 1_250],
    ),
    "whole": (
        lambda value: doc.whole(value, AT, low=1, high=10_000),
        [0, 10_001, -1, 1.0, "7", None, True, math.nan, 10**400],
    ),
    "number": (
        lambda value: doc.number(value, AT),
        [-1, -1e-9, math.nan, math.inf, -math.inf, 10**400, "3", None, True, []],
    ),
    "number above zero": (lambda value: doc.number(value, AT, positive=True), [0.0]),
    "number below 1": (lambda value: doc.number(value, AT, below=1.0), [1]),
}


def test_values_that_are_refused_are_told_with_place_and_expectation():
    told = {
        name: "\n".join(str(refusal_of(lambda: check(value))) for value in values)  # noqa: B023 - called here
        for name, (check, values) in REFUSED.items()
    }
    approved("checks", told)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (doc.text, "x" * 249),
        (doc.number, 0),
        (partial(doc.number, below=1.0), 0.999),
        (partial(doc.whole, low=1, high=10), 1),
        (partial(doc.whole, low=1, high=10), 10),
    ],
)
def test_a_value_at_a_limit_is_taken(check, value):
    assert check(value, AT) == value


@pytest.mark.parametrize("value", [0, False, "", []])
def test_a_field_that_is_there_counts_even_when_it_is_empty(value):
    assert doc.required({"id": value}, "id", AT, "an id") is value


def test_a_whole_number_becomes_a_float():
    value = doc.number(3, AT)
    assert (value, type(value)) == (3.0, float)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


def refusal_of(check):
    try:
        check()
    except InputError as problem:
        return problem
    return None


@given(values)
def test_whatever_is_found_each_check_accepts_it_or_names_the_place(value):
    refusals = [
        refusal_of(lambda: doc.mapping(value, AT, ("id",))),
        refusal_of(lambda: doc.sequence(value, AT, "members")),
        refusal_of(lambda: doc.text(value, AT)),
        refusal_of(lambda: doc.whole(value, AT, low=0, high=9)),
        refusal_of(lambda: doc.number(value, AT)),
    ]
    refused = [problem for problem in refusals if problem is not None]
    assert len(refused) >= 3  # a whole number is also a number; nothing else is two things at once
    assert all(problem.where.startswith(AT) and problem.found for problem in refused)
    assert all(len(problem.found) < 400 for problem in refused)
