"""Decisions from scores: for each group the strategy of today, or one that is known to be better."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scoring.labels import parted
from rebalance_lab.verdicts.aims import BALANCE, LOADED, MOVES, STOPS
from rebalance_lab.verdicts.changes_per_group import changes, greatest, needed_of, reason_of
from rebalance_lab.verdicts.choices_per_group import (
    COUNTED_BALANCE,
    FALSE_SWITCHES,
    MARGIN,
    MISSING,
    aims_of,
    choose_each,
    deciding,
    default_aims,
)
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.switching import keeps_owners
from rebalance_spark.schema import STRATEGIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHORT = {
    STOPS.metric: "stopped",
    MOVES.metric: "moved",
    BALANCE.metric: "balance",
    COUNTED_BALANCE: "balance",
    LOADED.metric: "load",
}
"""The names that metrics have in columns of decisions. Others have their own."""

_MADE = ("fidelity", "start_assignor", "program_version")
"""What must be alike in scores that are compared."""

_COLUMNS = ("scenario_id", "strategy", "status", "run_id", "members", *_MADE)
_BESIDE = (LOADED.metric, MISSING, COUNTED_BALANCE)
_SPARK = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double"}


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be decided: the arguments of `decide`."""

    today: str
    strategies: Sequence[str] = ()
    per: Sequence[str] = ()
    metrics: Sequence[str] = ()
    false_switches: float = FALSE_SWITCHES
    margin: float = MARGIN


def decide(
    scores: "DataFrame",
    today: str,
    *,
    strategies: Sequence[str] = (),
    per: Sequence[str] = (),
    metrics: Sequence[str] = (),
    false_switches: float = FALSE_SWITCHES,
    margin: float = MARGIN,
) -> "DataFrame":
    """Return a row for each group, in the columns of `decision_schema`: lazily, computed in one task.

    `today`: the strategy that runs. `strategies`: the others to compare, by default all. `per`: the columns
    that name a group; by default ``group``, or ``scenario_id`` where there is no such column. `metrics`:
    those that decide, the most important one first; by default stopped time (moves, where it is not measured)
    and balance by rates. `false_switches`: the greatest expected share of switches that are due to chance.
    `margin`: the share by which a strategy may be worse in the rest. The rule is in
    `verdicts.choices_per_group`.

    Raises:
        InputError: if a column does not exist, or if neither `score`, which made the scores, nor a plugin
            knows a strategy. As an error of the task: as `decisions`.
    """
    question = Question(today, strategies, per, metrics, false_switches, margin)
    names, own = _checked(scores.columns, question)
    _check_known(scores.schema["strategy"].metadata.get(STRATEGIES, ()), (today, *strategies))
    schema = decision_schema(scores.columns, names, own)
    read = {*names, *own, *_COLUMNS, *_BESIDE}

    def call(table: pa.Table) -> pa.Table:
        return decisions(last_rows(table), question)

    columns = ", ".join(f"`{field.name}` {_SPARK[field.type]}" for field in schema)
    wanted = [f"`{name}`" for name in scores.columns if name in read]
    return scores.select(*wanted).groupBy().applyInArrow(call, columns)


def decision_schema(columns: Sequence[str], per: Sequence[str], metrics: Sequence[str]) -> pa.Schema:
    """Return the columns of decisions by some metrics, from scores with these columns.

    - those of `per`: the group
    - ``today``, ``advised``: strategies
    - ``reason``: why, in words
    - ``p``: the p-value of the switch, or of the one that is closest
    - ``scenarios``: how many decide
    - ``needed``: about how many it takes, null where they are enough
    - ``runner_up``: the next strategy, null without one
    - ``<metric>_today``, ``<metric>_change`` for each metric that decides (``stopped`` in partition seconds,
      ``moved`` in partitions, ``balance`` as busiest member over the mean), in the mean of the scenarios,
      with the interval of 95 % of the first change in ``low`` and ``high``; changes are null where the
      strategy is kept
    - ``load_today``, ``load_change``: the greatest load of the busiest member, as a share of what it can
      handle; ``overloaded``: the scenarios in which it has more
    - ``missing_members``: how many more it takes under the advised strategy so that no member has more than
      it can handle, infinite if no number is enough

    Raises:
        InputError: if two columns would have the same name.
    """
    fields = [(name, pa.string()) for name in (*per, "today", "advised", "reason")]
    fields += [("p", pa.float64()), ("scenarios", pa.int64()), ("needed", pa.int64())]
    fields.append(("runner_up", pa.string()))
    for number, metric in enumerate(metrics):
        name = SHORT.get(metric, metric)
        ends = ("low", "high") if not number else ()
        fields += [(each, pa.float64()) for each in (f"{name}_today", f"{name}_change", *ends)]
    if LOADED.metric in columns:
        fields += [("load_today", pa.float64()), ("load_change", pa.float64()), ("overloaded", pa.int64())]
    fields += [(MISSING, pa.float64())] if MISSING in columns else []
    found = [name for name, _ in fields]
    for name in (name for name in found if found.count(name) > 1):
        raise InputError("decisions", f"a second column {name!r}", "other names of metrics, and in per")
    return pa.schema(fields)


