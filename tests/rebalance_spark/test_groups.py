"""Tables with a row per partition as workloads."""

import json

import pytest
import yaml

from coordinator_core.errors import InputError
from rebalance_spark import assign, groups_to_workload, partitions_to_workload, read_workloads, score
from rebalance_spark.applications import Several, read_application
from rebalance_spark.documents import seed_of
from rebalance_spark.rows import Job, Scorer
from rebalance_spark.scenarios import shown
from rebalance_spark.schema import WORKLOAD_COLUMNS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_tasks")]

COLUMNS = [column.name for column in WORKLOAD_COLUMNS]
SCHEMA = (
    "group string, member string, topic string, partition int, rate double, lag string, team string, hour int"
)
ROWS = [
    ("pay", "a", "orders", 0, 5.0, "7", "red", 7),
    ("pay", "b", "orders", 2, float("nan"), None, "red", 7),
    ("pay", "c", None, None, None, None, "red", 7),
    ("pay", None, "mail", 0, 1.0, "many", "red", 7),
    ("ship", "x", "orders", 1, 2.0, "3", None, 7),
    ("pay", "a", "orders", 0, 6.0, "7", "red", 8),
    ("pay", "a", "orders", 0, 8.0, "9", "red", 8),
    ("idle", "a", None, -1, None, None, None, None),
]


@pytest.fixture(scope="module")
def table(spark):
    return spark.createDataFrame(ROWS, SCHEMA)


@pytest.fixture(scope="module")
def workload(table):
    return groups_to_workload(table, rate="rate", lag="lag", keys=["hour"], keep=["team"])


@pytest.fixture(scope="module")
def found(workload):
    return {row.scenario_id: row for row in workload.collect()}


def test_each_group_of_each_hour_is_a_scenario_with_its_size(found):
    assert {name: (row.members, row.partitions, row.events) for name, row in found.items()} == {
        "hour=7/pay": (3, 4, 1),
        "hour=7/ship": (1, 2, 0),
        "hour=8/pay": (1, 1, 0),
        "hour=/idle": (1, 0, 0),
    }
    assert (found["hour=7/pay"].team, found["hour=7/pay"].hour) == ("red", 7)


def test_a_scenario_has_the_owners_rates_and_lags_of_the_table(found):
    assert json.loads(found["hour=7/pay"].scenario) == {
        "name": "pay",
        "duration": "10m",
        "topics": {
            "mail": {"partitions": 1, "rates": [1.0], "backlog": [0]},
            "orders": {"partitions": 3, "rates": [5.0, 0.0, 0.0], "backlog": [7, 0, 0]},
        },
        "members": [
            {"id": "a", "topics": ["mail", "orders"], "owned": {"orders": [0]}},
            {"id": "b", "topics": ["mail", "orders"], "owned": {"orders": [2]}},
            {"id": "c", "topics": ["mail", "orders"], "owned": {}},
        ],
        "events": [{"at": "5m", "leave": "a"}],
    }


def test_the_repaired_rows_of_each_group_are_counted(found):
    assert {name: (row.repairs, row.repaired) for name, row in found.items()} == {
        "hour=7/pay": (2, "amounts=2"),
        "hour=7/ship": (0, None),
        "hour=8/pay": (1, "duplicates=1"),
        "hour=/idle": (0, None),
    }


def test_a_repaired_row_has_one_kind(spark):
    rows = [
        ("g", "a", "t", 0, -1.0),
        ("g", "b", "t", 0, -2.0),
        ("g", "c", "t", None, 1.0),
        ("", "d", "t", 0, -1.0),
    ]
    schema = "group string, member string, topic string, partition int, rate double"
    workload = groups_to_workload(spark.createDataFrame(rows, schema), rate="rate")
    assert {row.scenario_id: (row.repairs, row.repaired) for row in workload.collect()} == {
        "g": (3, "amounts=2, places=1"),
        "": (1, "nameless=1"),
    }


def test_no_member_never_wins_over_a_named_one(spark):
    rows = [("g", None, "t", 0), ("g", "a", "t", 0), ("g", None, "t", 0)]
    table = spark.createDataFrame(rows, "group string, member string, topic string, partition int")
    (row,) = groups_to_workload(table).collect()
    assert json.loads(row.scenario)["members"] == [{"id": "a", "topics": ["t"], "owned": {"t": [0]}}]


def test_a_kept_column_is_null_in_a_group_in_which_it_differs(table):
    workload = groups_to_workload(table, keep=["team", "hour"])
    assert {row.scenario_id: (row.team, row.hour, row.differing) for row in workload.collect()} == {
        "idle": (None, None, None),
        "pay": ("red", None, "hour"),
        "ship": (None, 7, None),
    }


def test_of_several_rows_of_a_partition_the_mean_rate_and_the_greatest_lag_count(found):
    topics = json.loads(found["hour=8/pay"].scenario)["topics"]
    assert topics == {"orders": {"partitions": 1, "rates": [7.0], "backlog": [9]}}


