"""Batch evaluation on Spark: workloads in, a row per scenario and strategy out.

    from rebalance_spark import read_workloads, score, spark_session, summary

    spark = spark_session()
    scores = score(read_workloads(spark, "workload"), ["range", "sticky"], fidelity="plan")
    summary(scores).show()

Nothing here imports PySpark before it is used, so that ``rebalance-lab`` starts fast and without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_spark.generator import register_generator as register_generator
    from rebalance_spark.scoring import score as score
    from rebalance_spark.sessions import spark_session as spark_session
    from rebalance_spark.sources import read_workloads as read_workloads
    from rebalance_spark.summaries import pareto as pareto
    from rebalance_spark.summaries import quantiles as quantiles
    from rebalance_spark.summaries import statuses as statuses
    from rebalance_spark.summaries import summary as summary
    from rebalance_spark.summaries import wins as wins

_HOMES = {
    "pareto": "summaries",
    "quantiles": "summaries",
    "read_workloads": "sources",
    "register_generator": "generator",
    "score": "scoring",
    "spark_session": "sessions",
    "statuses": "summaries",
    "summary": "summaries",
    "wins": "summaries",
}
__all__ = [
    "pareto",
    "quantiles",
    "read_workloads",
    "register_generator",
    "score",
    "spark_session",
    "statuses",
    "summary",
    "wins",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"rebalance_spark.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
