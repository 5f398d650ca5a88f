"""Spark sessions: settings for a single machine, and the settings of a cluster as they are."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from coordinator_core.errors import InputError
from rebalance_spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 4
"""The number of attempts for a task. A local master makes only one by default."""

ARROW_BATCH = 4_000
"""Rows per batch for Python: the fastest of the measured sizes."""

_PYTHON_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b")
"""The line after a traceback of Python."""

_FILE = re.compile(r"(?:reading file|Checksum error:) (\S+?)\.?(?:\s|$)")
"""How Spark names a file, as an address."""

_SPARK_MISSING = 'PySpark: pip install "rebalance-lab[spark]"'


def spark_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, *, name: str = "rebalance-lab"
) -> "SparkSession":
    """Return the active session, or a new one, with the generator of workloads and the table
    function `rebalance_assign` registered.

    `conf` overrides the settings of this module. The master is ``local[*]`` unless `master`, `conf` or
    spark-submit names another. In an active session, only `conf` and the settings for batches in Python
    change.

    Raises:
        InputError: if PySpark or Java is missing, or if Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("Spark", "no PySpark", _SPARK_MISSING) from None

    given = dict(conf or {})
    if is_remote(master):
        return _remote_session(master, {**_settings(), **given}, name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    starts = not submitted and SparkSession.getActiveSession() is None
    if starts:
        given.setdefault("spark.master", retrying(master or "local[*]"))
        if given["spark.master"].startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            given = {**_local_settings(), **given}
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        given.setdefault("spark.ui.showConsoleProgress", "false")
    elif submitted and master is not None:
        given["spark.master"] = master
    settings = {**_settings(), **given}
    builder: Any = SparkSession.builder.appName(name)
    for key, value in settings.items():
        if not (submitted and key not in given and _is_set(key)):
            builder = builder.config(key, value)
    with _starting("Spark", "a master that can be reached, and settings it understands"):
        with java_home() if starts else nullcontext():
            spark: SparkSession = builder.getOrCreate()
        _register(spark)  # Spark checks some settings only now
    return spark


@contextmanager
def _starting(where: str, expected: str) -> Iterator[None]:
    """Turn the errors of a session that does not start into one.

    Raises:
        InputError: if there is an error of Spark, or of its processes.
    """
    errors: tuple[type[Exception], ...] = (*spark_errors(), RuntimeError, OSError)
    try:
        yield
    except errors as error:
        raise InputError(where, f"a session that does not start ({in_short(error)})", expected) from None


def _register(spark: "SparkSession") -> None:
    from rebalance_spark.assigning import register_functions
    from rebalance_spark.generator import register_generator

    register_generator(spark)
    register_functions(spark)


def is_remote(master: str | None) -> bool:
    """Return whether a master, or the environment if there is none, names a server of Spark Connect."""
    return master.startswith("sc://") if master else "SPARK_REMOTE" in os.environ


def _remote_session(master: str | None, settings: Mapping[str, str], name: str) -> "SparkSession":
    """Return a session of Spark Connect."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName(name)
    with _starting("Spark Connect", "a server that can be reached, as sc://host:15002"):
        spark: SparkSession = (builder.remote(master) if master else builder).getOrCreate()
        for key, value in settings.items():
            spark.conf.set(key, value)
        _register(spark)
    return spark


def retrying(master: str) -> str:
    """Return a local master with retries, so that it repeats a task whose worker died, as a cluster does."""
    if master == "local":
        return f"local[1,{TRIES}]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{TRIES}]"
    return master


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that Spark raises: its own, and those of Java that it does not convert."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def in_short(error: Exception) -> str:
    """Return the message of an error of Spark in one line without the stack: that of Python if it has one."""
    _, is_python, traceback = str(error).rpartition("Traceback (most recent call last):")
    causes = [line for line in traceback.splitlines() if is_python and _PYTHON_ERROR.match(line)]
    if causes:
        return causes[0].strip()[:400]
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith("at ")]
    root = next((line for line in reversed(lines) if line.startswith("Caused by: ")), "")
    text = " ".join(lines)
    return text if len(text) <= 400 else f"{text[: 399 - len(root[:200])]} {root[:200]}".strip()


def file_of(error: Exception) -> str:
    """Return the file that Spark could not read, or an empty text if its error names none."""
    named = _FILE.search(str(error))
    return unquote(re.sub("^file:/+", "/", named[1])) if named else ""


@contextmanager
def files_named(expected: str) -> Iterator[None]:
    """Turn an error of Spark about a file into one that names it. Other errors are raised as they are.

    Raises:
        InputError: if a file cannot be read.
    """
    try:
        yield
    except spark_errors() as error:
        file = file_of(error)
        if not file:
            raise
        raise InputError(file, f"a file that cannot be read ({in_short(error)})", expected) from None


def cores(spark: "SparkSession") -> int:
    """Return the number of tasks that a session runs at once."""
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
    """Return settings for one machine: no network interface, few log messages and partitions, a fast start.

    Java uses only the first of its two compilers, because the work is done in Python; the room that it has
    for the code of that one alone is full after some minutes.
    """
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    java = f"-Dlog4j2.configurationFile={log} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    return {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
    }


def _is_set(key: str) -> bool:
    """Return whether spark-submit sets a setting."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().contains(key)
