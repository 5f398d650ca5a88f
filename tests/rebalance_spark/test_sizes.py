"""How large a scenario is, as far as it can be told from whatever stands in its place."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rebalance_spark.documents import workload_row
from rebalance_spark.sizes import MOST, Size, size_of, size_of_text
from tests.rebalance_spark.strangers import SMALL, SMALL_TEXT

NOTHING = Size(0, 0, 0)


def members(*entries, **fields):
    return size_of({"members": list(entries), **fields})


def test_members_partitions_and_events_are_counted():
    assert size_of(SMALL) == Size(members=2, partitions=4, events=1)


def test_partitions_are_those_of_all_topics():
    assert size_of({"topics": {"a": {"partitions": 3}, "b": {"partitions": 40}}}).partitions == 43


def test_a_member_with_a_count_is_as_many():
    assert members({"id": "a", "count": 5}, {"id": "b"}).members == 6


def test_who_joins_later_counts_as_a_member():
    joins = [{"at": 1, "join": {"id": "x", "count": 3}}, {"at": 2, "join": {"id": "y"}}]
    assert members({"id": "a"}, events=joins) == Size(members=5, partitions=0, events=2)


def test_a_rolling_restart_counts_once_a_member():
    events = [{"at": 1, "rolling_restart": {}}, {"at": 2, "leave": "a-0"}]
    assert members({"id": "a", "count": 7}, events=events).events == 8


def test_a_list_of_members_counts_once_a_member():
    join = [{"id": "b", "count": 2}, {"id": "d"}]
    events = [{"join": join}, {"leave": ["b-0", "d", "b-1"]}, {"subscribe": "x", "topics": ["a", "b", "c"]}]
    assert size_of({"members": [{"id": "x"}], "events": events}) == Size(4, 0, 2 + 3 + 1)


def test_a_rolling_restart_takes_in_those_who_join():
    events = [{"at": 2, "rolling_restart": {}}, {"at": 1, "join": {"id": "b", "count": 2}}]
    assert members({"id": "a", "count": 4}, events=events).events == 7


@pytest.mark.parametrize("count", [-1, True, 2.5, "3", None, []])
def test_a_count_that_is_none_is_one(count):
    assert members({"id": "a", "count": count}).members == 1


@pytest.mark.parametrize("partitions", [-1, True, 2.5, "3", None, []])
def test_partitions_that_are_no_number_are_none(partitions):
    assert size_of({"topics": {"a": {"partitions": partitions}, "b": {"partitions": 2}}}).partitions == 2


def test_no_figure_is_larger_than_its_column():
    huge = 10**30
    events = [{"rolling_restart": {}}] * 2
    document = {"members": [{"count": huge}], "topics": {"t": {"partitions": huge}}, "events": events}
    assert size_of(document) == Size(MOST, MOST, MOST) == (2**31 - 1,) * 3


@pytest.mark.parametrize(
    "document",
    [
        None,
        7,
        "text",
        [],
        {},
        {"topics": None, "members": None, "events": None},
        {"topics": [1], "members": {"id": "a"}, "events": {"at": 1}},
        {"topics": {"t": 5}, "members": [5, "a", None], "events": [5, "leave", None]},
        {"topics": {"t": None}, "members": "abc", "events": "abc"},
    ],
)
def test_what_is_no_scenario_counts_nothing(document):
    assert size_of(document) == NOTHING


@pytest.mark.parametrize(
    "text",
    [
        SMALL_TEXT,
        json.dumps(SMALL, indent=4),
        yaml.safe_dump(SMALL),
        yaml.safe_dump(SMALL, default_flow_style=True),
    ],
    ids=["JSON", "indented JSON", "YAML", "YAML in flow style"],
)
def test_the_size_is_the_same_in_every_notation(text):
    assert size_of_text(text) == Size(2, 4, 1)


NONSENSE = {
    "nothing": None,
    "no text": "",
    "blanks": " \n ",
    "a comment": "# nothing\n",
    "half of a JSON object": SMALL_TEXT[:-9],
    "half of a YAML document": "topics: {t: {partitions: 3",
    "a tab": "a:\n\t- b",
    "a null character": "members: [\0]",
    "half of a surrogate pair": '{"name": "\ud800"}',
    "a key twice": "members: [{id: a}]\nmembers: [{id: b}]",
    "an unknown tag": "!!python/object:os.system [x]",
    "a whole number that is none": "members: !!int ''",
    "a truth that is none": "members: !!bool x",
    "a time that is none": "members: !!timestamp x",
    "lists nested without end": "[" * 100_000,
    "lists nested not so deep": "[" * 1_500,
    "objects nested without end": '{"members":' * 50_000,
    "a number without end": '{"members": ' + "9" * 5_000 + "}",
    "a list of itself": "&a [*a]",
}


@pytest.mark.parametrize("text", NONSENSE.values(), ids=NONSENSE.keys())
def test_a_text_that_cannot_be_read_counts_nothing(text):
    assert size_of_text(text) == NOTHING


@pytest.mark.parametrize("line", ["[" * 100_000, '{"scenario":' * 50_000], ids=["lists", "objects"])
def test_a_line_that_is_nested_too_deep_is_a_row_like_any_other(line):
    assert workload_row("lines.jsonl 7", line) == {
        "scenario_id": "lines.jsonl 7",
        "scenario": line,
        **NOTHING._asdict(),
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
loosely_scenarios = st.fixed_dictionaries(
    {},
    optional={
        "members": json_values | st.lists(st.fixed_dictionaries({"count": json_values}), max_size=3),
        "topics": json_values | st.dictionaries(st.text(max_size=3), json_values, max_size=3),
        "events": json_values
        | st.lists(
            st.fixed_dictionaries({}, optional={"join": json_values, "rolling_restart": json_values}),
            max_size=3,
        ),
    },
)


@given(json_values | loosely_scenarios)
def test_every_document_has_a_size_that_fits_its_columns(document):
    size = size_of(document)
    assert all(type(n) is int and 0 <= n <= MOST for n in size)
    assert size_of_text(json.dumps(document, allow_nan=True)) in (size, NOTHING)


@given(st.text())
def test_every_text_has_a_size(text):
    assert all(0 <= n <= MOST for n in size_of_text(text))
