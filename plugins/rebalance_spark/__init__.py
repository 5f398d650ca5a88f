"""Batch evaluation on Spark: scenarios in, a row per scenario and strategy out, a decision per group.

    from rebalance_spark import decide, score, spark_session, workload

    spark = spark_session()
    w = workload(spark.table("consumers"), group="consumer_group", rate="msgs_per_sec", keys=["hour"])
    scores = w.transform(score, ["range", "sticky"], fidelity="plan")
    scores.transform(decide, today="range").show()

A name is imported from its module when it is first used, so that ``rebalance-lab`` starts fast, also where
PySpark is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_spark.assigning import assign as assign
    from rebalance_spark.assigning import register_functions as register_functions
    from rebalance_spark.decisions import decide as decide
    from rebalance_spark.generator import register_generator as register_generator
    from rebalance_spark.scoring import score as score
    from rebalance_spark.sessions import spark_session as spark_session
    from rebalance_spark.shipping import ship as ship
    from rebalance_spark.sources import read_workload as read_workload
    from rebalance_spark.storage import read_scores as read_scores
    from rebalance_spark.storage import write_scores as write_scores
    from rebalance_spark.workloads import workload as workload

_NAMES = {
    "assigning": ("assign", "register_functions"),
    "decisions": ("decide",),
    "generator": ("register_generator",),
    "scoring": ("score",),
    "sessions": ("spark_session",),
    "shipping": ("ship",),
    "sources": ("read_workload",),
    "storage": ("read_scores", "write_scores"),
    "workloads": ("workload",),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module(f"{__name__}.sessions").check_pyspark()
    return getattr(import_module(_MODULES[name]), name)
