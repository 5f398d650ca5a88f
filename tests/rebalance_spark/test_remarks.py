"""What is said of the scenarios of a report: those that are missing or were repaired, and idle members."""

import pyarrow as pa
import pytest

from tests.rebalance_spark.score_files import HOUR, found, hourly, row


@pytest.mark.parametrize(("baseline", "is_said"), [("range", True), ("sticky", False)])
def test_members_without_partitions_are_asked_for_where_owners_cannot_show_them(stored, baseline, is_said):
    rows = hourly(
        [
            row(name, s, 5.0) | {"members": members, "largest_topic": 3}
            for name, members in (("full", 3), ("wide", 2))
            for s in ("range", "sticky")
        ]
    )
    more = [HOUR, pa.field("members", pa.int32()), pa.field("largest_topic", pa.int32())]
    said = [
        line for line in found(stored(rows, more=more), baseline=baseline).left_out if "largest topic" in line
    ]
    assert len(said) == is_said
    assert all(line.startswith("1 of 2 groups (full) has as many members") for line in said)


@pytest.mark.parametrize(
    ("hours", "left_out"),
    [
        ({"a": 2, "b": 2}, []),
        (
            {"a": 2, "b": 1, "c": 2},
            ["1 of 3 groups are missing under some keys, such as hours (b)"],
        ),
    ],
)
def test_groups_with_fewer_scenarios_than_others_are_named(stored, hours, left_out):
    rows = [
        {**row(f"hour={hour}/{group}", "a", 1.0), "hour": hour}
        for group, count in hours.items()
        for hour in range(count)
    ]
    assert found(stored(rows, more=[HOUR])).left_out == left_out


def test_a_repaired_row_counts_once_and_not_in_each_draw(stored):
    more = [pa.field("draw", pa.int32()), pa.field("repairs", pa.int32())]
    rows = [{**row(f"draw={n}/a", name, 1.0), "draw": n, "repairs": 3} for n in (0, 1) for name in ("a", "b")]
    made = found(stored(rows, more=more), baseline="a")
    assert any(text.startswith("3 rows of the input were repaired, in 1 scenarios") for text in made.left_out)


def test_a_group_with_fewer_draws_has_not_fewer_scenarios_than_others(stored):
    ids = {f"draw={draw}/{group}": draw for group, members in (("a", 4), ("b", 2)) for draw in range(members)}
    rows = [{**row(name, "a", 1.0), "draw": draw} for name, draw in ids.items()]
    assert found(stored(rows, more=[pa.field("draw", pa.int32())])).left_out == []
