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
A, B, RESTART = {"id": "a", "count": 4}, {"id": "b", "count": 2}, {"rolling_restart": {}}
HUGE = 10**30
NO_NUMBERS = (-1, True, 2.5, "3", None, [])


@pytest.mark.parametrize(
    ("document", "size"),
    [
        (SMALL, Size(members=2, partitions=4, events=1)),
        ({"topics": {"a": {"partitions": 3}, "b": {"partitions": 40}}}, Size(0, 43, 0)),
        ({"members": [A, {"id": "c"}], "events": [{"join": B}, {"join": {"id": "y"}}]}, Size(8, 0, 2)),
        ({"members": [A], "events": [RESTART, {"leave": "a-0"}]}, Size(4, 0, 4 + 1)),
        ({"members": [A], "events": [RESTART, {"join": B}]}, Size(6, 0, 6 + 1)),
        ({"events": [{"join": [B, {}]}, {"leave": ["b-0", "d"]}, {"topics": ["a", "b"]}]}, Size(3, 0, 5)),
        *(({"members": [{"id": "a", "count": count}]}, Size(1, 0, 0)) for count in NO_NUMBERS),
        *(({"topics": {"a": {"partitions": count}}}, NOTHING) for count in NO_NUMBERS),
        (
            {"members": [{"count": HUGE}], "topics": {"t": {"partitions": HUGE}}, "events": [RESTART] * 2},
            Size(2**31 - 1, 2**31 - 1, 2**31 - 1),
        ),
        *((nothing, NOTHING) for nothing in (None, 7, "text", [], {})),
        ({"topics": [1], "members": {"id": "a"}, "events": {"at": 1}}, NOTHING),
        ({"topics": {"t": 5}, "members": [5, "a", None], "events": [5, "leave", None]}, NOTHING),
        ({"topics": {"t": None}, "members": "abc", "events": "abc"}, NOTHING),
    ],
)
def test_members_partitions_and_changes_are_counted_as_far_as_they_can_be_read(document, size):
    """Members of events, too; an event counts once, or once for each member of its list."""
    assert size_of(document) == size


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
