"""A first job that looks whether the workers of a session can score."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from rebalance_spark.sessions import cores, in_short, spark_errors
from rebalance_spark.storage import context_of, described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("pyarrow", "rebalance_spark.worker")
_MOST_TASKS = 64
_EXPECTED = "a Python with the package on every worker: --ship sends it, or install it there"


def check_workers(spark: "SparkSession", plugins: Sequence[str] = ()) -> None:
    """Check that the workers can import the package and further modules.

    The workers of a local master are processes of the same Python: nothing is checked there.

    Raises:
        InputError: if they cannot, with the module that is missing and the machine.
    """
    from pyspark.sql import functions as sf

    if context_of(spark) is not None and str(spark.conf.get("spark.master")).startswith("local"):
        return
    tasks = min(_MOST_TASKS, max(2, cores(spark)))
    missing: Any = sf.udf(_probe((*NEEDED, *plugins)), "string", useArrow=False)
    try:
        with described(spark, "look whether the workers can import the package"):
            found = (
                spark.range(0, tasks, 1, tasks).select(missing("id").alias("missing")).distinct().collect()
            )
    except spark_errors() as error:
        raise InputError("workers", in_short(error), _EXPECTED) from None
    problems = sorted(row["missing"] for row in found if row["missing"])
    if problems:
        raise InputError("workers", "; ".join(problems[:3]), _EXPECTED)


def _probe(modules: Sequence[str]) -> Callable[[int], str]:
    """Return the function of the job. It is sent by value, because a worker may not have this module."""
    names = tuple(modules)

    def missing(_row: int) -> str:
        import importlib
        import platform
        import socket

        for name in names:
            try:
                importlib.import_module(name)
            except Exception as error:
                where = f"Python {platform.python_version()} on {socket.gethostname()}"
                return f"{type(error).__name__}: {error} ({where})"
        return ""

    return missing