def decisions(scores: pa.Table, question: Question) -> pa.Table:
    """Return what `decide` does, of `last_rows` of scores: switches first, those that gain most on top.

    Raises:
        InputError: if a strategy has no scores, if today's completed nothing, or if scores of a scenario were
            made by different versions, fidelities or starts.
    """
    today, metrics = question.today, question.metrics
    names, own = _checked(scores.column_names, question)
    grid, scored, scenarios = grid_of(scores, today, question.strategies)
    keys = [
        tuple("" if v is None else str(v) for v in row.values())
        for row in scenarios.select(names).to_pylist()
    ]
    number = {key: place for place, key in enumerate(sorted(set(keys)))}
    groups = np.array([number[key] for key in keys], dtype=np.int64)
    aims = aims_of(metrics) if metrics else default_aims(grid)
    stateful = [keeps_owners(parted(setup.strategy)[0], default_registry()) for setup in grid.setups]
    found = choose_each(
        grid,
        groups,
        len(number),
        aims,
        scored=scored,
        keeps_owners=np.array(stateful),
        relief=not metrics,
        rate=question.false_switches,
        margin=question.margin,
    )
    labels = np.array([setup.strategy for setup in grid.setups], dtype=object)
    columns: dict[str, Any] = dict(zip(names, zip(*number, strict=True), strict=True))
    columns |= {
        "today": [today] * len(number),
        "advised": labels[found.chosen],
        "reason": [reason_of(found, grid, aims, group) for group in range(len(number))],
        "p": found.chance,
        "scenarios": found.units,
        "needed": needed_of(found, grid),
        "runner_up": np.where(
            found.runner_up == grid.now, np.array(None, dtype=object), labels[found.runner_up]
        ),
        "overloaded": found.overloaded,
    }
    for metric in reversed(own):  # low and high are those of the first
        name = SHORT.get(metric, metric)
        figures = changes(grid, metric, found, groups)
        columns |= dict(zip((f"{name}_today", f"{name}_change", "low", "high"), figures, strict=True))
    now, then = greatest(grid, LOADED.metric, found, groups)
    columns |= {"load_today": now, "load_change": np.where(found.chosen == grid.now, np.nan, then - now)}
    columns[MISSING] = greatest(grid, MISSING, found, groups)[1]
    schema = decision_schema(scores.column_names, names, own)
    table = pa.table([pa.array(columns[f.name], f.type, from_pandas=True) for f in schema], schema=schema)
    first = SHORT.get(own[0], own[0])
    gain = columns[f"{first}_change"] / np.maximum(columns[f"{first}_today"], 1e-9)
    gain = -gain if aims_of(own)[0].better == "higher" else gain
    return table.take(pa.array(np.lexsort((np.nan_to_num(gain), found.chosen == grid.now))))


