"""The scenarios of a group from its rows, without Spark."""

import json
import random

import pyarrow as pa
import pytest

from rebalance_lab.scenarios.fields import MOST_PARTITIONS
from rebalance_lab.scoring.documents import seed_of
from rebalance_lab.scoring.rows import Job, Scorer
from rebalance_spark.applications import Several
from rebalance_spark.groups import DENSE_UP_TO, SPARSE, Options, made_of, scenarios_of

TYPES = {
    **dict.fromkeys(["id", "group", "member", "topic", "alone", "wrong_rate", "wrong_lag"], pa.string()),
    "partition": pa.int64(),
    "rate": pa.float64(),
    "lag": pa.float64(),
    **dict.fromkeys(["owned", "rated"], pa.bool_()),
}
USUAL = {"id": "g", "group": "g", "owned": True, "rated": True, "lag": 0.0}
OPTIONS = {"amounts": ["rate", "lag"]}


def rows(*given, **more):
    """Rows as Spark cleans them: member, topic, partition and rate of each, and further columns."""
    names = ("member", "topic", "partition", "rate")
    filled = [{**dict.fromkeys(TYPES), **USUAL, **dict(zip(names, each, strict=False))} for each in given]
    table = pa.table({name: pa.array([row[name] for row in filled], kind) for name, kind in TYPES.items()})
    for name, values in more.items():
        old = table.drop_columns([name]) if name in table.column_names else table
        table = old.append_column(name, pa.array(values, TYPES.get(name)))
    return table


def made(*given, options=None, **more):
    return scenarios_of(rows(*given, **more), Options(**OPTIONS, **(options or {})))


def document(*given, **more):
    return json.loads(made(*given, **more)[0]["scenario"])


def problems(*given, **more):
    found = made(*given, **more)[0]["problems"]
    assert len({each.kind for each in found}) == len(found)
    return {each.kind: (each.number, each.example) for each in found}


# --- the document


def test_a_group_has_its_members_topics_owners_rates_and_lags():
    given = [("b", "t", 0, 5.0), ("a", "t", 1, 1.0), ("c", None, None), (None, "s", 0, 2.0)]
    (row,) = made(*given, lag=[7.0, 0.0, None, 1.0])
    found = json.loads(row["scenario"])
    (event,) = found.pop("events")
    assert (event["at"], event["leave"] in "abc") == ("5m", True)
    assert found == {
        "name": "g",
        "duration": "10m",
        "topics": {
            "s": {"partitions": 1, "rates": [2.0], "backlog": [1]},
            "t": {"partitions": 2, "rates": [5.0, 1.0], "backlog": [7, 0]},
        },
        "members": [
            {"id": "a", "topics": ["s", "t"], "owned": {"t": [1]}},
            {"id": "b", "topics": ["s", "t"], "owned": {"t": [0]}},
            {"id": "c", "topics": ["s", "t"], "owned": {}},
        ],
    }
    assert (row["members"], row["partitions"], row["events"], row["repairs"]) == (3, 3, 1, 0)


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        ([("a", "t", 0, 2.0), ("a", "t", 1, 4.0), ("a", "t", 2, None)], {"t": [2.0, 4.0, 3.0]}),
        ([("a", "t", 0, 2.0), ("a", "t", 2, 4.0)], {"t": [2.0, 3.0, 4.0]}),
        ([("a", "t", 0, 2.0), ("a", "s", 0, None)], {"s": [2.0], "t": [2.0]}),
        ([("a", "t", 0, 2.0), ("a", "t", 1, None), ("a", "s", 0, 9.0)], {"s": [9.0], "t": [2.0, 2.0]}),
        ([("a", "t", 0, 0.0), ("a", "t", 1, None)], {"t": [0.0, 0.0]}),
    ],
)
def test_an_unknown_rate_is_the_mean_of_its_topic_or_else_of_the_group(given, rates):
    assert {name: topic["rates"] for name, topic in document(*given)["topics"].items()} == rates


def test_a_topic_of_20_000_partitions_has_each_rate_at_its_place_whatever_the_order_of_rows():
    given = [(f"m-{n % 7}", "t", n, float(n)) for n in random.Random(1).sample(range(20_000), 20_000)]
    found = document(*given)
    assert found["topics"]["t"]["rates"] == [float(n) for n in range(20_000)]
    assert found["members"][3]["owned"] == {"t": [*range(3, 20_000, 7)]}


def test_a_group_of_which_no_rate_is_known_has_none():
    assert document(("a", "t", 0, None))["topics"] == {"t": {"partitions": 1, "backlog": [0]}}


def test_of_several_rows_the_mean_rate_the_greatest_lag_and_the_last_owner_count():
    given = [("a", "t", 0, 1.0), ("b", "t", 0, 3.0), (None, "t", 0, None)]
    found = document(*given, lag=[5.0, 3.0, None])
    assert found["topics"]["t"] == {"partitions": 1, "rates": [2.0], "backlog": [5]}
    assert [member["owned"] for member in found["members"]] == [{}, {"t": [0]}]


