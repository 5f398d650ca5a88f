"""The data source ``rebalance_workload``, which generates workloads in Spark."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Generate
from rebalance_lab.scoring.rows import registry_with
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema, spark_schema
from rebalance_spark.sizes import size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FORMAT = "rebalance_workload"
ROWS_PER_BATCH = 1_000
_OWN = ("profile", "rows", "seed", "partitions", "plugins")


class Rows(InputPartition):
    """The rows with numbers from ``first`` to ``until``, exclusive."""

    def __init__(self, first: int, until: int) -> None:
        super().__init__((first, until))
        self.first, self.until = first, until


class WorkloadSource(DataSource):
    """The data source. Row n depends on the profile, its options and the seed only.

    Options: ``profile``; ``rows``; ``seed`` (default 0); ``partitions`` (default one per thousand rows);
    ``plugins``, a comma-separated list of modules with further profiles; and the options of the profile.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the data source."""
        return FORMAT

    def schema(self) -> "StructType":
        """Return the columns of a workload, with those that estimate its cost."""
        return spark_schema(WORKLOAD_COLUMNS)

    def reader(self, schema: "StructType") -> "WorkloadReader":  # noqa: ARG002
        """Return a reader for the options.

        Raises:
            InputError: if an option is unknown, missing or invalid.
        """
        return WorkloadReader(dict(self.options))


class WorkloadReader(DataSourceReader):
    """Generates the rows of a partition, in batches."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {key: value for key, value in options.items() if key not in _OWN}
        self._profile = options.get("profile", "")
        self._plugins = tuple(filter(None, options.get("plugins", "").split(",")))
        self._rows = _whole(options, "rows", None)
        self._seed = _whole(options, "seed", 0)
        self._partitions = _whole(options, "partitions", -(-self._rows // ROWS_PER_BATCH) or 1)
        self._options = given
        self._generate()(self._seed, 0)  # reports a wrong profile before a job starts

    def partitions(self) -> list[InputPartition]:
        """Return the partitions: ranges of rows of about equal size."""
        count = max(1, min(self._partitions, self._rows))
        bounds = [self._rows * i // count for i in range(count + 1)]
        return [Rows(first, until) for first, until in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition."""
        assert isinstance(partition, Rows)
        generate, schema = self._generate(), arrow_schema(WORKLOAD_COLUMNS)
        for first in range(partition.first, partition.until, ROWS_PER_BATCH):
            numbers = range(first, min(first + ROWS_PER_BATCH, partition.until))
            rows = [as_row(self._profile, self._seed, n, generate(self._seed, n)) for n in numbers]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)

    def _generate(self) -> Generate:
        return registry_with(self._plugins).generator(self._profile, self._options)


def as_row(profile: str, seed: int, number: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario document as a row of a workload."""
    text = msgspec.json.encode(document).decode()
    return {"scenario_id": f"{profile}-{seed}-{number}", "scenario": text, **size_of(document)._asdict()}


def register_generator(spark: "SparkSession") -> None:
    """Register the data source with a session. Spark 4.0 refuses one that it has found by itself."""
    from pyspark.errors import PySparkException

    try:
        spark.dataSource.register(WorkloadSource)
    except PySparkException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def _whole(options: Mapping[str, str], name: str, default: int | None) -> int:
    text = options.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isdecimal() or len(text) > 18:
        found = "nothing" if text is None else repr(text)
        raise InputError(f"{FORMAT}: {name}", found, "a whole number of at most 18 digits")
    return int(text)