def grid_of(
    scores: pa.Table, today: str, strategies: Sequence[str] = ()
) -> tuple[Grid, npt.NDArray[np.bool_], pa.Table]:
    """Return scores as a grid: units are scenarios, candidates are strategies.

    Also whether each scenario is scored under each strategy (bool[N, K]), and a row of each scenario. Scores
    have a row of each scenario and strategy, as `last_rows` returns them.

    Raises:
        InputError: as `decisions`.
    """
    known = sorted(pc.unique(scores["strategy"]).to_pylist())
    for name in (today, *strategies):
        if name not in known:
            raise InputError("scores", f"none of {name!r}", one_of(name, known))
    if strategies:
        known = [name for name in known if name in {today, *strategies}]
        scores = scores.filter(pc.is_in(scores["strategy"], pa.array(known)))
    check_comparable(scores)
    ids = pc.unique(scores["scenario_id"])
    row = pc.index_in(scores["scenario_id"], ids).to_numpy().astype(np.int64)
    column = pc.index_in(scores["strategy"], pa.array(known)).to_numpy().astype(np.int64)
    last = np.full((len(ids), len(known)), -1, dtype=np.int64)
    last[row, column] = np.arange(len(scores))
    scored = last >= 0
    ok = scored & (scores["status"].to_numpy(zero_copy_only=False)[last] == "ok")
    if not ok[:, known.index(today)].any():
        expected = "some; the column error of the scores says why they failed"
        raise InputError("scores", f"no scenario that {today} completed", expected)
    metrics = [f.name for f in scores.schema if f.type == pa.float64() or f.name == "members"]
    figures = np.full((*last.shape, len(metrics)), np.nan)
    for number, metric in enumerate(metrics):
        values = pc.cast(scores[metric], pa.float64()).to_numpy(zero_copy_only=False)
        figures[:, :, number] = np.where(ok, values[last], np.nan)
    grid = Grid(ids.to_pylist(), [Setup(name) for name in known], metrics, figures, known.index(today))
    return grid, scored, scores.take(pa.array(last.max(axis=1)))


def last_rows(scores: pa.Table) -> pa.Table:
    """Return scores with one row of each scenario and strategy: that of the last run."""
    if "run_id" in scores.column_names:
        scores = scores.sort_by("run_id")
    place = scores.select(["scenario_id", "strategy"]).append_column("row", pa.array(np.arange(len(scores))))
    last = place.group_by(["scenario_id", "strategy"]).aggregate([("row", "max")])["row_max"]
    return scores.take(pc.sort_indices(last).take(pa.nulls(0, pa.int64())) if not len(last) else last.sort())


def check_comparable(scores: pa.Table) -> None:
    """Check that the scores of each scenario were made alike.

    Raises:
        InputError: if the fidelity, the start or the version of the program differ.
    """
    made = [name for name in _MADE if name in scores.column_names]
    kinds = scores.select(["scenario_id", *made]).group_by(["scenario_id", *made]).aggregate([])
    several = kinds.group_by("scenario_id").aggregate([("scenario_id", "count")])
    several = several.filter(pc.greater(several["scenario_id_count"], 1))
    if len(several):
        example = several["scenario_id"][0].as_py()
        rows = kinds.filter(pc.equal(kinds["scenario_id"], example)).select(made).to_pylist()
        found = "; ".join(" ".join(str(value) for value in row.values() if value) for row in rows)
        where = f"scores of {len(several):,} scenarios, such as {example}"
        raise InputError(where, found, "scores made alike: score again, or compare fewer strategies")


def _check_known(scored: Sequence[str], names: Sequence[str]) -> None:
    """Check strategies of scores that have not been read, of which `score` noted some.

    Scores may have others, from other runs: only a name that no plugin has either is wrong.

    Raises:
        InputError: if a strategy is not known.
    """
    for name in (name for name in names if scored and name not in scored):
        try:
            default_registry().strategy(parted(name)[0])
        except RebalanceLabError:
            raise InputError("scores", f"none of {name!r}", one_of(name, scored)) from None


def _checked(columns: Sequence[str], question: Question) -> tuple[list[str], list[str]]:
    """Return the columns that name a group, and the metrics that decide, which scores with columns have."""
    per, metrics = question.per, question.metrics
    for where, given in (("per", per), ("metrics", metrics)):
        if isinstance(given, str):
            raise InputError(where, repr(given), f"a list, such as [{given!r}]")
    names = list(per) or ["group" if "group" in columns else "scenario_id"]
    for where, wanted in (("per", names), ("scores", ("scenario_id", "strategy", "status", *metrics))):
        for name in wanted:
            if name not in columns:
                raise InputError(where, f"no column {name!r}", one_of(name, columns))
    for name in (name for name in metrics if name in SHORT.values()):
        expected = f"another name: decisions have columns of {name}, which are not this metric's"
        raise InputError("metrics", repr(name), expected)
    own = list(metrics) or deciding(columns)
    if not own:
        expected = f"{STOPS.metric}, {MOVES.metric} or {BALANCE.metric}, or metrics that decide"
        raise InputError("scores", f"the columns {', '.join(columns)}", expected)
    return names, own
