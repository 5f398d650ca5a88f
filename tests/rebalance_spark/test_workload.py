"""Workloads of running groups, from one table and from two, on Spark."""

import json

import pytest

from coordinator_core.errors import InputError
from rebalance_spark.applications import Several, read_application
from rebalance_spark.sources import read_workload
from rebalance_spark.workloads import SENTENCES, said, workload

pytestmark = pytest.mark.slow

SCHEMA = (
    "group string, member string, topic string, partition string, rate string, lag string,"
    " team string, hour int"
)
ROWS = [
    ("pay", "a", "orders", "0", "5", "7", "red", 7),
    ("pay", "b", "orders", "2", "n/a", None, "red", 7),
    ("pay", "c", None, None, None, None, "red", 7),
    ("pay", None, "mail", "0", "1", "many", "blue", 7),
    ("ship", "x", "orders", "0", "2", "3", None, 7),
    ("pay", "a", "orders", "0", "6", "7", "red", 8),
    ("pay", "a", "orders", "0", "8", "9", "red", 8),
    ("pay", "a", "orders", "first", "8", "9", "red", 8),
    ("poison", "a", "orders", "20000000", "1", "1", "red", 7),
    ("line\nfeed", None, "orders", "0", "1", "1", "red", 7),
    ("", "a", "orders", "5", "1", "1", "red", 7),
]


@pytest.fixture(scope="module")
def table(spark):
    return spark.createDataFrame(ROWS, SCHEMA)


@pytest.fixture(scope="module")
def found(table):
    return workload(table, keys=["hour"], keep=["team"])


@pytest.fixture(scope="module")
def scenarios(found):
    return by_id(found)


def by_id(found):
    return {row.scenario_id: row for row in found.scenarios.collect()}


def topics(row):
    return json.loads(row.scenario)["topics"]


def problems(found):
    return {row.kind: (row["count"], row.example) for row in found.problems.collect()}


def test_each_group_of_each_hour_is_a_scenario_with_its_columns(found, scenarios):
    names = ["scenario_id", "group", "hour", "scenario", "members", "partitions", "events", "repairs", "team"]
    assert found.scenarios.columns == names
    assert sorted(scenarios) == [
        "hour=7/line\nfeed",
        "hour=7/pay",
        "hour=7/poison",
        "hour=7/ship",
        "hour=8/pay",
    ]
    row = scenarios["hour=7/pay"]
    assert row[1:3] + row[4:] == ("pay", 7, 3, 4, 1, 3, None)
    assert (scenarios["hour=8/pay"].team, scenarios["hour=7/ship"].team) == ("red", None)


def test_an_unknown_rate_is_not_zero_and_an_unknown_lag_is_no_backlog(scenarios):
    assert topics(scenarios["hour=7/pay"]) == {
        "mail": {"partitions": 1, "rates": [1.0], "backlog": [0]},
        "orders": {"partitions": 3, "rates": [5.0, 5.0, 5.0], "backlog": [7, 0, 0]},
    }
    assert topics(scenarios["hour=8/pay"]) == {"orders": {"partitions": 1, "rates": [7.0], "backlog": [9]}}


def test_a_number_with_separators_is_read_where_it_can_mean_one_thing_only(spark):
    texts = ("1,234.5", "12,345,678.25", "1,234", "3k", "-1")
    rows = [("g", "a", "t", str(number), text) for number, text in enumerate(texts)]
    found = workload(
        spark.createDataFrame(
            rows, "group string, member string, topic string, partition string, rate string"
        )
    )
    (row,) = found.scenarios.collect()
    mean = (1234.5 + 12_345_678.25) / 2
    assert topics(row)["t"]["rates"] == [1234.5, 12_345_678.25, mean, mean, mean]
    assert problems(found) | {"few_scenarios": None} == {
        "unreadable_rate": (2, "g t 2: '1,234'"),
        "unknown_rate": (1, "g t 4: '-1'"),
        "few_scenarios": None,
    }


def test_a_group_that_cannot_be_harms_no_other(scenarios):
    assert "topic 'orders'" in scenarios["hour=7/poison"].scenario
    assert "partition 20,000,000" in scenarios["hour=7/poison"].scenario
    assert scenarios["hour=7/ship"].scenario.startswith("{")


def test_problems_are_counted_by_kind_with_an_example_in_one_line(found):
    assert problems(found) == {
        "unknown_rate": (1, "pay orders 2: 'n/a'"),
        "missing_row": (1, "pay orders 1"),
        "unknown_lag": (2, "pay mail 0: 'many'"),
        "duplicate": (1, "pay orders 0"),
        "no_partition": (1, "pay orders first"),
        "no_group": (1, "orders 5"),
        "impossible": (
            1,
            "group 'poison', topic 'orders': found partition 20,000,000, expected numbers below 200,000",
        ),
        "no_members": (1, "line\\nfeed"),
        "differing": (1, "team in pay"),
        "few_scenarios": (4, "line\\nfeed: 1 of 6"),
    }
    assert found.problems.dtypes == [("kind", "string"), ("count", "bigint"), ("example", "string")]


