"""Scores as arrays: a row per scenario, a column per strategy. A metric is read when it is needed."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_spark.choices import Status
from rebalance_spark.schema import CARRIED, SCORE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Figures2D = npt.NDArray[np.float64]

NO_ROW = -1
"""The status of a scenario that has no row under a strategy. The others are places in `Status`."""

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_OWN = frozenset(column.name for column in SCORE_COLUMNS)
_KEYS = ("scenario_id", "strategy", "status")
_FACTS = ("scenario_hash", "run_id", "fidelity", "program_version", "plugin_versions")
_STARTS = ("start_assignor", "start_moves")
_NEEDED = {*_KEYS, *_FACTS}


@dataclass(frozen=True, slots=True)
class ScoredColumn:
    """A column of scores: its type by Spark's name, its unit and definition, if the workload has it."""

    name: str
    type: str
    unit: str = ""
    doc: str = ""
    carried: bool = False


def metric_columns(columns: Iterable[ScoredColumn]) -> list[ScoredColumn]:
    """Return the columns that are metrics: those of type double that are not of the workload.

    Raises:
        InputError: if the columns are not those of scores.
    """
    columns = list(columns)
    names = [column.name for column in columns]
    numbers = [column for column in columns if column.type == "double" and column.name not in _OWN]
    metrics = [column for column in numbers if not column.carried]
    if not set(_KEYS) <= set(names) or not metrics:
        found = f"the columns {', '.join(names)}"
        raise InputError("scores", found, "scenario_id, strategy, status and metrics among them")
    return metrics


@dataclass(eq=False)
class Scored:
    """Scores, each once: of several scores of a scenario and a strategy, that of the last run.

    ``scenarios`` are sorted ids. If several scenarios have the same id, the hash of the scenario follows it.
    ``status`` has the place of the status in `Status`, or `NO_ROW` (scenarios x strategies). ``partly`` maps
    strategies that were left out, because few scenarios are scored under them, to the number of these.
    ``names`` are those of all columns.
    """

    scenarios: list[str]
    strategies: list[str]
    status: npt.NDArray[np.int8]
    metrics: list[ScoredColumn]
    others: list[str]
    _read: Callable[[list[str]], pa.Table]
    _rows: npt.NDArray[np.int64] = field(repr=False)
    _cells: npt.NDArray[np.int64] = field(repr=False)
    partly: Mapping[str, int] = field(default_factory=dict)
    names: frozenset[str] = frozenset()

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """Whether a strategy completed a scenario (scenarios x strategies)."""
        return np.asarray(self.status == list(Status).index(Status.OK))

    def figures(self, metric: str) -> Figures2D:
        """Return a metric, or another column of numbers (scenarios x strategies).

        A row that is not ok, or without the figure, has NaN.
        """
        column = pc.cast(self._read([metric]).column(metric), pa.float64())
        values = column.to_numpy(zero_copy_only=False)[self._rows]
        flat = np.full(self.status.size, np.nan)
        flat[self._cells] = values
        return np.where(self.ok, flat.reshape(self.status.shape), np.nan)

    def values(self, name: str) -> list[Any]:
        """Return the value of another column for each scenario."""
        scenario = self._cells // max(1, len(self.strategies))
        numbers, first = np.unique(scenario, return_index=True)
        column = self._read([name]).column(name).take(pa.array(self._rows[first])).to_pylist()
        found: list[Any] = [None] * len(self.scenarios)
        for number, value in zip(numbers.tolist(), column, strict=True):
            found[number] = value
        return found

    def distinct(self, *names: str) -> list[tuple[str, ...]]:
        """Return the different values of columns with texts, sorted."""
        table = self._read(list(names)).take(pa.array(self._rows))
        groups = table.group_by(list(names)).aggregate([])
        return sorted(tuple(row[name] or "" for name in names) for row in groups.to_pylist())

    def of(self, strategies: Sequence[str]) -> "Scored":
        """Return the scores of some strategies, in their order.

        Raises:
            InputError: if a strategy has no scores.
        """
        for name in strategies:
            if name not in self.strategies:
                raise InputError("strategy", repr(name), one_of(name, self.strategies))
        chosen = [self.strategies.index(name) for name in strategies]
        place = np.full(len(self.strategies), -1)
        place[chosen] = np.arange(len(chosen))
        scenario, strategy = np.divmod(self._cells, len(self.strategies))
        kept = place[strategy] >= 0
        cells = scenario[kept] * len(chosen) + place[strategy[kept]]
        return replace(
            self,
            strategies=list(strategies),
            status=self.status[:, chosen],
            _rows=self._rows[kept],
            _cells=cells,
        )

    def without_partly_scored(self, keep: Sequence[str] = ()) -> "Scored":
        """Return the scores without the strategies that have less than half as many rows as another one.

        Strategies in ``keep`` stay. ``partly`` of the result names those that were left out.
        """
        rows = (self.status != NO_ROW).sum(axis=0).tolist()
        counted = dict(zip(self.strategies, rows, strict=True))
        partly = {s: n for s, n in counted.items() if 2 * n < max(rows) and s not in keep}
        return replace(self.of([s for s in self.strategies if s not in partly]), partly=partly)


