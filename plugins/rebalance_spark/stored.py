"""Scores as arrays: a row per scenario, a column per strategy. A metric is read when it is needed."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.choices import Status
from rebalance_spark.schema import CARRIED, SCORE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_T = TypeVar("_T")

Figures2D = npt.NDArray[np.float64]

NO_ROW = -1
"""The status of a scenario that has no row under a strategy. The others are places in `Status`."""

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_OWN = frozenset(column.name for column in SCORE_COLUMNS)
_KEYS = ("scenario_id", "strategy", "status")
_FACTS = ("scenario_hash", "run_id", "fidelity", "program_version", "plugin_versions")
_BESIDE = ("start_assignor", "start_moves", "loads", "busiest", "alike")
_SEED = "seed"
_MADE = ("program_version", "plugin_versions", "fidelity", "start_assignor")
"""What must be alike in scores of a scenario that are compared, beside its text."""

LIKE = ("status", *_MADE, _SEED)
"""What is alike in two scores of a scenario and a strategy of which one has only some of the metrics."""
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

    One of an earlier run that was made alike and has more figures counts in its place: the last run computed
    some metrics only.

    ``scenarios`` are sorted ids. If several scenarios have the same id, the hash of the scenario follows it.
    ``status`` has the place of the status in `Status`, or `NO_ROW` (scenarios x strategies). ``partly`` maps
    strategies that were left out, because few scenarios are scored under them, to the number of these.
    ``names`` are those of all columns. ``retold`` are the ids that several scenarios have.
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
    retold: Sequence[str] = ()

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

    def texts(self, name: str) -> npt.NDArray[np.object_]:
        """Return a column of texts (scenarios x strategies), None where there is none."""
        flat = np.full(self.status.size, None, dtype=np.object_)
        if name in self.names:
            flat[self._cells] = self._read([name]).column(name).to_numpy(zero_copy_only=False)[self._rows]
        return flat.reshape(self.status.shape)

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
    keys = read([name for name in (*_KEYS, "scenario_hash", "run_id", *_MADE, _SEED) if name in names])
    ids, retold = _scenario_ids(keys)
    scenario, scenarios = encoded(ids)
    strategy, strategies = encoded(keys.column("strategy"))
    cells = scenario * len(strategies) + strategy
    rows = _last_rows(cells, keys, lambda: _filled(metrics, read))
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
        retold=retold,
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


def _scenario_ids(keys: pa.Table) -> tuple[pa.ChunkedArray, list[str]]:
    """Return the ids, and those that several scenarios have: there the hash of the scenario follows."""
    ids = keys.column("scenario_id")
    if "scenario_hash" not in keys.column_names:
        return ids, []
    different = keys.select(["scenario_id", "scenario_hash"]).group_by(["scenario_id", "scenario_hash"])
    counted = different.aggregate([]).group_by("scenario_id").aggregate([("scenario_hash", "count")])
    several = counted.filter(pc.greater(counted.column("scenario_hash_count"), 1)).column("scenario_id")
    if not len(several):
        return ids, []
    together = pc.binary_join_element_wise(ids, keys.column("scenario_hash"), " ")
    with_hash = pc.if_else(pc.is_in(ids, value_set=several.combine_chunks()), together, ids)
    return with_hash, sorted(several.to_pylist())


def _last_rows(
    cells: npt.NDArray[np.int64], keys: pa.Table, filled: Callable[[], npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """Return the row of each score, the last one that has the most figures of those like the last one.

    ``filled`` returns the number of figures in each row. It is called if there are several rows of a score.
    """
    run = encoded(keys.column("run_id"))[0] if "run_id" in keys.column_names else np.zeros_like(cells)
    order = np.lexsort((run, cells))
    last = _ends(cells[order])
    if not last.all():
        like = [name for name in LIKE if name in keys.column_names]
        kinds = np.stack([encoded(keys.column(name))[0] for name in like])
        ends = order[last]
        of_cell = np.searchsorted(cells[ends], cells)
        is_alike = (kinds == kinds[:, ends[of_cell]]).all(axis=0)
        order = np.lexsort((run, filled(), is_alike, cells))
    return np.sort(order[last])


def _ends(cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return whether each of the sorted numbers is the last of its kind."""
    last = np.ones(len(cells), dtype=np.bool_)
    last[:-1] = cells[1:] != cells[:-1]
    return last


