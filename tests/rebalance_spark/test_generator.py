"""The generator of workloads as a source of Spark, read without Spark: every row once, however divided."""

import json

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_spark import generator
from rebalance_spark.generator import Rows, WorkloadReader
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema
from rebalance_spark.sizes import size_of_text
from tests.places import MENTIONS

PLAIN = {"profile": "microservices", "rows": "20"}


def reader(**options):
    return WorkloadReader({**PLAIN, **options})


def batches_of(**options):
    made = reader(**options)
    return [batch for part in made.partitions() for batch in made.read(part)]


def rows_of(**options):
    return [row for batch in batches_of(**options) for row in batch.to_pylist()]


# --- how rows are divided


@pytest.mark.parametrize("partitions", [1, 2, 7, 20])
@pytest.mark.parametrize("rows", [20, 33])
def test_partitions_have_every_row_once(partitions, rows):
    parts = reader(rows=str(rows), partitions=str(partitions)).partitions()
    assert len(parts) == partitions
    assert [n for part in parts for n in range(part.first, part.until)] == list(range(rows))
    sizes = [part.until - part.first for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"rows": "1000"}, 1),
        ({"rows": "1001"}, 2),
        ({"rows": "3", "partitions": "9"}, 3),
        ({"rows": "3", "partitions": "0"}, 1),
        ({"rows": "0", "partitions": "4"}, 1),
    ],
)
def test_a_thousand_rows_are_a_partition_when_nothing_else_is_said_and_none_is_empty(options, count):
    assert len(reader(**options).partitions()) == count


def test_rows_are_the_same_however_they_are_divided(monkeypatch):
    whole = rows_of(seed="5")
    assert len(whole) == 20
    for partitions in ("2", "7"):
        assert rows_of(seed="5", partitions=partitions) == whole
    monkeypatch.setattr(generator, "ROWS_PER_BATCH", 3)
    assert rows_of(seed="5", partitions="2") == whole
    assert rows_of(seed="5", rows="25")[:20] == whole != rows_of(seed="1")
    assert rows_of() == rows_of(seed="0")
    assert rows_of(rows="0") == []


def test_a_partition_is_made_in_batches(monkeypatch):
    monkeypatch.setattr(generator, "ROWS_PER_BATCH", 3)
    made = reader(rows="8")
    assert [batch.num_rows for batch in made.read(Rows(0, 8))] == [3, 3, 2]
    assert [batch.num_rows for batch in made.read(Rows(0, 6))] == [3, 3]
    assert [batch.num_rows for batch in made.read(Rows(6, 7))] == [1]


# --- what rows are


def test_a_row_is_the_scenario_of_its_profile_seed_and_number():
    generate = default_registry().generator("skewed", {})
    for number, row in enumerate(rows_of(profile="skewed", rows="4", seed="7", partitions="2")):
        assert row["scenario_id"] == f"skewed-7-{number}"
        assert json.loads(row["scenario"]) == generate(7, number)
        scenario = load_scenario_text(row["scenario"], "x")
        assert scenario.name == row["scenario_id"]
        sizes = {name: row[name] for name in ("members", "partitions", "events")}
        assert sizes == size_of_text(row["scenario"])._asdict()
        assert row["partitions"] == sum(topic.partitions for topic in scenario.topics.values())


def test_batches_have_the_columns_of_a_workload():
    (batch,) = batches_of()
    assert batch.schema == arrow_schema(WORKLOAD_COLUMNS)
    batch.validate(full=True)


def test_options_of_the_profile_are_given_to_it():
    rows = rows_of(profile="replay", rows="2", rates_csv=str(MENTIONS), window="1h", members="3")
    for row in rows:
        document = json.loads(row["scenario"])
        assert document["duration"] == 3_600_000
        assert len(document["members"]) == 3
        assert row["members"] == 4  # and one joins
        assert load_scenario_text(row["scenario"], "x").topics["mentions_one_day"].partitions == 10


def test_a_profile_of_a_module_is_known(tmp_path, monkeypatch):
    (tmp_path / "strange_profiles.py").write_text(
        "from coordinator_core.registry.hookspecs import WorkloadSpec, hookimpl\n"
        "def nothing(seed, row, *, word='none'):\n"
        "    return {'name': f'{seed} {row} {word}'}\n"
        "@hookimpl\n"
        "def workloads():\n"
        "    return [WorkloadSpec('nothing', nothing, options={'word': str})]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = {"profile": "nothing", "rows": "2", "seed": "3", "word": "x", "plugins": "strange_profiles"}
    assert [row["scenario"] for row in rows_of(**options)] == ['{"name":"3 0 x"}', '{"name":"3 1 x"}']
    assert [row["scenario_id"] for row in rows_of(**options)] == ["nothing-3-0", "nothing-3-1"]


# --- what is wrong is said before a job begins

NUMBERS = [
    (name, text) for name in ("rows", "seed", "partitions") for text in ("many", "-1", "", "²", "9" * 19)
]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"profile": "skewd"}, "profile: found 'skewd', expected one of churny, microservices, .*'skewed'"),
        ({"profile": ""}, "profile: found ''"),
        ({"rows": None}, "rebalance_workload: rows: found nothing"),
        *(({name: text}, f"rebalance_workload: {name}: found '{text}'") for name, text in NUMBERS),
        ({"windw": "1h"}, "profile 'microservices': found the option 'windw'"),
        ({"profile": "replay", "windw": "1h"}, "option of profile 'replay': found 'windw', .*mean 'window'"),
        ({"profile": "replay"}, "profile 'replay': found no option 'rates_csv', expected one, as NAME=VALUE"),
        (
            {"profile": "replay", "rates_csv": str(MENTIONS), "window": "2d"},
            "profile 'replay': window: found 2d, of 1d measured",
        ),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options, error):
    given = {name: text for name, text in {**PLAIN, **options}.items() if text is not None}
    with pytest.raises(InputError, match=f"^{error}"):
        WorkloadReader(given)


def test_a_module_that_there_is_not_is_named():
    with pytest.raises(PluginError, match="no_such_module"):
        reader(plugins="no_such_module")
