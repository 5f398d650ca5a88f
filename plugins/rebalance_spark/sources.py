"""Workloads from Parquet, JSON Lines, folders of scenarios, groups as for ``assign``, and tables."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import read_text
from rebalance_lab.scenarios.portable import portable_scenario
from rebalance_spark.applications import column_of
from rebalance_spark.documents import kinds_of_others, unreadable, workload_row
from rebalance_spark.groups import (
    DIFFERING,
    DRAW,
    GROUP_COLUMNS,
    NOTHING,
    REPAIRED_KINDS,
    REPAIRS,
    check_draws,
    groups_to_workload,
)
from rebalance_spark.partitions import with_rates
from rebalance_spark.places import read_table
from rebalance_spark.schema import (
    ARROW,
    RESERVED,
    WORKLOAD_COLUMNS,
    add_column,
    arrow_schema,
    score_columns,
    spark_schema,
)
from rebalance_spark.sessions import file_of, in_short, spark_errors
from rebalance_spark.sizes import WORKLOAD_NAMES, size_of_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

_T = TypeVar("_T")

_KINDS = {
    "parquet": r"\.parquet$",
    "lines": r"(\.jsonl|\.ndjson|/part-[^/]*\.json)(\.gz)?$",
    "documents": r"\.(yaml|yml|json)$",
    "csv": r"\.csv(\.gz)?$",
}
"""The kinds of files by their names, the first that a place has counts. Spark writes JSON as part-*.json."""

_TABLES = ("parquet", "csv")
_DOCUMENTS = (".yaml", ".yml", ".json")
_GLOB = re.compile(r"[*?\[{]")
_LOOKED_AT = 100
"""The lines that determine the further columns of JSON Lines."""

_EXPECTED = (
    "Parquet or JSON Lines with scenario_id and scenario, JSON Lines of groups,"
    " or a folder of scenarios in YAML"
)


AMOUNTS = ("rate", "lag")
"""The columns that a table of partitions may have."""


def read_workloads(
    spark: "SparkSession",
    path: str,
    *,
    keys: Sequence[str] = (),
    columns: Mapping[str, str] = NOTHING,
    draws: int | None = None,
    events: Sequence[Mapping[str, Any]] | None = None,
    application: Mapping[str, Any] = NOTHING,
    members: str = "",
    interval_ms: int = 1_000,
) -> "DataFrame":
    """Read a workload. The kind of the files decides how.

    - Parquet: a file, a folder, also a partitioned one. Instead of scenarios it may have a row per partition,
      in the columns ``group``, ``member``, ``topic``, ``partition``, and ``rate`` and ``lag`` (see
      `groups_to_workload`, which keeps all other columns that scores can have).
    - JSON Lines (.jsonl, .ndjson, .json), or a folder of them: rows with ``scenario_id`` and ``scenario``
      (a text or an object), or groups in the format of ``rebalance-lab assign``.
    - A folder of .yaml, .yml or .json files: each is a scenario with its path in the folder as its name. This
      process reads them, and CSV files that a scenario names.

    `path` is of any file system that Spark supports, and may have wildcards. Columns beside those of a
    workload are kept. `keys`: columns, also those of partitions, that are put before the ``scenario_id``, as
    ``dt=2026-01-01/hour=7/payments``. The other arguments are for a table with a row per partition, and those
    of `groups_to_workload`; `columns` has the names of its columns where they differ (``group`` ->
    ``consumer_group``). With `members`, a path of Parquet with the members of groups, the input is a table of
    rates: `interval_ms` and what the two have is as for `partitions_to_workload`.

    Raises:
        InputError: if the path does not exist or has none of these, if a column does not exist, or if the
            input has no row per partition and there are arguments for one.
    """
    check_draws(draws)
    given = _Given(columns, draws, events, application)
    files = _Files(spark, path)
    if members and files.kind not in _TABLES:
        raise InputError(path, "no Parquet or CSV", "a table of rates for --members")
    if files.kind in ("lines", "documents"):
        what = "JSON Lines" if files.kind == "lines" else "a folder of scenarios"
        _check_partitions(path, what, given)
    if files.kind == "lines":
        workload = _lines(spark, path)
    elif files.kind == "documents":
        workload = _folder(spark, files)
    else:
        found = _table_of(spark, path, files.kind)
        if members:
            owners = _table_of(spark, members, _Files(spark, members).kind)
            found = with_rates(found, owners, interval_ms=interval_ms, columns=columns, keys=keys)
            own = {name: column for name, column in columns.items() if name not in AMOUNTS}
            given = given._replace(columns=own)
        return _workload(found, path, keys, given)
    return keyed(workload, keys)


def read_workload_table(
    spark: "SparkSession",
    name: str,
    *,
    keys: Sequence[str] = (),
    columns: Mapping[str, str] = NOTHING,
    draws: int | None = None,
    events: Sequence[Mapping[str, Any]] | None = None,
    application: Mapping[str, Any] = NOTHING,
) -> "DataFrame":
    """Read a workload from a table or view of the catalog. The arguments are those of `read_workloads`.

    Raises:
        InputError: if the table does not exist or has no workload, and as `read_workloads`.
    """
    check_draws(draws)
    given = _Given(columns, draws, events, application)
    return _workload(read_table(spark, name), f"table {name}", keys, given)


class _Given(NamedTuple):
    """The arguments for a table with a row per partition."""

    columns: Mapping[str, str]
    draws: int | None
    events: Sequence[Mapping[str, Any]] | None
    application: Mapping[str, Any]


def _workload(frame: "DataFrame", where: str, keys: Sequence[str], given: _Given) -> "DataFrame":
    """Return the workload of a table with scenarios, or of one with a row per partition."""
    columns, draws = given.columns, given.draws
    check_columns(frame.columns, where, keys, columns)
    if not _has_partitions(frame.columns, columns):
        _check_partitions(where, f"the columns {', '.join(frame.columns)}", given)
        return keyed(_ordered(frame), keys)
    amounts = [name for name in AMOUNTS if name in columns or name in frame.columns]
    named: dict[str, Any] = {name: columns.get(name, name) for name in (*GROUP_COLUMNS, *amounts)}
    fields = given.application
    of_members = [*fields, *filter(None, map(column_of, fields.values()))]
    kept = _kept(frame, [*named.values(), *keys, *of_members, *([] if draws is None else [DRAW])])
    return groups_to_workload(
        frame, **named, keys=keys, keep=kept, draws=draws, events=given.events, application=fields
    )


def _check_partitions(where: str, found: str, given: _Given) -> None:
    """Check that there are no options for a table with a row per partition.

    Raises:
        InputError: if there are.
    """
    for option, is_given in (
        ("--columns", bool(given.columns)),
        ("--draws", given.draws is not None),
        ("--events", given.events is not None),
        ("--member", bool(given.application)),
    ):
        if is_given:
            raise InputError(where, found, f"a table with a row per partition for {option}")


def check_columns(
    columns: Sequence[str], where: str, keys: Sequence[str] = (), named: Mapping[str, str] = NOTHING
) -> None:
    """Check the names of the columns of a table. ``named``: those of a table with a row per partition.

    Raises:
        InputError: if it is neither one of scenarios nor one with a row per partition, or if a key is no
            column.
    """
    found = f"the columns {', '.join(columns) or '(none)'}"
    if not _has_partitions(columns, named):
        missing = [name for name in WORKLOAD_NAMES[:2] if name not in columns]
        if len(missing) == 2:
            raise InputError(where, found, f"scenario_id and scenario, or {_PER_PARTITION}")
        if missing:
            raise InputError(where, found, f"{missing[0]!r} among them")
    else:
        for name in (*GROUP_COLUMNS, *named):
            if not _has_column(columns, column := named.get(name, name)):
                raise InputError(where, found, f"{column!r} among them for {_PER_PARTITION}")
    _check_keys(columns, keys)


_PER_PARTITION = (
    f"a row per partition with {', '.join(GROUP_COLUMNS)} (columns with other names: --columns"
    " group=NAME,member=NAME or, in Python, groups_to_workload)"
)


def _has_column(columns: Sequence[str], name: str) -> bool:
    return name in columns or name.partition(".")[0] in columns


def _has_partitions(columns: Sequence[str], named: Mapping[str, str]) -> bool:
    """Return whether a table has a row per partition, or would if a column or two were not missing."""
    return "scenario" not in columns and (bool(named) or len({*GROUP_COLUMNS} & {*columns}) > 1)


def _kept(frame: "DataFrame", used: Sequence[str]) -> list[str]:
    """Return the columns of a table with a row per partition that its scores can have, too."""
    from pyspark.sql.types import AtomicType, VariantType

    columns = (*WORKLOAD_COLUMNS, *score_columns(default_registry()))
    made = (REPAIRS, REPAIRED_KINDS, DIFFERING)
    own = {*GROUP_COLUMNS, *AMOUNTS, *made, *RESERVED, *(column.name for column in columns)}
    taken = {name.lower() for name in (*own, *used)}
    kinds = {f.name: f.dataType for f in frame.schema if f.name.lower() not in taken}
    return [n for n, k in kinds.items() if isinstance(k, AtomicType) and not isinstance(k, VariantType)]


def check_local(path: str, keys: Sequence[str] = (), columns: Mapping[str, str] = NOTHING) -> None:
    """Check the columns of Parquet files of this machine without Spark. Other files are not checked.

    Raises:
        InputError: as `check_columns`.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not Path(path).exists():
        return
    try:
        files = ds.dataset(path, format="parquet", partitioning="hive")
    except (pa.ArrowException, OSError, ValueError):
        return
    if any(re.search(_KINDS["parquet"], name) for name in files.files):
        above = [name for name, equals, _ in (part.partition("=") for part in path.split("/")) if equals]
        check_columns(list(dict.fromkeys([*files.schema.names, *above])), path, keys, columns)