def test_its_scenarios_are_scored_and_their_columns_carried_through(workload):
    rows = score(workload, ["sticky"], fidelity="plan").collect()
    assert {(row.scenario_id, row.status, row.team, row.hour) for row in rows} == {
        ("hour=7/pay", "ok", "red", 7),
        ("hour=7/ship", "ok", None, 7),
        ("hour=8/pay", "ok", "red", 8),
        ("hour=/idle", "error", None, None),
    }


def test_the_running_groups_of_a_workload_can_be_assigned(workload):
    rows = {row.scenario_id: row for row in assign(workload, "sticky").collect()}
    found = rows["hour=7/pay"].assignment
    assert sorted((pair.topic, pair.partition) for pairs in found.values() for pair in pairs) == [
        ("mail", 0),
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
    ]
    assert ("orders", 0) in {(pair.topic, pair.partition) for pair in found["a"]}


def test_each_member_leaves_in_some_of_many_groups(spark):
    rows = [(f"g-{group}", f"m-{owner}", "t", owner) for group in range(24) for owner in range(3)]
    found = groups_to_workload(
        spark.createDataFrame(rows, "group string, member string, topic string, partition int")
    )
    leaving = [json.loads(row.scenario)["events"][0]["leave"] for row in found.collect()]
    assert all(leaving.count(f"m-{owner}") > 3 for owner in range(3))


def test_in_each_draw_another_member_leaves_and_more_draws_add_to_the_same_ones(table):
    three, two = (
        {row.scenario_id: row for row in groups_to_workload(table, keys=["hour"], draws=n).collect()}
        for n in (9, 2)
    )
    pay = [three[f"hour=7/draw={number}/pay"] for number in range(3)]
    assert sorted(json.loads(row.scenario)["events"][0]["leave"] for row in pay) == ["a", "b", "c"]
    assert [(row.draw, row.hour, row.events) for row in pay] == [(0, 7, 1), (1, 7, 1), (2, 7, 1)]
    assert sorted(three) == sorted([*two, "hour=7/draw=2/pay"])
    assert all(three[name].scenario == row.scenario for name, row in two.items())


def test_draws_are_of_members_that_leave(table):
    with pytest.raises(InputError, match=r"^draws: found 0, expected at least 1"):
        groups_to_workload(table, draws=0)


def test_draws_with_events_differ_in_their_seeds(table):
    made = groups_to_workload(table, keys=["hour"], draws=7, events=[]).collect()
    of_one = [row for row in made if row.scenario_id.endswith(made[0].scenario_id.rpartition("/")[2])]
    assert len({row.scenario_id for row in of_one if row.hour == made[0].hour}) == 7
    assert len({seed_of(row.scenario_id) for row in of_one}) == len(of_one)


def test_columns_may_be_nested_and_events_be_given(spark):
    row = (("pay",), [("orders", 0, "a"), ("orders", 1, "b")])
    schema = "labels struct<group: string>, parts array<struct<topic: string, partition: int, owner: string>>"
    table = spark.createDataFrame([row], schema)
    restart = {"at": "1m", "rolling_restart": {"every": "20s", "down": "5s"}}
    (row,) = groups_to_workload(
        table,
        group="labels.group",
        member="parts.owner",
        topic="parts.topic",
        partition="parts.partition",
        events=[restart],
    ).collect()
    document = json.loads(row.scenario)
    assert [member["owned"] for member in document["members"]] == [{"orders": [0]}, {"orders": [1]}]
    assert document["events"] == [restart]
    names = {"scenario_id", "scenario", "repairs", "repaired", "differing", "largest_topic"}
    assert row.asDict().keys() == names


def test_a_column_that_does_not_exist_is_refused_by_name(table):
    for name in ("owner", "team.owner"):
        with pytest.raises(InputError, match=f"groups: found '{name}', expected a column"):
            groups_to_workload(table, member=name)


def test_files_with_a_row_per_partition_are_a_workload(spark, table, tmp_path):
    rows = table.drop("hour").limit(2).selectExpr("*", "'x' status", "array(1) list", "lag pod")
    rows.write.parquet(str(tmp_path / "hours" / "hour=7"))
    (found,) = read_workloads(spark, str(tmp_path / "hours"), keys=["hour"]).collect()
    carried = {"hour": 7, "team": "red", "pod": "7", "repairs": 1, "repaired": "amounts=1", "differing": None}
    carried["largest_topic"] = 3
    assert found.scenario_id == "hour=7/pay"
    assert {name: value for name, value in found.asDict().items() if name not in COLUMNS} == carried


APPLIED = {
    "process_rate": "@handled",
    "client": "librdkafka",
    "batch_overhead": Several(["5ms", "700ms"]),
    "config": {"max.poll.records": 100},
}


def test_members_have_the_application_that_is_given_and_each_value_of_a_field_makes_a_scenario(spark):
    rows = [("g", f"m-{owner}", "t", owner, 100.0 * owner) for owner in (1, 2, 2)]
    schema = "group string, member string, topic string, partition int, handled double"
    table = spark.createDataFrame(rows, schema)
    found = {row.scenario_id: row for row in groups_to_workload(table, application=APPLIED).collect()}
    assert {name: row.batch_overhead for name, row in found.items()} == {
        "batch_overhead=5ms/g": "5ms",
        "batch_overhead=700ms/g": "700ms",
    }
    one, two = json.loads(found["batch_overhead=700ms/g"].scenario)["members"]
    assert {name: two[name] for name in APPLIED} == {
        "process_rate": 200.0,
        "client": "librdkafka",
        "batch_overhead": "700ms",
        "config": {"max.poll.records": 100},
    }
    assert one["process_rate"] == 100.0