def test_each_kind_is_said_in_a_sentence(found):
    rows = found.problems.collect()
    lines = said(rows)
    assert lines[0] == "unknown rates: 1 (pay orders 2: 'n/a'); each takes the mean of its topic"
    assert [line.count("\n") for line in lines] == [0] * len(rows)
    assert said(rows, "row")[0] == "unknown rates: 1 (pay orders 2: 'n/a'); their groups are errors"
    assert {row.kind for row in rows} <= set(SENTENCES)


def test_groups_with_enough_scenarios_and_known_rates_have_no_problems(spark):
    rows = [("g", f"m{number}", "t", number, 1.5, hour) for number in range(2) for hour in range(6)]
    made = spark.createDataFrame(
        rows, "group string, member string, topic string, partition int, rate double, hour int"
    )
    assert problems(workload(made, keys=["hour"])) == {}
    assert problems(workload(made)) == {
        "duplicate": (10, "g t 0"),
        "unnamed_key": (1, "hour: 6 values in g"),
        "few_scenarios": (1, "g: 1 of 6"),
    }


def test_bad_rows_are_refused_at_once_or_by_group(table):
    with pytest.raises(
        InputError, match=r"found unknown_rate 1 times \(pay orders 2: 'n/a'\), expected none"
    ):
        workload(table, keys=["hour"], on_bad="raise")
    rows = by_id(workload(table, keys=["hour"], on_bad="row"))
    assert {name: row.scenario[0] for name, row in rows.items()} == {
        "hour=7/line\nfeed": "{",
        "hour=7/ship": "{",
        "hour=7/pay": "#",
        "hour=8/pay": "#",
        "hour=7/poison": "#",
    }
    assert workload(table.where("group = 'ship'"), on_bad="raise").scenarios.count() == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"draws": 0}, "draws: found 0, expected at least 1"),
        ({"on_bad": "rows"}, "on_bad: found 'rows', expected one of"),
        ({"interval": "soon"}, "interval: found 'soon'"),
        ({"member": "owner"}, "table: found 'owner', expected one of group, member"),
        ({"member": "team.owner"}, "table: found 'team.owner', expected one of group, member"),
        ({"keep": ["events"]}, "table: found 'events'"),
        ({"keys": "hour"}, "keys: found 'hour', expected a list of columns"),
        ({"application": {"colour": 1}}, "application: found 'colour', expected one of"),
        ({"application": {"owned": {}}}, "application: found 'owned'"),
        ({"application": {"client": "jav"}}, "application client: found 'jav', expected"),
        ({"application": {"process_rate": Several([5, -1])}}, "application process_rate: found -1"),
        ({"application": {"process_rate": "@nothing"}}, "table: found 'nothing', expected one of"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(table, options, error):
    with pytest.raises(InputError, match=f"^{error}"):
        workload(table, **options)


def test_a_name_that_two_columns_of_scenarios_would_have_is_refused(table):
    renamed = table.withColumnRenamed("team", "events")
    for options in ({"keep": ["events"]}, {"keep": ["hour"], "keys": ["hour"]}):
        with pytest.raises(InputError, match=r"found a second column '(events|hour)', expected another name"):
            workload(renamed, **options)


def test_columns_may_be_nested_and_arrays(spark):
    row = (("pay",), [("orders", 0, "a"), ("orders", 1, "b")])
    schema = "labels struct<group: string>, parts array<struct<topic: string, partition: int, owner: string>>"
    names = {
        "group": "labels.group",
        "member": "parts.owner",
        "topic": "parts.topic",
        "partition": "parts.partition",
    }
    (row,) = workload(spark.createDataFrame([row], schema), **names).scenarios.collect()
    assert [member["owned"] for member in json.loads(row.scenario)["members"]] == [
        {"orders": [0]},
        {"orders": [1]},
    ]
    assert "rates" not in topics(row)["orders"]


def test_a_decimal_of_a_column_is_a_number_of_a_member(spark):
    made = spark.sql(
        "select 'g' `group`, 'a' member, 't' topic, 0 partition, cast(2.5 as decimal(9, 2)) handled"
    )
    (row,) = workload(made, application={"process_rate": "@handled"}).scenarios.collect()
    assert json.loads(row.scenario)["members"][0]["process_rate"] == 2.5


def test_fields_are_read_as_in_yaml_and_braces_have_several_values():
    texts = {"process_rate": "1000", "batch_overhead": "{5ms,700ms}", "start_up": "[1s, 3s]", "rack": "@zone"}
    assert read_application(texts, "--member") == {
        "process_rate": 1000,
        "batch_overhead": Several(["5ms", "700ms"]),
        "start_up": ["1s", "3s"],
        "rack": "@zone",
    }


def test_a_workload_is_made_without_a_job_and_once(spark, table, capsys):
    spark.sparkContext.setJobGroup("making", "")
    workload(table, keys=["hour"], rates=table, draws=2).problems.explain("simple")
    found = spark.sparkContext.statusTracker().getJobIdsForGroup("making")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert found == []
    assert "InMemoryTableScan" in capsys.readouterr().out


def test_rates_of_a_long_interval_are_small(table):
    found = by_id(workload(table.where("group = 'ship'"), interval="1000d"))
    assert topics(found["ship"])["orders"]["rates"] == [pytest.approx(2 / 86_400_000)]


# --- two tables

RATES = [
    ("orders", 0, "3600", 7),
    ("orders", 1, "7200", 7),
    ("orders", 0, "36000", 8),
    ("orders", 0, "72000", 8),
    ("orders", 1, "n/a", 8),
    ("lost", 3, "1", 8),
    ("lost", 3, "1", 8),
]
OWNERS = [
    ("pay", "a", "orders", 0),
    ("pay", "b", "orders", 1),
    ("pay", "c", None, None),
    ("pay", "a", "mail", 0),
    ("ship", "x", "orders", 0),
    (None, "x", "orders", 0),
]
NAMES = {"group": "team", "member": "pod", "rate": "records", "interval": "1h"}


@pytest.fixture(scope="module")
def two(spark):
    rates = spark.createDataFrame(RATES, "topic string, partition int, records string, hour int")
    return spark.createDataFrame(OWNERS, "team string, pod string, topic string, partition int"), rates


def test_rates_of_another_table_are_records_in_an_interval_and_each_of_its_hours_one_of_all_groups(two):
    found = workload(two[0], rates=two[1], keys=["hour"], **NAMES)
    rates = {name: {t: of["rates"] for t, of in topics(row).items()} for name, row in by_id(found).items()}
    assert rates == {
        "hour=7/pay": {"mail": [1.5], "orders": [1.0, 2.0]},
        "hour=7/ship": {"orders": [1.0]},
        "hour=8/pay": {"mail": [15.0], "orders": [15.0, 15.0]},
        "hour=8/ship": {"orders": [15.0]},
    }
    assert problems(found) == {
        "unknown_rate": (1, "pay orders 1: 'n/a'"),
        "duplicate": (2, "pay orders 0"),
        "no_group": (3, "orders 0"),
        "no_rate_row": (2, "pay mail 0"),
        "no_owner_row": (1, "lost 3"),
        "few_scenarios": (2, "pay: 2 of 6"),
    }


def test_a_key_that_is_forgotten_is_the_mean_of_two_tables_and_named(two):
    found = workload(two[0], rates=two[1], **NAMES)
    assert topics(by_id(found)["ship"])["orders"]["rates"] == [pytest.approx((1 + 10 + 20) / 3)]
    assert problems(found)["unnamed_key"] == (2, "hour: 2 values in pay")
    assert problems(found)["duplicate"] == (5, "pay orders 0")


def test_a_key_of_both_tables_is_equal_in_both_also_if_it_is_null(spark, two):
    owners = two[0].crossJoin(spark.createDataFrame([(7,), (None,)], "hour int"))
    rates = two[1].selectExpr("topic", "partition", "records", "nullif(hour, 8) as hour")
    found = by_id(workload(owners, rates=rates, keys=["hour"], **NAMES))
    assert {name: topics(row)["orders"]["rates"][0] for name, row in found.items()} == {
        "hour=7/pay": 1.0,
        "hour=7/ship": 1.0,
        "hour=/pay": 15.0,
        "hour=/ship": 15.0,
    }


def test_a_table_of_rates_without_rates_is_refused(two):
    with pytest.raises(
        InputError, match="rates: found the columns topic, partition, records, hour, expected 'rate'"
    ):
        workload(two[0], rates=two[1], group="team", member="pod")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_two_tables_are_read_from_files(spark, two, tmp_path, kind):
    for name, table in zip(("owners", "rates"), two, strict=True):
        table.coalesce(1).write.format(kind).option("header", True).save(str(tmp_path / name))
    read = read_workload(
        spark, str(tmp_path / "rates"), members=str(tmp_path / "owners"), keys=["hour"], **NAMES
    )
    assert by_id(read) == by_id(workload(two[0], rates=two[1], keys=["hour"], **NAMES))


def test_files_with_a_row_per_partition_keep_the_columns_that_scores_can_have(spark, table, tmp_path):
    rows = (
        table.where("group = 'ship'").drop("hour").selectExpr("*", "'x' status", "array(1) list", "lag pod")
    )
    rows.write.parquet(str(tmp_path / "hours" / "hour=7"))
    (found,) = read_workload(spark, str(tmp_path / "hours"), keys=["hour"]).scenarios.collect()
    assert found.scenario_id == "hour=7/ship"
    assert list(found.asDict())[-3:] == ["repairs", "team", "pod"]
