"""Scores by hand, as Arrow and in files like those of a run."""

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_lab.verdicts.rule import FEWEST_PAIRS


def row(group, strategy, moves=None, imbalance=1.0, rounds=1.0, **fields):
    """A score at plan fidelity; without moves, one of a scenario that failed."""
    figures = {"moved_partitions": moves, "imbalance": imbalance, "rounds": rounds}
    done = {"status": "ok", **figures} if moves is not None else {"status": "error"}
    made = {"fidelity": "plan", "program_version": "1", "run_id": "1"}
    return {"scenario_id": group, "group": group, "strategy": strategy, **made, **done, **fields}


def hourly(rows, hours=2 * FEWEST_PAIRS):
    """The same rows in some hours."""
    return [
        {**each, "scenario_id": f"hour={hour}/{each['group']}", "hour": hour}
        for hour in range(hours)
        for each in rows
    ]


def by_hour(group, **strategies):
    """Scores of a group: a mapping of figures for each strategy and hour, None where it failed."""
    return [
        row(group, strategy, **(figures or {}))
        | {"scenario_id": f"hour={hour}/{group}", "hour": hour, **({} if figures else {"status": "error"})}
        for strategy, each in strategies.items()
        for hour, figures in enumerate(each)
        if figures is not ...
    ]


def as_scores(rows):
    """Rows as Arrow. Columns that are nowhere known are left out, and numbers but hours are doubles."""
    names = list(dict.fromkeys(name for each in rows for name in each))
    values = {name: [each.get(name) for each in rows] for name in names}
    values = {
        name: [float(v) if isinstance(v, int) and name != "hour" else v for v in column]
        for name, column in values.items()
        if any(v is not None for v in column)
    }
    return pa.table(values)


def write(folder, rows, name="part-0.parquet"):
    """Rows as a file of scores."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(as_scores(rows), folder / name)
    return folder
