"""What all members together can handle, and a partition that is too much for one."""

import pyarrow as pa
import pytest

from rebalance_spark.report_tables import advice_table
from rebalance_spark.sentences import _need, notes, verdict
from tests.rebalance_spark.score_files import HOUR, found, hourly, row

FIGURES = {  # members, load of the busiest, that over the mean, the share of the busiest partition
    "few": (2, 1.6, 1.0, 0.2),
    "hot": (4, 1.5, 3.0, 0.6),
    "uneven": (4, 1.5, 2.0, 0.1),
    "quiet": (3, 0.5, 1.0, 0.5),
}
KINDS = {
    "members": pa.int32(),
    "utilization": pa.float64(),
    "weighted_imbalance": pa.float64(),
    "largest_share": pa.float32(),
    "largest_topic": pa.int32(),
    "partitions": pa.int32(),
}


def scores(stored, figures, **changes):
    rows = [
        row(name, strategy, 5.0)
        | dict(zip(KINDS, (members, load, balance, share, 2, 6), strict=True))
        | changes
        for name, (members, load, balance, share) in figures.items()
        for strategy in ("range", "other")
    ]
    return stored(hourly(rows), more=[HOUR, *(pa.field(name, kind) for name, kind in KINDS.items())])


def test_members_that_are_missing_and_partitions_that_are_too_much_are_said(stored):
    scored = scores(stored, FIGURES)
    made = found(scored, baseline="range")
    said = [line for line in notes(made) if "(--advice FILE)" in line]
    assert said == [
        "3 of 4 groups are overloaded in some of their scenarios with range: few, hot and uneven. If their"
        " lag does not grow in these hours, members handle more than the process_rate that was given"
        " (--advice FILE).",
        "In few (2 members; the load of 4 or more), all members together have more than they can handle in"
        " half or more of these: that takes faster processing or more members (--advice FILE).",
        "Further members of few would own nothing under range, as there are as many as the largest topic has"
        " partitions: add them together with roundrobin or sticky (--advice FILE).",
        "In hot, one partition has more than a member can handle: that takes faster processing or other"
        " keys, and no strategy helps (--advice FILE).",
        "No strategy that was scored is known to relieve uneven, whose members together can handle the load"
        " in most of these: optimal, or lag-aware, shows what another assignment can do (--advice FILE).",
    ]
    assert verdict(made)[:2] == [
        "1 of 4 groups has more than all their members can handle, whatever the assignor: few (2 members; the"
        " load of 4 or more)",
        "leave 3 of 4 groups as they are, with range",
    ]
    table = {r["group"]: r for r in advice_table(scored, made.advice).to_pylist()}
    assert {name: r["members_needed"] for name, r in table.items()} == {
        "few": 4,
        "hot": 2,
        "uneven": 3,
        "quiet": 2,
    }
    assert table["hot"]["busiest_partition_load"] == pytest.approx(1.2, rel=1e-5)
    assert table["few"]["weighted_imbalance_today"] == 1.0


def test_more_members_than_partitions_is_a_matter_of_partitions(stored):
    figures = {"crowded": (6, 1.5, 1.0, 0.2)}
    said = " ".join(notes(found(scores(stored, figures), baseline="range")))
    assert "In crowded, partitions have more than a member can handle, in the mean" in said
    assert "one partition has" not in said


def test_members_that_no_partitions_are_left_for_are_said():
    assert _need("g", 8, 10, 8) == "g (8 members and 8 partitions; the load of 10 or more)"
    assert _need("g", 8, 10, 0) == "g (8 members; the load of 10 or more)"
    assert _need("g", 8, 8, 8) == "g"


def test_a_share_that_nobody_knows_leaves_open_whether_a_partition_is_too_much(stored):
    made = found(scores(stored, {"uneven": FIGURES["uneven"]}, largest_share=None), baseline="range")
    assert any("unless a partition has too much for one" in line for line in notes(made))


def test_the_scenario_that_needs_most_members_counts(stored):
    rows = [
        row(f"hour={hour}/x", strategy, 5.0)
        | {"hour": hour, "members": hour + 1, "utilization": 1.5, "weighted_imbalance": 1.0}
        for hour in range(12)
        for strategy in ("range", "other")
    ]
    more = [HOUR, *(pa.field(name, KINDS[name]) for name in list(KINDS)[:3])]
    capacity = found(stored(rows, more=more), baseline="range").advice.capacity
    assert (capacity.members.tolist(), capacity.needed.tolist()) == ([12], [18])
