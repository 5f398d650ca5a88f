"""The place of scores: a folder of Parquet files, or a table of the catalog."""

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from rebalance_spark.lease import leased
from rebalance_spark.schema import RESERVED, SCORE_COLUMNS
from rebalance_spark.sessions import in_short
from rebalance_spark.storage import StoredPath, context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONCURRENT_CHUNKS = 4
"""Chunks that run at once. The later ones use the cores that the earlier ones leave idle."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder. Each run writes below ``run=ID``, each chunk into a folder of its own."""

    path: str
    concurrent: int = CONCURRENT_CHUNKS

    def __str__(self) -> str:
        return self.path

    def read(self, spark: "SparkSession") -> "DataFrame | None":
        """Return all scores, or None if there are no files.

        Raises:
            InputError: if the files are not scores, or if their columns contradict each other.
        """
        from pyspark.errors import AnalysisException, PySparkException

        if context_of(spark) is not None:
            place = StoredPath(spark, self.path)
            if place.exists() and not place.is_folder():
                raise InputError(self.path, "a file", "a folder")
            if not place.exists() or not any(_is_visible(name) for name in place.names()):
                return None
        try:
            found = spark.read.option("mergeSchema", "true").parquet(self.path)
            names = found.columns
        except AnalysisException:
            return None
        except PySparkException as error:
            raise InputError(self.path, f"files that cannot be read ({in_short(error)})", "scores") from None
        return _checked(found.drop(*RESERVED) if set(RESERVED) & set(names) else found, self.path)

    def set_aside(self, spark: "SparkSession", file: str) -> str:
        """Give a file of the folder a name with which it is not read, and return it; "" if not."""
        here = self.path if "://" in self.path else os.path.abspath(self.path)
        if context_of(spark) is None or not file.startswith(f"{here.rstrip('/')}/"):
            return ""
        return StoredPath(spark, file).set_aside()

    def leased(
        self,
        spark: "SparkSession",
        run_id: str,
        schema: "StructType",  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Hold the lease of the folder. A session of Spark Connect cannot.

        Raises:
            InputError: if another run holds it.
        """
        return _leased(spark, self.path, run_id)

    def write(self, scores: "DataFrame", run_id: str, chunk: int) -> None:
        """Write a chunk of scores."""
        scores.write.parquet(f"{self.path.rstrip('/')}/run={run_id}/chunk={chunk}")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the catalog. Each chunk is appended to it, one after the other."""

    name: str
    concurrent: int = 1

    def __str__(self) -> str:
        return self.name

    def read(self, spark: "SparkSession") -> "DataFrame | None":
        """Return all scores, or None if there is no such table.

        Raises:
            InputError: if the table does not have scores, or if the name is not one of a table.
        """
        return _checked(read_table(spark, self.name), self.name) if _has_table(spark, self.name) else None

    def leased(
        self, spark: "SparkSession", run_id: str, schema: "StructType"
    ) -> AbstractContextManager[None]:
        """Create the table if it does not exist, and hold the lease of the folder in which it is kept.

        A table whose catalog names no folder has no lease.

        Raises:
            InputError: if another run holds it, or if the table has not all columns.
        """
        if not _has_table(spark, self.name):
            spark.createDataFrame([], schema).write.saveAsTable(self.name)
        missing = sorted(set(schema.fieldNames()) - set(spark.table(self.name).columns))
        if missing:
            raise InputError(
                self.name, f"a table without {', '.join(missing)}", "these columns, or a new table"
            )
        rows: list[Any] = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name}").collect()
        location = next((row["data_type"] for row in rows if row["col_name"] == "Location"), None)
        return nullcontext() if location is None else _leased(spark, location, run_id)

    def write(self, scores: "DataFrame", run_id: str, chunk: int) -> None:  # noqa: ARG002
        """Append a chunk of scores."""
        from pyspark.sql import functions as sf

        own = set(scores.columns)
        wanted = scores.sparkSession.table(self.name).schema
        columns = [
            sf.col(f"`{f.name}`") if f.name in own else sf.lit(None).cast(f.dataType).alias(f.name)
            for f in wanted
        ]
        scores.select(*columns).write.mode("append").saveAsTable(self.name)


def _leased(spark: "SparkSession", folder: str, run_id: str) -> AbstractContextManager[None]:
    return nullcontext() if context_of(spark) is None else leased(spark, folder, run_id)


Place = Folder | Table


def place_of(out: "str | Place") -> Place:
    """Return the place of scores; a text is a folder."""
    return Folder(out) if isinstance(out, str) else out


def read_table(spark: "SparkSession", name: str) -> "DataFrame":
    """Return a table of the catalog.

    Raises:
        InputError: if it does not exist.
    """
    if not _has_table(spark, name):
        raise InputError(f"table {name}", "no such table", "a table or view of the catalog, as db.name")
    return spark.table(name)


def _has_table(spark: "SparkSession", name: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return spark.catalog.tableExists(name)
    except AnalysisException as error:
        raise InputError(f"table {name}", in_short(error), "the name of a table, as db.name") from None


def _checked(scores: "DataFrame", where: str) -> "DataFrame":
    if not {column.name for column in SCORE_COLUMNS if not column.nullable} <= set(scores.columns):
        raise InputError(where, f"the columns {', '.join(scores.columns)}", "scores, or nothing")
    return scores


def _is_visible(name: str) -> bool:
    return not name.startswith(("_", "."))
