"""The checks that documents are read with: each names the place, what was found and what was expected."""

import datetime as dt
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc

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


@pytest.mark.parametrize("value", [None, [], "a", 3, [("a", 1)]])
def test_anything_but_a_mapping_is_refused_with_the_fields_it_has(value):
    expected = "a mapping with id, topics"
    assert error_of(doc.mapping, value, AT, ("id", "topics")) == (AT, doc.describe(value), expected)


@pytest.mark.parametrize("key", [1, None, True, 1.5, ""])
def test_a_key_that_is_not_text_is_refused(key):
    assert error_of(doc.mapping, {key: 1}, AT) == (AT, doc.describe(key), "text as the key")


def test_an_unknown_field_is_named_with_what_there_is_and_what_was_meant():
    assert error_of(doc.mapping, {"id": 1, "topcis": 2}, AT, ("id", "topics")) == (
        "x.yaml: here.topcis",
        "the unknown field 'topcis'",
        "one of id, topics (did you mean 'topics'?)",
    )


@pytest.mark.parametrize("document", [{}, {"id": None}])
def test_a_field_that_must_be_there_is_asked_for(document):
    assert error_of(doc.required, document, "id", AT, "an id") == ("x.yaml: here.id", "nothing", "an id")


@pytest.mark.parametrize("value", [0, False, "", []])
def test_a_field_that_is_there_counts_even_when_it_is_empty(value):
    assert doc.required({"id": value}, "id", AT, "an id") is value


@pytest.mark.parametrize("value", [None, (1, 2), "ab", {"a": 1}, 3])
def test_anything_but_a_list_is_refused(value):
    assert error_of(doc.sequence, value, AT, "members") == (AT, doc.describe(value), "a list of members")


@pytest.mark.parametrize("value", [None, "", "  \n", 3, ["a"], True])
def test_text_is_not_empty_and_nothing_else(value):
    assert error_of(doc.text, value, AT, "an id") == (AT, doc.describe(value), "an id")


def test_text_is_as_long_as_a_topic_name_at_most():
    assert doc.text("x" * 249, AT) == "x" * 249
    assert error_of(doc.text, "x" * 250, AT)[1] == "text of 250 characters"
    assert error_of(doc.text, "x" * 1_250, AT, "an id") == (
        AT,
        "text of 1,250 characters",
        "an id of at most 249 characters",
    )


@pytest.mark.parametrize("value", [1, 7, 10])
def test_a_whole_number_may_be_either_end_of_its_range(value):
    assert doc.whole(value, AT, low=1, high=10) == value


@pytest.mark.parametrize("value", [0, 11, -1, 1.0, "7", None, True, math.nan, 10**400])
def test_a_whole_number_outside_of_its_range_is_refused(value):
    expected = "a whole number from 1 to 10,000"
    value = 10_001 if value == 11 else value
    assert error_of(doc.whole, value, AT, low=1, high=10_000) == (AT, doc.describe(value), expected)


@pytest.mark.parametrize("value", [-1, -1e-9, math.nan, math.inf, -math.inf, 10**400, "3", None, True, []])
def test_a_number_is_finite_and_not_negative(value):
    assert error_of(doc.number, value, AT) == (AT, doc.describe(value), "a number not negative")


def test_a_number_may_be_zero_unless_it_must_be_positive():
    assert doc.number(0, AT) == 0.0
    assert error_of(doc.number, 0.0, AT, positive=True) == (AT, "0.0", "a number above zero")


def test_a_number_stays_below_its_limit():
    assert doc.number(0.999, AT, below=1.0) == 0.999
    assert error_of(doc.number, 1, AT, below=1.0) == (AT, "1", "a number not negative and below 1")


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