def test_fields_of_a_table_and_events_come_with_the_workload(spark, table, tmp_path):
    path = tmp_path / "hours"
    table.limit(2).withColumnRenamed("hour", "records").write.parquet(str(path))
    restart = [{"at": "1m", "rolling_restart": {"every": "20s", "down": "5s"}}]
    (row,) = read_workloads(
        spark, str(path), events=restart, application={"process_rate": "@records"}
    ).collect()
    document = json.loads(row.scenario)
    assert (document["events"], [m["process_rate"] for m in document["members"]]) == (restart, [7, 7])
    assert "records" not in row.asDict()
    with pytest.raises(InputError, match="expected a table with a row per partition for --member"):
        read_workloads(spark, "tests/data/scenarios", application={"client": "java"})


@pytest.mark.parametrize(
    ("application", "error"),
    [
        ({"colour": 1}, "application: found 'colour', expected one of"),
        ({"owned": {}}, "application: found 'owned'"),
        ({"client": "jav"}, "application client: found 'jav', expected"),
        ({"process_rate": Several([5, -1])}, "application process_rate: found -1"),
        ({"process_rate": "@nothing"}, "groups: found 'nothing', expected a column"),
    ],
)
def test_a_field_that_members_cannot_have_is_refused_by_name(table, application, error):
    with pytest.raises(InputError, match=f"^{error}"):
        groups_to_workload(table, application=application)


def test_fields_are_read_as_in_yaml_and_braces_have_several_values():
    texts = {
        "process_rate": "1000",
        "batch_overhead": "{5ms,700ms}",
        "start_up": "[1s, 3s]",
        "rack": "@zone",
    }
    assert read_application(texts, "--member") == {
        "process_rate": 1000,
        "batch_overhead": Several(["5ms", "700ms"]),
        "start_up": ["1s", "3s"],
        "rack": "@zone",
    }


RATES = [("orders", 0, 3_600, 7), ("orders", 1, 7_200, 7), ("orders", 0, 36_000, 8)]
OWNERS = [("pay", "a", "orders", 0), ("pay", "b", "orders", 1), ("ship", "x", "orders", 0)]


def test_rates_and_members_are_two_tables_and_rates_are_records_in_an_interval(spark, tmp_path):
    rates = spark.createDataFrame(RATES, "topic string, partition int, records long, hour int")
    members = spark.createDataFrame(OWNERS, "team string, pod string, topic string, partition int")
    columns = {"group": "team", "member": "pod", "rate": "records"}
    made = partitions_to_workload(rates, members, interval_ms=3_600_000, columns=columns, keys=["hour"])
    found = {row.scenario_id: json.loads(row.scenario)["topics"] for row in made.collect()}
    assert found == {
        "hour=7/pay": {"orders": {"partitions": 2, "rates": [1.0, 2.0]}},
        "hour=7/ship": {"orders": {"partitions": 1, "rates": [1.0]}},
        "hour=8/pay": {"orders": {"partitions": 2, "rates": [10.0, 0.0]}},
        "hour=8/ship": {"orders": {"partitions": 1, "rates": [10.0]}},
    }
    for kind in ("parquet", "csv"):
        for name, table in (("rates", rates), ("members", members)):
            table.coalesce(1).write.format(kind).option("header", True).save(str(tmp_path / kind / name))
        read = read_workloads(
            spark,
            str(tmp_path / kind / "rates"),
            members=str(tmp_path / kind / "members"),
            interval_ms=3_600_000,
            columns=columns,
            keys=["hour"],
        )
        assert {row.scenario_id: json.loads(row.scenario)["topics"] for row in read.collect()} == found
    with pytest.raises(InputError, match="rates: found 'rate', expected one of topic, partition, records"):
        partitions_to_workload(rates, members)


def test_a_scenario_is_shown_as_it_is_scored(workload):
    job = Job(("range",), start="range")
    made = yaml.safe_load(shown(workload, "hour=7/pay", job))
    assert made["seed"] == seed_of("hour=7/pay")
    owned = {member["id"]: member.get("owned") for member in made["members"]}
    assert owned == {"a": {"mail": [0], "orders": [0]}, "b": {"orders": [1]}, "c": {"orders": [2]}}
    again = Scorer(Job(("range",))).rows("hour=7/pay", json.dumps(made))
    (row,) = workload.where("scenario_id = 'hour=7/pay'").collect()
    assert figures(again) == figures(Scorer(job).rows("hour=7/pay", row.scenario))
    with pytest.raises(
        InputError, match="--show: found 'pay', expected an id of the workload, such as hour="
    ):
        shown(workload, "pay", job)


def figures(rows):
    return [
        {name: row.get(name) for name in ("moved_partitions", "rounds", "messages", "seed")} for row in rows
    ]