def test_the_order_of_rows_makes_no_difference():
    given = [
        ("a", "t", 0, 0.1),
        ("b", "t", 2, 0.2),
        ("b", "t", 1, 0.3),
        ("c", "s", 1, 0.7),
        ("c", "t", 0, 0.6),
    ]
    assert made(*given) == made(*reversed(given)) == made(*sorted(given, key=str))


def test_members_have_the_fields_that_are_given_and_the_greatest_value_of_a_column():
    applied = {"process_rate": "@handled", "client": "java", "config": {"max.poll.records": 100}}
    given = [("a", "t", 0, 1.0), ("a", "t", 1, 1.0), ("b", "t", 2, 1.0)]
    one, two = document(*given, options={"application": applied}, field_process_rate=[5, 9, None])["members"]
    assert {name: one[name] for name in applied} == {**applied, "process_rate": 9}
    assert (two["client"], "process_rate" in two) == ("java", False)


# --- draws and several values


GIVEN = [("a", "t", 0, 1.0), ("b", "t", 1, 1.0), ("c", "t", 2, 1.0)]


def leaving(found):
    return [json.loads(row["scenario"])["events"][0]["leave"] for row in found]


def test_in_each_draw_another_member_leaves_and_more_draws_add_to_the_same_ones():
    three, two = (
        made(*GIVEN, options={"draws": draws, "keys": ["hour"]}, key0=[7] * 3, id=["hour=7/g"] * 3)
        for draws in (9, 2)
    )
    assert [(row["scenario_id"], row["draw"]) for row in three] == [
        (f"hour=7/draw={n}/g", n) for n in range(3)
    ]
    assert sorted(leaving(three)) == ["a", "b", "c"]
    assert [{**row, "problems": []} for row in three[:2]] == [{**row, "problems": []} for row in two]


def test_the_only_member_does_not_leave_and_a_long_name_of_a_group_is_cut():
    (row,) = made(("a", "t", 0, 1.0), group=["x" * 300], id=["x" * 300], options={"draws": 3})
    found = json.loads(row["scenario"])
    assert (found["events"], row["events"], len(found["name"]), len(row["group"])) == ([], 0, 249, 300)


def test_the_first_scenario_has_the_problems_of_its_group():
    found = made(*GIVEN, ("a", "t", 3, None), options={"draws": 2})
    assert [len(row["problems"]) for row in found] == [1, 0]


def test_each_member_leaves_in_about_as_many_groups():
    found = [leaving(made(*GIVEN, id=[f"g-{n}"] * 3))[0] for n in range(300)]
    assert all(70 < found.count(member) < 130 for member in "abc")


def test_draws_with_events_differ_in_their_seeds():
    restart = [{"at": "1m", "rolling_restart": {"every": "20s", "down": "5s"}}]
    found = made(*GIVEN, options={"draws": 4, "events": restart})
    assert [json.loads(row["scenario"])["events"] for row in found] == [restart] * 4
    assert len({seed_of(row["scenario_id"]) for row in found}) == 4
    assert {row["events"] for row in found} == {3}


def test_each_of_several_values_makes_a_scenario():
    several = {"batch_overhead": Several(["5ms", "7ms"]), "start_up": Several([1, ["1s", "2s"]])}
    found = made(*GIVEN, options={"application": several})
    assert [row["scenario_id"] for row in found] == [
        f"batch_overhead={overhead}/start_up={text}/g"
        for overhead in ("5ms", "7ms")
        for text in ("1", '["1s","2s"]')
    ]
    assert [row["start_up"] for row in found[:2]] == ["1", '["1s","2s"]']
    assert json.loads(found[1]["scenario"])["members"][0]["start_up"] == ["1s", "2s"]


# --- problems


def test_unknown_rates_and_partitions_without_a_row_are_counted_with_an_example():
    given = [("a", "t", 0, 1.0), ("a", "t", 3, None), ("a", "t", 4, None)]
    wrong = {"wrong_rate": [None, "n/a", None]}
    assert problems(*given, **wrong) == {"unknown_rate": (2, "g t 3: 'n/a'"), "missing_row": (2, "g t 1")}
    assert made(*given, **wrong)[0]["repairs"] == 4


def test_a_row_without_a_rate_and_a_lag_that_is_a_duplicate_is_one_repair():
    given = [("a", "t", 0, None), ("a", "t", 0, 1.0), ("a", "t", 0, 2.0)]
    found = made(*given, lag=[None, 1.0, 1.0])[0]
    assert {each.kind: each.number for each in found["problems"]} == {
        "unknown_rate": 1,
        "unknown_lag": 1,
        "duplicate": 2,
    }
    assert found["repairs"] == 2


def test_a_row_that_is_not_in_the_rates_is_of_another_kind():
    given = [("a", "t", 0, 1.0), ("a", "t", 1, None)]
    assert problems(*given, rated=[True, None]) == {"no_rate_row": (1, "g t 1")}


