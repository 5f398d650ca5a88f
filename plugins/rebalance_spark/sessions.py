"""A Spark session that is pleasant on a laptop and leaves a cluster's settings alone."""

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from rebalance_spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 4
"""How often a task may fail before its job does; a local master tries only once unless it is told."""

ARROW_BATCH = 4_000
"""Rows of a batch for Python; the best of what was measured."""

_SPARK_MISSING = 'PySpark: pip install "rebalance-lab[spark]"'


def spark_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, *, name: str = "rebalance-lab"
) -> "SparkSession":
    """The session that there is, or a new one; `conf` goes before everything set here.

    `master` is ``local[*]`` when neither it, `conf` nor spark-submit says otherwise. Of a session that
    there is only what batches for Python need is set, and `conf`. The generator of workloads is
    registered. Raises InputError where PySpark or a Java is missing, or Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("Spark", "no PySpark", _SPARK_MISSING) from None
    from rebalance_spark.generator import register_generator

    asked = dict(conf or {})
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    starts = not submitted and SparkSession.getActiveSession() is None
    if starts:
        asked.setdefault("spark.master", retrying(master or "local[*]"))
        if asked["spark.master"].startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            asked = {**_local_settings(), **asked}
    elif submitted and master is not None:
        asked["spark.master"] = master
    settings = {**_settings(), **asked}
    builder: Any = SparkSession.builder.appName(name)
    for key, value in settings.items():
        if not (submitted and key not in asked and _is_set(key)):
            builder = builder.config(key, value)
    wrong: tuple[type[Exception], ...] = (*spark_errors(), RuntimeError, OSError)
    try:
        with java_home() if starts else nullcontext():
            spark: SparkSession = builder.getOrCreate()
        register_generator(spark)  # by which settings are read that Spark has not looked at yet
    except wrong as problem:
        found = f"a session that does not start ({in_short(problem)})"
        raise InputError(
            "Spark", found, "a master that can be reached, and settings it understands"
        ) from None
    return spark


def retrying(master: str) -> str:
    """A local master that repeats a task whose worker died, as a cluster does."""
    if master == "local":
        return f"local[1,{TRIES}]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{TRIES}]"
    return master


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises: errors of its own, and those of Java that it passes on as they are."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def in_short(problem: Exception) -> str:
    """What Spark says of a problem, in one line and without the stack."""
    lines = [line.strip() for line in str(problem).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("at "))[:400]


def cores(spark: "SparkSession") -> int:
    """Tasks that run at once."""
    context = getattr(spark, "_sc", None)  # a Connect session has none
    if context is not None:
        return int(context.defaultParallelism)
    return os.cpu_count() or 1


def _settings() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH),
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    }


def _local_settings() -> dict[str, str]:
    """Nothing that listens on a network, no console full of messages, few partitions, a quick start.

    Of Java's two compilers the first is enough: the cores belong to Python.
    """
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    java = f"-Dlog4j2.configurationFile={log} -XX:TieredStopAtLevel=1"
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
    }


def _is_set(key: str) -> bool:
    """Whether spark-submit was told about a setting."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().contains(key)
