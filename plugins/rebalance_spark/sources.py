"""Where workloads come from: Parquet, JSON Lines, folders of scenarios, groups as `assign` has them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator_core.documents.files import read_text
from coordinator_core.documents.groups import parse_group, scenario_document
from coordinator_core.documents.portable import portable_scenario
from coordinator_core.errors import InputError
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema
from rebalance_spark.sessions import in_short, spark_errors
from rebalance_spark.sizes import size_of_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINES = (".jsonl", ".ndjson", ".json")
_FOLDERS_OF_LINES = ("*.jsonl", "*.ndjson", "part-*.json")
"""The last is how Spark calls what it writes as JSON."""

_DOCUMENTS = (".yaml", ".yml", ".json")
_EXPECTED = (
    "Parquet or JSON Lines with scenario_id and scenario, JSON Lines of groups,"
    " or a folder of scenarios in YAML"
)


def read_workloads(spark: "SparkSession", path: str) -> "DataFrame":
    """A workload from a path, by what is there.

    Parquet: a file, a folder or a URL of any file system Spark knows. JSON Lines (.jsonl, .ndjson, .json):
    rows with ``scenario_id`` and ``scenario``, text or an object; or groups in the format of
    ``rebalance-lab assign``; a folder of such files too. A folder with .yaml, .yml or .json files: a
    scenario each, named by its path in the folder; CSV files they name are read here. Raises InputError
    for anything else.
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
    """Raises InputError where nothing is; needs no session."""
    if "://" not in path and not Path(path).exists():
        raise InputError(path, "nothing there", _EXPECTED)


def _parquet(spark: "SparkSession", path: str) -> "DataFrame":
    try:
        return spark.read.parquet(path)
    except spark_errors() as problem:
        found = f"what cannot be read as Parquet ({in_short(problem)})"
        raise InputError(path, found, _EXPECTED) from None


def _checked(workload: "DataFrame", path: str) -> "DataFrame":
    names = [column.name for column in WORKLOAD_COLUMNS]
    for name in names[:2]:
        if name not in workload.columns:
            found = f"the columns {', '.join(workload.columns) or '(none)'}"
            raise InputError(path, found, f"{name!r} among them")
    return workload.select(*(name for name in names if name in workload.columns))


def _lines(spark: "SparkSession", path: str) -> "DataFrame":
    """Each line for itself, so that one that is wrong is a row that is wrong."""
    from pyspark.sql import functions as sf

    try:
        lines = spark.read.text(path).where(sf.trim("value") != "")
    except spark_errors() as problem:
        raise InputError(path, f"what cannot be read ({in_short(problem)})", _EXPECTED) from None
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


def workload_row(name: str, line: str) -> dict[str, Any]:
    """The row of a line: one of a workload, or a group. Another line stays as it is, named `name`."""
    scenario_id, text = name, line
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, dict) and "scenario" in document:
        scenario = document["scenario"]
        given = document.get("scenario_id")
        scenario_id = name if given in (None, "") else str(given)
        text = scenario if isinstance(scenario, str) else msgspec.json.encode(scenario).decode()
    elif isinstance(document, dict) and "topics" in document and "duration" not in document:
        scenario_id, text = group_scenario(document, name)
    elif isinstance(document, dict):
        scenario_id = str(document.get("name") or name)
    return {"scenario_id": scenario_id, "scenario": text, **size_of_text(text)._asdict()}


def group_scenario(document: dict[str, Any], name: str) -> tuple[str, str]:
    """A group in the format of ``assign`` as a scenario (`group_document.scenario_document`), and its name.

    A group that is wrong stays as it is, for the error to name what.
    """
    given = str(document.get("name") or name)
    try:
        made = scenario_document(parse_group(document, given), given)
    except InputError:
        return given, msgspec.json.encode(document).decode()
    return given, msgspec.json.encode(made).decode()


def _folder(spark: "SparkSession", folder: Path) -> "DataFrame":
    import pyarrow as pa

    files = sorted(p for p in folder.rglob("*") if p.suffix in _DOCUMENTS and p.is_file())
    if not files:
        raise InputError(str(folder), "a folder without scenarios", _EXPECTED)
    rows = [_document(path, path.relative_to(folder).as_posix()) for path in files]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(WORKLOAD_COLUMNS)))


def _document(path: Path, name: str) -> dict[str, Any]:
    """The row of a file; one that is wrong stays as it is, so that its row says what."""
    try:
        text = portable_scenario(path)
    except InputError:
        try:
            text = read_text(path)
        except InputError as problem:
            text = f"# {problem}"
    return {"scenario_id": name, "scenario": text, **size_of_text(text)._asdict()}


def _has(folder: Path, pattern: str) -> bool:
    return next(folder.rglob(pattern), None) is not None