def _filled(metrics: Sequence[ScoredColumn], read: Callable[[list[str]], pa.Table]) -> npt.NDArray[np.int64]:
    """Return the number of figures in each row."""
    columns = (read([metric.name]).column(metric.name) for metric in metrics)
    return np.asarray(np.sum([c.is_valid().to_numpy() for c in columns], axis=0, dtype=np.int64))


def check_paired(scored: Scored) -> None:
    """Check that the scores of a scenario under all strategies were made alike.

    A plugin that some have and others do not have makes no difference: it may be that of a strategy.

    Raises:
        InputError: if versions, fidelities or starts differ. It names the strategies.
    """
    names = [name for name in _MADE if name in scored.names]
    if not names:
        return
    table = scored._read(names).take(pa.array(scored._rows))
    codes, texts = encoded(pc.binary_join_element_wise(*(_texts_of(table, name) for name in names), "\n"))
    made = [dict(zip(names, text.split("\n"), strict=True)) for text in texts]
    scenario, strategy = np.divmod(scored._cells, max(1, len(scored.strategies)))
    present = np.zeros((len(made), len(scored.scenarios)), dtype=np.bool_)
    present[codes, scenario] = True
    for (one, before), (other, after) in combinations(enumerate(made), 2):
        both = present[one] & present[other]
        differing = [name for name in names if _differ(name, before[name], after[name])]
        if differing and both.any():
            found = []
            for code, each in ((one, before), (other, after)):
                numbers = np.unique(strategy[both[scenario] & (codes == code)])
                labels = ", ".join(_LABELS[name].format(each[name] or "none") for name in differing)
                found.append(f"{listed_names([scored.strategies[n] for n in numbers])} by {labels}")
            example = scored.scenarios[int(np.argmax(both))]
            where = f"scores of {int(both.sum()):,} scenarios, such as {example}"
            raise InputError(where, " and ".join(found), "scores made alike: score again, or choose with -s")


_LABELS = {
    "program_version": "rebalance-lab {}",
    "plugin_versions": "plugins {}",
    "fidelity": "fidelity {}",
    "start_assignor": "--start {}",
}


def _texts_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.cast(table.column(name), pa.string()), "")


def _differ(name: str, one: str, other: str) -> bool:
    if name != "plugin_versions":
        return one != other
    versions, others = (dict(each.partition(" ")[::2] for each in text.split(", ")) for text in (one, other))
    return any(versions[plugin] != others[plugin] for plugin in versions.keys() & others.keys())


def stored_scores(folder: Path) -> Scored | None:
    """Return the scores in a folder of this machine, or None if it has no files. No session is needed.

    Raises:
        InputError: if the files are not scores.
    """
    files = [path for path in sorted(folder.rglob("*.parquet")) if _is_visible(path.relative_to(folder))]
    if not files:
        return None
    schemas = [_readable(path, pq.read_schema) for path in files]
    try:
        schema = pa.unify_schemas([each.remove_metadata() for each in schemas])
    except pa.ArrowException as error:
        raise InputError(str(folder), f"files that contradict each other ({error})", "scores") from None
    described = {column.name: column for each in schemas for column in _described(each)}
    if not set(schema.names) >= _NEEDED:
        raise InputError(str(folder), f"the columns {', '.join(schema.names)}", "scores, or nothing")
    dataset = ds.dataset([str(path) for path in files], schema=schema, format="parquet", partitioning=None)
    columns = [described[name] for name in schema.names]

    def read(names: list[str]) -> pa.Table:
        try:
            return dataset.to_table(columns=names)
        except (pa.ArrowException, OSError):
            for path in files:
                _readable(path, pq.read_table)
            raise

    return scored_of(columns, read)


def _readable(path: Path, read: Callable[[Path], _T]) -> _T:
    """Return what is read of a file.

    Raises:
        InputError: if it cannot be read. It names the file.
    """
    try:
        return read(path)
    except (pa.ArrowException, OSError) as error:
        found = f"a file that cannot be read ({' '.join(str(error).split())})"
        raise InputError(str(path), found, "scores in Parquet") from None


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
        if column.name not in _OWN or column.name in (*_KEYS, *_FACTS, *_BESIDE, _SEED)
    ]
    table = scores.select(*wanted).toArrow()
    return scored_of([column for column in columns if column.name in wanted], table.select)


def columns_of(scores: "DataFrame") -> list[ScoredColumn]:
    """Return the columns of a data frame."""
    types = dict(scores.dtypes)
    return [_column(each.name, types[each.name], each.metadata) for each in scores.schema.fields]