def keyed(workload: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    """Return a workload with the values of columns before the id of each row.

    Raises:
        InputError: if a key is no column.
    """
    from pyspark.sql import functions as sf

    _check_keys(workload.columns, keys)
    if not keys:
        return workload
    parts: list[Column] = [
        sf.concat(sf.lit(f"{name}="), sf.coalesce(sf.col(f"`{name}`").cast("string"), sf.lit("")))
        for name in keys
    ]
    return workload.withColumn("scenario_id", sf.concat_ws("/", *parts, sf.col("scenario_id").cast("string")))


def _check_keys(columns: Sequence[str], keys: Sequence[str]) -> None:
    for name in keys:
        if not _has_column(columns, name):
            raise InputError("keys", repr(name), f"some of {', '.join(columns)}")


class _Files:
    """The files of a path, as Spark finds them. It looks at their names only."""

    def __init__(self, spark: "SparkSession", path: str) -> None:
        from pyspark.sql import functions as sf

        self.path = path
        try:
            self.listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
            kind = sf.when(sf.col("path").rlike(_KINDS["parquet"]), "parquet")
            for name in ("lines", "documents", "csv"):
                kind = kind.when(sf.col("path").rlike(_KINDS[name]), name)
            counted: list[Any] = self.listed.groupBy(kind.alias("kind")).agg(sf.min("path")).collect()
        except spark_errors() as error:
            if "PATH_NOT_FOUND" in str(error):
                raise InputError(path, "no such file or folder", _EXPECTED) from None
            raise InputError(path, f"a path that cannot be read ({in_short(error)})", _EXPECTED) from None
        first = {row[0]: row[1] for row in counted}
        if not first:  # Spark lists no empty files
            first = {name: path for name, pattern in _KINDS.items() if re.search(pattern, path)}
        self.kind = next((name for name in _KINDS if name in first), "")
        named = PurePosixPath(path).name
        is_one = f"/{first.get(self.kind)}".endswith(f"/{named}")
        if self.kind == "documents" and named.endswith(".json") and is_one:
            self.kind = "lines"
        if not first or (not self.kind and None in first and not self._is_one(first[None])):
            raise InputError(path, "a folder without scenarios", _EXPECTED)

    def _is_one(self, name: str) -> bool:
        """Return whether the path is a file, of which `name` is the full name."""
        return name.endswith(f"/{PurePosixPath(self.path).name}") or bool(_GLOB.search(self.path))

    def texts(self, folder: Path) -> list[tuple[Path, str]]:
        """Return the files with scenarios on this machine, each with its name in the path.

        Files of another machine are copied into `folder`, with CSV files.
        """
        from pyspark.sql import functions as sf

        wanted = self.listed.where(sf.col("path").rlike(r"\.(yaml|yml|json|csv)$"))
        names = [row[0] for row in wanted.select("path").orderBy("path").collect()]
        if all(name.startswith("file:") for name in names):
            pairs = [(Path(re.sub("^file:/+", "/", name)), self._relative(name)) for name in names]
        else:
            pairs = []
            for row in wanted.select("path", "content").orderBy("path").toLocalIterator():
                relative = self._relative(row["path"])
                copy = folder / relative
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(bytes(row["content"]))
                pairs.append((copy, relative))
        return [(path, name) for path, name in pairs if path.suffix in _DOCUMENTS]

    def _relative(self, name: str) -> str:
        base = _base(self.path)
        base = base if "/" in base[:1] or ":" in base else os.path.abspath(base or ".")
        root = re.sub("^[a-z0-9+.-]+:(//[^/]*)?", "", base).rstrip("/")
        return name.partition(f"{root}/")[2] or PurePosixPath(name).name


def _base(path: str) -> str:
    """Return the part of a path before its first wildcard or ``column=value``."""
    kept = []
    for part in path.split("/"):
        if _GLOB.search(part) or "=" in part:
            break
        kept.append(part)
    return "/".join(kept)


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
        found = f"a file that {what} ({in_short(error)})"
        raise InputError(file_of(error) or path, found, _EXPECTED) from None


def _table_of(spark: "SparkSession", path: str, kind: str) -> "DataFrame":
    """Read files of a table. The first line of CSV has the names; all values of a column have its type."""
    if kind == "csv":
        return _read(
            spark, path, "is not CSV", lambda reader: reader.csv(path, header=True, inferSchema=True)
        )
    return _read(spark, path, "is not Parquet", lambda reader: reader.parquet(path))


def _ordered(workload: "DataFrame") -> "DataFrame":
    """Return the columns of a workload, and then the others."""
    names = [name for name in WORKLOAD_NAMES if name in workload.columns]
    return workload.select(*names, *(f"`{name}`" for name in workload.columns if name not in names))


def _lines(spark: "SparkSession", path: str) -> "DataFrame":
    """Read each line separately, so that an invalid line affects only its own row."""
    from pyspark.sql import functions as sf

    def read(reader: "DataFrameReader") -> tuple["DataFrame", list[str]]:
        lines = reader.text(path).where(sf.trim("value") != "")
        return lines, [row["value"] for row in lines.select("value").limit(_LOOKED_AT).collect()]

    lines, first = _read(spark, path, "cannot be read", read)
    if not first:
        raise InputError(path, "no lines", "JSON Lines: rows with scenario_id and scenario, or groups")
    kinds = {name: kind for name, kind in kinds_of_others(first).items() if name not in lines.columns}
    partitions = [field for field in lines.schema if field.name != "value"]
    name = sf.element_at(sf.split(sf.input_file_name(), "/"), -1)
    numbered = lines.select(
        sf.concat(name, sf.lit(" "), sf.xxhash64("value").cast("string")).alias("name"),
        "value",
        *(f"`{field.name}`" for field in partitions),
    )
    schema = spark_schema(WORKLOAD_COLUMNS)
    for other, kind in kinds.items():
        add_column(schema, other, kind)
    for field in partitions:
        schema.add(field)

    def parsed(batches: Iterator[Any]) -> Iterator[Any]:
        return _parsed(batches, kinds)

    return numbered.mapInArrow(parsed, schema)


def _parsed(batches: Iterator[Any], kinds: Mapping[str, str]) -> Iterator[Any]:
    import pyarrow as pa

    others = [pa.field(name, ARROW[kind]) for name, kind in kinds.items()]
    schema = pa.schema([*arrow_schema(WORKLOAD_COLUMNS), *others])
    for batch in batches:
        pairs = zip(batch.column("name").to_pylist(), batch.column("value").to_pylist(), strict=True)
        rows = pa.RecordBatch.from_pylist([workload_row(n, line, kinds) for n, line in pairs], schema=schema)
        partitions = batch.drop_columns(["name", "value"])
        yield pa.RecordBatch.from_arrays(
            [*rows.columns, *partitions.columns], schema=pa.schema([*schema, *partitions.schema])
        )


def _folder(spark: "SparkSession", files: _Files) -> "DataFrame":
    import pyarrow as pa

    with TemporaryDirectory(prefix="rebalance-lab-") as copies:
        rows = [_document(path, name) for path, name in files.texts(Path(copies))]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(WORKLOAD_COLUMNS)))


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


def _document(path: Path, name: str) -> dict[str, Any]:
    """Return the row of a file. An invalid file is kept as it is, so that scoring reports the error.

    Scoring has neither the file nor those that it names: what cannot be read of them is reported as it is.
    """
    try:
        text = portable_scenario(path)
    except InputError as error:
        text = _text_of(path, name, error)
    return {"scenario_id": name, "scenario": text, **size_of_text(text)._asdict()}
