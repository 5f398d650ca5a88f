"""The columns of workloads and scores are the same for Spark, for Arrow, and for the registry."""

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job, Scorer, computed_metrics, registry_with
from rebalance_spark.schema import SCORE_COLUMNS, WORKLOAD_COLUMNS, arrow_schema, score_columns, spark_schema
from tests.rebalance_spark.strangers import ME, SMALL_TEXT

SAME = {
    StringType(): pa.string(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    DoubleType(): pa.float64(),
}
METRICS = default_registry().metrics()
SCORES = score_columns(METRICS.values(), start=True)


@pytest.mark.parametrize("columns", [WORKLOAD_COLUMNS, SCORES], ids=["workloads", "scores"])
def test_spark_and_arrow_agree_on_names_order_types_and_what_may_be_null(columns):
    spark = [(f.name, SAME[f.dataType], f.nullable) for f in spark_schema(columns)]
    arrow = [(f.name, f.type, f.nullable) for f in arrow_schema(columns)]
    assert spark == arrow
    assert [name for name, *_ in arrow] == [column.name for column in columns]


@pytest.mark.parametrize("columns", [WORKLOAD_COLUMNS, SCORES], ids=["workloads", "scores"])
def test_every_column_says_what_it_is_and_its_unit_to_whoever_reads_the_schema(columns):
    for column, field in zip(columns, spark_schema(columns), strict=True):
        assert field.metadata == {"comment": column.doc, "unit": column.unit}
        assert column.doc.endswith(".")
        assert field.simpleString() == f"{column.name}:{column.type}"


def test_scores_have_the_metrics_that_are_computed_between_the_outcome_and_the_provenance():
    names = [column.name for column in SCORES]
    assert names[:4] == ["scenario_id", "strategy", "status", "error"]
    assert names[4 : 4 + len(METRICS)] == list(METRICS)
    assert names[4 + len(METRICS) :] == [column.name for column in SCORE_COLUMNS[4:]]
    found = {c.name: (c.type, c.unit, c.nullable, c.doc) for c in SCORES}
    assert all(found[m.name] == ("double", m.unit, True, m.doc) for m in METRICS.values())
    planned = computed_metrics(Job(("range",), Fidelity.PLAN))
    assert 0 < len(planned) < len(computed_metrics(Job(("range",)))) == len(METRICS)
    assert [m.name for m in computed_metrics(Job(("range",), metrics=("rounds",)))] == ["rounds"]
    assert "start_assignor" not in {column.name for column in score_columns(planned)}


def test_a_metric_of_a_module_is_a_column_like_any_other():
    columns = {column.name: column for column in score_columns(registry_with((ME,)).metrics().values())}
    assert (columns["strange_figure"].unit, columns["strange_figure"].doc) == ("parsec", "Always the same.")


def test_a_row_has_what_may_not_be_null_whatever_becomes_of_it():
    required = {column.name for column in SCORES if not column.nullable}
    scorer = Scorer(Job(("range", "no-such-strategy"), fidelity=Fidelity.PLAN))
    for text in (SMALL_TEXT, ""):
        for row in scorer.rows("x", text):
            assert all(row[name] is not None for name in required)


def test_every_seed_that_a_scenario_may_have_fits_its_column():
    largest = 2**63 - 1
    seeded = load_scenario_text(SMALL_TEXT.replace('"seed": 4', f'"seed": {largest}'), "x")
    column = arrow_schema(SCORE_COLUMNS).field("seed")
    assert pa.array([seeded.seed], column.type).to_pylist() == [largest]
    with pytest.raises(InputError):
        load_scenario_text(SMALL_TEXT.replace('"seed": 4', f'"seed": {largest + 1}'), "x")
