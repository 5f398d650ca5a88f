"""Workloads from Parquet, JSON Lines, folders of scenarios, groups as for ``assign``, and tables."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import read_text
from rebalance_lab.scenarios.portable import portable_scenario
from rebalance_lab.scoring.documents import unreadable
from rebalance_spark.applications import column_of
from rebalance_spark.documents import workload_row
from rebalance_spark.groups import DRAW, REPAIRS
from rebalance_spark.schema import RESERVED, WORKLOAD_COLUMNS, arrow_schema, score_columns
from rebalance_spark.sessions import file_of, in_short, read_table, spark_errors
from rebalance_spark.sizes import WORKLOAD_NAMES, size_of_text
from rebalance_spark.workloads import AMOUNTS, Workload, has_column, of_scenarios, workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

_T = TypeVar("_T")

GROUP_COLUMNS = ("group", "member", "topic", "partition")
"""The columns by which a table is recognized as one of partitions."""

_KINDS = {
    "parquet": r"\.parquet$",
    "lines": r"(\.jsonl|\.ndjson|/part-[^/]*\.json)(\.gz)?$",
    "documents": r"\.(yaml|yml|json)$",
    "csv": r"\.csv(\.gz)?$",
}
"""The kinds of files by their names, the first that a place has counts. Spark writes JSON as part-*.json."""

_GLOB = re.compile(r"[*?\[{]")
_EXPECTED = (
    "Parquet or JSON Lines with scenario_id and scenario, JSON Lines of groups,"
    " or a folder of scenarios in YAML"
)
_PER_PARTITION = (
    f"a row per partition with {', '.join(GROUP_COLUMNS)} (other names: --columns group=NAME,member=NAME or,"
    " in Python, group=NAME)"
)
_OF_PARTITIONS = (*GROUP_COLUMNS, *AMOUNTS, "draws", "events", "application")


def read_workload(
    spark: "SparkSession",
    path: str = "",
    *,
    table: str = "",
    members: str = "",
    keys: Sequence[str] = (),
    **options: Any,
) -> Workload:
    """Read a workload from files, whose kind decides how, or from a `table` or view of the catalog.

    - Parquet: a file, a folder, also a partitioned one. Instead of scenarios it may have a row per partition,
      in the columns ``group``, ``member``, ``topic``, ``partition``, and ``rate`` and ``lag``, and so may CSV
      with a line of names. The `options` are those of `workload` then. By default, `keep` is all other
      columns that scores can have.
    - JSON Lines (.jsonl, .ndjson, .json), or a folder of them: rows with ``scenario_id`` and ``scenario``
      (a text or an object), or groups in the format of ``rebalance-lab assign``.
    - A folder of .yaml, .yml or .json files: each is a scenario with its path in the folder as its name. This
      process reads them, and CSV files that a scenario names.

    `path` is of any file system that Spark supports, and may have wildcards. `members`: a path of a table
    with the owners; the input is one of rates then. `keys`: columns, also those of partitioned folders, that
    are put before the ``scenario_id``, as ``dt=2026-01-01/hour=7/payments``; the ``group`` is the id without
    them. Columns beside those of a workload are kept.

    Raises:
        InputError: if the path does not exist or has none of these, if a column does not exist, or if the
            input has no row per partition and there are options for one.
    """
    if table:
        found, where, kind = read_table(spark, table), f"table {table}", "table"
    else:
        found, kind = _read_files(spark, path)
        where = path
    if members:
        if kind not in ("parquet", "csv", "table"):
            raise InputError(path, "no Parquet or CSV", "a table of rates beside one of members")
        options["rates"] = found
        found, where = _read_files(spark, members)[0], members
    columns = f"the columns {', '.join(found.columns) or '(none)'}"
    named = {name: options[name] for name in (*GROUP_COLUMNS, *AMOUNTS) if options.get(name)}
    if "scenario" not in found.columns and (named or members or len({*GROUP_COLUMNS} & {*found.columns}) > 1):
        for name in GROUP_COLUMNS if members else (*GROUP_COLUMNS, *named):
            if not has_column(found, column := named.get(name, name)):
                raise InputError(where, columns, f"{column!r} among them for {_PER_PARTITION}")
        used = [*named.values(), *keys, *map(column_of, options.get("application", {}).values())]
        options.setdefault("keep", _kept(found, [*used, *options.get("application", {})]))
        return workload(found, keys=keys, **options)
    missing = [name for name in WORKLOAD_NAMES[:2] if name not in found.columns]
    if missing:
        both = f"scenario_id and scenario, or {_PER_PARTITION}"
        raise InputError(where, columns, both if len(missing) == 2 else f"{missing[0]!r} among them")
    for name in (name for name in _OF_PARTITIONS if options.get(name)):
        raise InputError(where, columns, f"a table with a row per partition for {name}")
    return of_scenarios(found, keys)


def _kept(frame: "DataFrame", used: Sequence[str]) -> list[str]:
    """Return the columns of a table with a row per partition that its scores can have, too."""
    from pyspark.sql.types import AtomicType, VariantType

    columns = (*WORKLOAD_COLUMNS, *score_columns(default_registry().metrics().values(), start=True))
    own = {*GROUP_COLUMNS, *AMOUNTS, REPAIRS, "problems", DRAW, *RESERVED, *(c.name for c in columns)}
    taken = {name.lower() for name in (*own, *used)}
    kinds = {f.name: f.dataType for f in frame.schema if f.name.lower() not in taken}
    return [n for n, k in kinds.items() if isinstance(k, AtomicType) and not isinstance(k, VariantType)]


# --- files


def _read_files(spark: "SparkSession", path: str) -> tuple["DataFrame", str]:
    """Return the rows of files, and their kind, one of `_KINDS`.

    Raises:
        InputError: if there are none, or if one cannot be read.
    """
    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
        names = [unquote(name) for name in listed.inputFiles()]  # without a job
    except spark_errors() as error:
        found = "no such file or folder" if "PATH_NOT_FOUND" in str(error) else in_short(error)
        raise InputError(path, found, _EXPECTED) from None
    kind = next((kind for kind, form in _KINDS.items() if any(re.search(form, name) for name in names)), "")
    is_one = len(names) == 1 and names[0].endswith(f"/{PurePosixPath(path).name}")
    if kind == "documents" and is_one and path.endswith(".json"):
        kind = "lines"
    if not kind and not is_one and not _GLOB.search(path):
        raise InputError(path, "a folder without scenarios", _EXPECTED)
    if kind == "lines":
        return _lines(spark, path), kind
    if kind == "documents":
        return _documents(spark, path, listed, names), kind
    if kind == "csv":
        return _read(spark, path, "CSV", lambda files: files.csv(path, header=True, inferSchema=True)), kind
    return _read(spark, path, "Parquet", lambda files: files.parquet(path)), "parquet"


def _base(path: str) -> str:
    """Return the part of a path before its first wildcard or ``column=value``."""
    parts = path.split("/")
    end = next((n for n, part in enumerate(parts) if _GLOB.search(part) or "=" in part), len(parts))
    return "/".join(parts[:end])


def _read(spark: "SparkSession", path: str, what: str, read: Callable[["DataFrameReader"], _T]) -> _T:
    """Return what is read of files. The folders of a partitioned one have columns.

    Raises:
        InputError: if a file cannot be read. It names the file.
    """
    base, reader = _base(path), spark.read
    if base != path:
        reader = reader.option("basePath", base or ("/" if path.startswith("/") else "."))
    try:
        return read(reader)
    except spark_errors() as error:
        found = f"a file that is not {what} ({in_short(error)})"
        raise InputError(file_of(error) or path, found, _EXPECTED) from None


def _lines(spark: "SparkSession", path: str) -> "DataFrame":
    """Read each line separately, so that an invalid line affects only its own row."""
    from pyspark.sql import functions as sf

    lines = _read(spark, path, "lines of text", lambda reader: reader.text(path)).where(
        sf.trim("value") != ""
    )
    types = {column.name: column.type for column in WORKLOAD_COLUMNS}
    types |= {name: kind for name, kind in lines.dtypes if name != "value"}
    file = sf.element_at(sf.split(sf.input_file_name(), "/"), -1)
    name = sf.concat(file, sf.lit(" "), sf.xxhash64("value").cast("string"))
    numbered = lines.select(name.alias("name"), *(sf.col(f"`{column}`") for column in lines.columns))
    return numbered.mapInArrow(_parsed, ", ".join(f"`{name}` {kind}" for name, kind in types.items()))


def _parsed(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    schema = arrow_schema(WORKLOAD_COLUMNS)
    for batch in batches:
        pairs = zip(batch.column("name").to_pylist(), batch.column("value").to_pylist(), strict=True)
        rows = pa.RecordBatch.from_pylist([workload_row(*pair) for pair in pairs], schema=schema)
        for column in batch.schema.names[2:]:
            rows = rows.append_column(column, batch.column(column))
        yield rows


def _documents(spark: "SparkSession", path: str, listed: "DataFrame", names: Sequence[str]) -> "DataFrame":
    """Read a folder of scenarios. Files of another machine are copied to this one, with CSV files."""
    import pyarrow as pa
    from pyspark.sql import functions as sf

    with TemporaryDirectory(prefix="rebalance-lab-") as folder:
        files = {_relative(path, name): Path(re.sub("^file:/+", "/", name)) for name in names}
        if not all(name.startswith("file:") for name in names):
            files = {name: Path(folder, name) for name in files}
            wanted = listed.where(sf.col("path").rlike(r"\.(yaml|yml|json|csv)$"))
            for row in wanted.select("path", "content").toLocalIterator():
                copy = files[_relative(path, unquote(row[0]))]
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(bytes(row[1]))
        rows = [
            _document(files[name], name) for name in sorted(files) if re.search(_KINDS["documents"], name)
        ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(WORKLOAD_COLUMNS)))


def _relative(path: str, name: str) -> str:
    """Return the name of a file in the folder of a path."""
    base = _base(path)
    base = base if "/" in base[:1] or ":" in base else os.path.abspath(base or ".")
    root = re.sub("^[a-z0-9+.-]+:(//[^/]*)?", "", base).rstrip("/")
    return name.partition(f"{root}/")[2] or PurePosixPath(name).name


def _document(path: Path, name: str) -> dict[str, Any]:
    """Return the row of a file. An invalid file is kept as it is, so that scoring reports the error.

    Scoring has neither the file nor those that it names: what cannot be read of them is reported as it is.
    """
    try:
        text = portable_scenario(path)
    except InputError as error:
        text = _text_of(path, name, error)
    return {"scenario_id": name, "scenario": text, **size_of_text(text)._asdict()}


def _text_of(path: Path, name: str, error: InputError) -> str:
    """Return the text of a file with an error, or that error if it is about a file."""
    if "rates_csv" not in error.where:
        try:
            return read_text(path)
        except InputError as unread:
            error = unread
    beside = name.removesuffix(path.name)
    where = error.where.replace(str(path), name).replace(f"{path.parent}/", beside)
    return unreadable(InputError(where, error.found, error.expected))
