"""Workloads from Parquet, JSON Lines, folders of scenarios, and groups in the format of ``assign``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator_core.documents.files import read_text
from coordinator_core.documents.portable import portable_scenario
from coordinator_core.errors import InputError
from rebalance_spark.documents import workload_row
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema
from rebalance_spark.sessions import in_short, spark_errors
from rebalance_spark.sizes import size_of_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINES = (".jsonl", ".ndjson", ".json")
_FOLDERS_OF_LINES = ("*.jsonl", "*.ndjson", "part-*.json")
"""The last pattern matches the JSON files that Spark writes."""

_DOCUMENTS = (".yaml", ".yml", ".json")
_EXPECTED = (
    "Parquet or JSON Lines with scenario_id and scenario, JSON Lines of groups,"
    " or a folder of scenarios in YAML"
)


def read_workloads(spark: "SparkSession", path: str) -> "DataFrame":
    """Read a workload. The kind of the files decides how.

    - Parquet: a file, a folder, or a URL of any file system that Spark supports.
    - JSON Lines (.jsonl, .ndjson, .json), or a folder of them: rows with ``scenario_id`` and ``scenario``
      (a text or an object), or groups in the format of ``rebalance-lab assign``.
    - A folder of .yaml, .yml or .json files: each is a scenario with its path in the folder as its name. CSV
      files that a scenario names are read by this process.

    Raises:
        InputError: if the path does not exist or has none of these.
    """
    check_workload(path)
    local = Path(path)
    if "://" not in path and local.is_dir() and not _has(local, "*.parquet"):
        if any(_has(local, pattern) for pattern in _FOLDERS_OF_LINES):
            return _lines(spark, path)
        return _folder(spark, local)
    if path.endswith(_LINES):
        return _lines(spark, path)
    return _checked(_parquet(spark, path), path)


def check_workload(path: str) -> None:
    """Check that the path of a workload exists. This needs no session.

    Raises:
        InputError: if it does not exist.
    """
    if "://" not in path and not Path(path).exists():
        raise InputError(path, "no such file or folder", _EXPECTED)


def _parquet(spark: "SparkSession", path: str) -> "DataFrame":
    try:
        return spark.read.parquet(path)
    except spark_errors() as error:
        found = f"a file that is not Parquet ({in_short(error)})"
        raise InputError(path, found, _EXPECTED) from None


def _checked(workload: "DataFrame", path: str) -> "DataFrame":
    names = [column.name for column in WORKLOAD_COLUMNS]
    for name in names[:2]:
        if name not in workload.columns:
            found = f"the columns {', '.join(workload.columns) or '(none)'}"
            raise InputError(path, found, f"{name!r} among them")
    return workload.select(*(name for name in names if name in workload.columns))


def _lines(spark: "SparkSession", path: str) -> "DataFrame":
    """Read each line separately, so that an invalid line affects only its own row."""
    from pyspark.sql import functions as sf

    try:
        lines = spark.read.text(path).where(sf.trim("value") != "")
    except spark_errors() as error:
        raise InputError(path, f"a file that cannot be read ({in_short(error)})", _EXPECTED) from None
    first = lines.first()
    if first is None:
        raise InputError(path, "no lines", "JSON Lines: rows with scenario_id and scenario, or groups")
    name = sf.element_at(sf.split(sf.input_file_name(), "/"), -1)
    numbered = lines.select(
        sf.concat(name, sf.lit(" "), sf.xxhash64("value").cast("string")).alias("name"), "value"
    )
    columns = ", ".join(f"{c.name} {c.type}" for c in WORKLOAD_COLUMNS)
    return numbered.mapInArrow(_parsed, columns)


def _parsed(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    schema = arrow_schema(WORKLOAD_COLUMNS)
    for batch in batches:
        pairs = zip(batch.column("name").to_pylist(), batch.column("value").to_pylist(), strict=True)
        yield pa.RecordBatch.from_pylist([workload_row(name, line) for name, line in pairs], schema=schema)


def _folder(spark: "SparkSession", folder: Path) -> "DataFrame":
    import pyarrow as pa

    files = sorted(p for p in folder.rglob("*") if p.suffix in _DOCUMENTS and p.is_file())
    if not files:
        raise InputError(str(folder), "a folder without scenarios", _EXPECTED)
    rows = [_document(path, path.relative_to(folder).as_posix()) for path in files]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(WORKLOAD_COLUMNS)))


def _document(path: Path, name: str) -> dict[str, Any]:
    """Return the row of a file. An invalid file is kept as it is, so that scoring reports the error."""
    try:
        text = portable_scenario(path)
    except InputError:
        try:
            text = read_text(path)
        except InputError as error:
            text = f"# {error}"
    return {"scenario_id": name, "scenario": text, **size_of_text(text)._asdict()}


def _has(folder: Path, pattern: str) -> bool:
    return next(folder.rglob(pattern), None) is not None
