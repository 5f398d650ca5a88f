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
from rebalance_spark.java import class_options, find_java, java_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIES = 4
"""The number of attempts for a task. A local master makes only one by default."""

ARROW_BATCH = 4_000
"""Rows per batch for Python: the fastest of the measured sizes."""

_PYTHON_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b")
"""The line after a traceback of Python."""

_FILE = re.compile(r"(?:reading file|Checksum error:) (\S+?)\.?(?:\s|$)")
"""How Spark names a file, as an address."""

_INSTALL = 'pip install "rebalance-lab[spark]"'


def check_pyspark() -> None:
    """Check the version of PySpark.

    Raises:
        InputError: if there is no PySpark, or one older than 4.0.
    """
    try:
        from pyspark import __version__ as version
    except ImportError:
        raise InputError("Spark", "no PySpark", f"PySpark: {_INSTALL}") from None
    if int(version.partition(".")[0]) < 4:
        raise InputError("Spark", f"PySpark {version}", f"4.0 or newer: {_INSTALL}")


def context_of(spark: "SparkSession") -> Any:
    """Return the context of a session, or None for a session of Spark Connect."""
    return getattr(spark, "_sc", None)


@contextmanager
def described(spark: "SparkSession", text: str) -> Iterator[None]:
    """Give the jobs that this thread starts within the context a description in Spark's own pages."""
    context = context_of(spark)
    if context is None:
        yield
        return
    context.setJobDescription(f"rebalance-lab: {text}")
    try:
        yield
    finally:
        context.setJobDescription(None)


def has_table(spark: "SparkSession", name: str) -> bool:
    """Return whether the catalog has a table.

    Raises:
        InputError: if it is not the name of one.
    """
    from pyspark.errors import AnalysisException

    try:
        return spark.catalog.tableExists(name)
    except AnalysisException as error:
        raise InputError(f"table {name}", in_short(error), "the name of a table, as db.name") from None


def read_table(spark: "SparkSession", name: str) -> "DataFrame":
    """Return a table of the catalog.

    Raises:
        InputError: if it does not exist.
    """
    if not has_table(spark, name):
        raise InputError(f"table {name}", "no such table", "a table or view of the catalog, as db.name")
    return spark.table(name)


def spark_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    name: str = "rebalance-lab",
    record: bool = False,
) -> "SparkSession":
    """Return the active session, or a new one, with the generator of workloads and the table
    function `rebalance_assign` registered.

    `conf` overrides the settings of this module. The master is ``local[*]`` unless `master`, `conf` or
    spark-submit names another. In an active session, only `conf` and the settings for batches in Python
    change. `record`: see `java.class_options`.

    Raises:
        InputError: if PySpark or Java is missing, or if Spark does not start.
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    given = dict(conf or {})
    if _is_remote(master):
        return _remote_session(master, {**_settings(), **given}, name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    starts = not submitted and SparkSession.getActiveSession() is None
    java = find_java() if starts else None
    if java is not None:
        given.setdefault("spark.master", retrying(master or "local[*]"))
        if given["spark.master"].startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            given = {**_local_settings(class_options(java, record=record)), **given}
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
        with java_home(java) if starts else nullcontext():
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


def is_local(spark: "SparkSession") -> bool:
    """Return whether the workers of a session are processes of this machine and of the same Python."""
    context = context_of(spark)
    return context is not None and str(context.master).startswith("local")


def _is_remote(master: str | None) -> bool:
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
    context = context_of(spark)
    if context is not None:
        return int(context.defaultParallelism)
    return os.cpu_count() or 1


def _settings() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH),
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    }


def _local_settings(classes: str) -> dict[str, str]:
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
        "spark.driver.extraJavaOptions": f"{java} {classes}".strip(),
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
    }


def _is_set(key: str) -> bool:
    """Return whether spark-submit sets a setting."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().contains(key)