def test_a_topic_or_a_partition_alone_is_counted():
    assert problems(("a", "t", 0, 1.0), ("b", None, None), alone=[None, "t"]) == {"no_partition": (1, "g t")}


def test_a_group_in_which_nobody_is_a_member_is_counted():
    assert problems((None, "t", 0, 1.0)) == {"no_members": (1, "g")}


def test_rows_without_a_group_make_no_scenario():
    given = [("a", "t", 0, 1.0), (None, "t", 1, 1.0), (None, "t", 1, 2.0), (None, None, None, 1.0)]
    found = made(*given, group=[None] * 4, owned=[True, None, None, None], alone=[None, None, None, "t x"])
    assert found == [
        {"problems": [("no_group", 1, "t 0"), ("no_partition", 1, "t x"), ("no_owner_row", 1, "t 1")]}
    ]


def hours(hour, numbers=(0, 1), minutes=None):
    """The problems of the same partitions in each of these hours. By default each row has its own minute."""
    given = [("a", "t", number, 1.0) for number in numbers for _ in hour]
    options = {"candidates": [("other1", "minute"), ("other0", "hour")]}
    return problems(
        *given, options=options, other0=[*hour] * len(numbers), other1=minutes or range(len(given))
    )


def test_a_column_that_tells_rows_of_a_partition_apart_is_an_unnamed_key():
    assert hours(range(24))["unnamed_key"] == (1, "hour: 24 values in g")
    assert hours([*range(24), 23])["unnamed_key"] == (1, "hour: 24 values in g")
    assert hours([7, 8, 8], numbers=[0])["unnamed_key"] == (1, "hour: 2 values in g")


def test_a_column_that_does_not_tell_them_apart_is_no_key():
    assert "unnamed_key" not in hours([7, 7, 7], minutes=[1] * 6)
    assert "unnamed_key" not in hours([7, 7], numbers=[0], minutes=[7, 7])
    given = [("a", "t", number, 1.0) for number in range(9) for _ in range(2)]
    offsets = problems(*given, options={"candidates": [("other0", "offset")]}, other0=range(18))
    assert set(offsets) == {"duplicate"}


def test_a_kept_column_is_null_where_it_differs():
    given, options = [("a", "t", 0, 1.0), ("b", "t", 1, 1.0)], {"keep": ["team", "zone"]}
    (row,) = made(*given, options=options, keep0=["red", None], keep1=["x", "y"])
    assert (row["team"], row["zone"]) == ("red", None)
    assert row["problems"] == [("differing", 1, "zone in g")]


# --- groups that are errors


def error_of(text):
    (row,) = Scorer(Job(("range",))).rows("g", text)
    assert row["status"] == "error"
    return row["error"]


def test_a_number_that_no_topic_has_is_an_error_before_a_list_of_that_length_is_made():
    given = [("a", "t", number, 1.0) for number in range(39)]
    (row,) = made(*given, ("a", "t", 20_000_000, 1.0))
    assert error_of(row["scenario"]) == (
        "group 'g', topic 't': found partition 20,000,000, expected numbers below 200,000"
    )
    assert [each.kind for each in row["problems"]] == ["impossible"]
    assert (row["members"], row["partitions"], row["repairs"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("numbers", "possible"),
    [
        ([7], True),
        ([DENSE_UP_TO - 1], True),
        ([DENSE_UP_TO], False),
        ([*range(DENSE_UP_TO // SPARSE - 1), DENSE_UP_TO], False),
        ([*range(DENSE_UP_TO // SPARSE), DENSE_UP_TO], True),
        ([*range(MOST_PARTITIONS // SPARSE + 1), MOST_PARTITIONS], False),
    ],
)
def test_a_topic_has_rows_for_a_tenth_of_its_numbers_unless_it_is_small(numbers, possible):
    (row,) = made(*(("a", "t", number, 1.0) for number in numbers))
    assert row["scenario"].startswith("{") is possible
    assert row["partitions"] == (max(numbers) + 1 if possible else 0)


def test_a_group_that_would_be_repaired_is_an_error_if_rows_are_to_be_refused():
    given = [("a", "t", 0, 1.0), ("a", "t", 1, None)]
    (row,) = made(*given, wrong_rate=[None, "3k"], options={"on_bad": "row"})
    assert "group 'g': found unreadable_rate 1 times (\"g t 1: '3k'\")" in error_of(row["scenario"])
    assert row["repairs"] == 0
    assert made(given[0], options={"on_bad": "row"})[0]["scenario"].startswith("{")


def test_a_table_has_the_types_of_its_keys_and_kept_columns():
    options = Options(keys=["hour"], keep=["floor"], draws=1, **OPTIONS)
    table = made_of(rows(("a", "t", 0, 1.0), key0=[7], keep0=pa.array([2.5])), options)
    assert table.column_names == list(options.columns)
    assert [table.schema.field(name).type for name in ("hour", "floor", "draw")] == [
        pa.int64(),
        pa.float64(),
        pa.int32(),
    ]