def scored_of(columns: Sequence[ScoredColumn], read: Callable[[list[str]], pa.Table]) -> Scored:
    """Return scores. ``read`` returns columns; its rows always have the same order.

    Raises:
        InputError: if the columns are not those of scores.
    """
    metrics = metric_columns(columns)
    names = [column.name for column in columns]
    keys = read([name for name in (*_KEYS, "scenario_hash", "run_id") if name in names])
    scenario, scenarios = encoded(_scenario_ids(keys))
    strategy, strategies = encoded(keys.column("strategy"))
    cells = scenario * len(strategies) + strategy
    rows = _last_rows(cells, keys)
    status, statuses = encoded(keys.column("status"))
    place = np.array(
        [list(Status).index(Status(name)) if name in list(Status) else NO_ROW for name in statuses],
        dtype=np.int8,
    )
    grid = np.full(len(scenarios) * len(strategies), NO_ROW, dtype=np.int8)
    grid[cells[rows]] = place[status[rows]] if len(statuses) else NO_ROW
    known = {*_OWN, *(metric.name for metric in metrics)}
    return Scored(
        scenarios,
        strategies,
        grid.reshape(len(scenarios), len(strategies)),
        metrics,
        [name for name in names if name not in known],
        read,
        rows,
        cells[rows],
        names=frozenset(names),
    )


def encoded(column: pa.ChunkedArray | pa.Array) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the number of the value of each row, and the values, sorted."""
    coded = pc.dictionary_encode(pc.fill_null(pc.cast(column, pa.string()), ""))
    coded = coded.unify_dictionaries().combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.chunk(0) if coded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    values: list[str] = coded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return (rank[codes] if len(values) else codes), [values[i] for i in order]


def _scenario_ids(keys: pa.Table) -> pa.ChunkedArray:
    """Return the ids. The hash of the scenario follows an id that several scenarios have."""
    ids = keys.column("scenario_id")
    if "scenario_hash" not in keys.column_names:
        return ids
    different = keys.select(["scenario_id", "scenario_hash"]).group_by(["scenario_id", "scenario_hash"])
    counted = different.aggregate([]).group_by("scenario_id").aggregate([("scenario_hash", "count")])
    several = counted.filter(pc.greater(counted.column("scenario_hash_count"), 1)).column("scenario_id")
    if not len(several):
        return ids
    together = pc.binary_join_element_wise(ids, keys.column("scenario_hash"), " ")
    return pc.if_else(pc.is_in(ids, value_set=several.combine_chunks()), together, ids)


def _last_rows(cells: npt.NDArray[np.int64], keys: pa.Table) -> npt.NDArray[np.int64]:
    """Return the row of each score, that of the last run if there are several."""
    run = encoded(keys.column("run_id"))[0] if "run_id" in keys.column_names else np.zeros_like(cells)
    order = np.lexsort((run, cells))
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = cells[order][1:] != cells[order][:-1]
    return np.sort(order[last])


def stored_scores(folder: Path) -> Scored | None:
    """Return the scores in a folder of this machine, or None if it has no files. No session is needed.

    Raises:
        InputError: if the files are not scores.
    """
    files = [path for path in sorted(folder.rglob("*.parquet")) if _is_visible(path.relative_to(folder))]
    if not files:
        return None
    try:
        schemas = [pq.read_schema(path) for path in files]
        schema = pa.unify_schemas([each.remove_metadata() for each in schemas])
    except (pa.ArrowException, OSError) as error:
        raise InputError(str(folder), f"files that cannot be read ({error})", "scores") from None
    described = {column.name: column for each in schemas for column in _described(each)}
    if not set(schema.names) >= _NEEDED:
        raise InputError(str(folder), f"the columns {', '.join(schema.names)}", "scores, or nothing")
    dataset = ds.dataset([str(path) for path in files], schema=schema, format="parquet", partitioning=None)
    columns = [described[name] for name in schema.names]
    return scored_of(columns, lambda names: dataset.to_table(columns=names))


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.parts)


def _described(schema: pa.Schema) -> list[ScoredColumn]:
    """Return the columns of a file, with the units and definitions that Spark wrote into it."""
    written = json.loads((schema.metadata or {}).get(_SPARK_SCHEMA, b'{"fields": []}'))
    notes = {entry["name"]: entry.get("metadata", {}) for entry in written["fields"]}
    return [_column(column.name, str(column.type), notes.get(column.name, {})) for column in schema]


def _column(name: str, kind: str, notes: Mapping[str, Any]) -> ScoredColumn:
    return ScoredColumn(name, kind, notes.get("unit", ""), notes.get("comment", ""), bool(notes.get(CARRIED)))


def collected_scores(scores: "DataFrame") -> Scored:
    """Return the scores of a data frame, which comes to this process as it is."""
    columns = columns_of(scores)
    wanted = [
        column.name
        for column in columns
        if column.name not in _OWN or column.name in (*_KEYS, *_FACTS, *_STARTS)
    ]
    table = scores.select(*wanted).toArrow()
    return scored_of([column for column in columns if column.name in wanted], table.select)


def columns_of(scores: "DataFrame") -> list[ScoredColumn]:
    """Return the columns of a data frame."""
    types = dict(scores.dtypes)
    return [_column(each.name, types[each.name], each.metadata) for each in scores.schema.fields]
