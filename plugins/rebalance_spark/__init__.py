"""Batch evaluation on Spark: one row per scenario in, one row per scenario and strategy out.

    from rebalance_spark import read_workloads, score, spark_session, summary, table

    spark = spark_session()
    scores = score(read_workloads(spark, "workload"), ["range", "sticky"], fidelity="plan")
    table(summary(scores))

A name is imported from its module when it is first used, so that ``rebalance-lab`` starts fast, also where
PySpark is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_spark.assigning import assign as assign
    from rebalance_spark.assigning import register_functions as register_functions
    from rebalance_spark.generator import register_generator as register_generator
    from rebalance_spark.groups import groups_to_workload as groups_to_workload
    from rebalance_spark.partitions import partitions_to_workload as partitions_to_workload
    from rebalance_spark.scoring import score as score
    from rebalance_spark.sessions import spark_session as spark_session
    from rebalance_spark.sources import read_workload_table as read_workload_table
    from rebalance_spark.sources import read_workloads as read_workloads
    from rebalance_spark.summaries import advice as advice
    from rebalance_spark.summaries import differences as differences
    from rebalance_spark.summaries import pareto as pareto
    from rebalance_spark.summaries import quantiles as quantiles
    from rebalance_spark.summaries import statuses as statuses
    from rebalance_spark.summaries import summary as summary
    from rebalance_spark.summaries import wins as wins
    from rebalance_spark.tables import table as table

_NAMES = {
    "assigning": ("assign", "register_functions"),
    "generator": ("register_generator",),
    "groups": ("groups_to_workload",),
    "partitions": ("partitions_to_workload",),
    "scoring": ("score",),
    "sessions": ("spark_session",),
    "sources": ("read_workload_table", "read_workloads"),
    "summaries": ("advice", "differences", "pareto", "quantiles", "statuses", "summary", "wins"),
    "tables": ("table",),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
