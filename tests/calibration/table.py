"""Real and predicted figures side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from math import inf, isnan
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np

from coordinator_core import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.verdicts import calibrated
from tests.calibration.cells import MIGRATIONS, Cell, simulated_by
from tests.calibration.figures import ACCURACY_SECONDS, Figures

NEAR_SHARE = 0.2
NEAR = {"duplicates": 1.0, "stopped_partitions": 1.0}
"""The difference that counts as near, whatever its share; 0.2 s for the others."""

NEAR_SECONDS = 0.2
WHOLE = {"duplicates": 0.5, "stopped_partitions": 0.5}
"""The accuracy of figures that are numbers; `ACCURACY_SECONDS` for the others."""

CLEAR = 0.15
"""Two strategies of a client have an order if their real stopped times differ by more than this share."""

SHORT = {
    "stopped_seconds": "stopped s",
    "longest_stop_seconds": "longest s",
    "rest_seconds": "rest s",
    "stopped_partitions": "partitions",
    "duplicates": "duplicates",
}
HEADINGS = ("scenario", "client", "strategy", "figure", "real", "predicted", "5 %", "95 %", "", "")


class Row(NamedTuple):
    """A figure of a cell: the real median, and the predicted median and 5-95 % range."""

    cell: Cell
    figure: str
    real: float
    predicted: float
    low: float
    high: float

    @property
    def hit(self) -> bool:
        """Whether the real median lies in the predicted range."""
        return self.low - self._slack <= self.real <= self.high + self._slack

    @property
    def near(self) -> bool:
        """Whether the medians are close."""
        allowed = max(NEAR.get(self.figure, NEAR_SECONDS), NEAR_SHARE * abs(self.real))
        return abs(self.predicted - self.real) <= allowed

    @property
    def _slack(self) -> float:
        """A range is not narrower than the accuracy of the measurement."""
        return WHOLE.get(self.figure, ACCURACY_SECONDS)


def rows(real: Mapping[Cell, Sequence[Figures]], predicted: Mapping[Cell, Sequence[Figures]]) -> list[Row]:
    """Return the rows of all cells that have both."""
    found = []
    for cell, measured in real.items():
        if cell in predicted:
            for figure in Figures._fields:
                values = _values(predicted[cell], figure)
                with np.errstate(invalid="ignore"):
                    ends = np.nan_to_num(
                        np.percentile(values, (5, 95)), nan=inf
                    )  # of two runs without an end
                true = median(_values(measured, figure))
                found.append(Row(cell, figure, true, median(values), float(ends[0]), float(ends[1])))
    return found


def _values(runs: Iterable[Figures], figure: str) -> list[float]:
    """Return a figure of each run: infinite for a rest that did not come before the end of the run."""
    values = (getattr(run, figure) for run in runs)
    return [inf if isnan(value) else value for value in values]


def text(table: Iterable[Row]) -> str:
    """Return the table in columns, with its summary."""
    listed = list(table)
    lines = [HEADINGS, *(_line(row) for row in listed)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    shown = [
        "  ".join(
            value.ljust(width) if i < 4 or i > 7 else value.rjust(width)
            for i, (value, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*shown, "", summary(listed)])


def markdown(table: Iterable[Row]) -> str:
    """Return a line for each cell: the real median of each figure, and the predicted median and range."""
    lines = [
        "| scenario | client | strategy | " + " | ".join(SHORT.values()) + " |",
        "|---" * (3 + len(SHORT)) + "|",
    ]
    for cell, of_cell in groupby(table, key=lambda row: row.cell):
        values = {row.figure: _short(row) for row in of_cell}
        lines.append(f"| {' | '.join(cell)} | {' | '.join(values[figure] for figure in SHORT)} |")
    return "\n".join(lines)


MOST = 1e9
"""What is greater never happened, and is a great number in the data."""


def _short(row: Row) -> str:
    """Return a figure of a cell, in bold if the real median is outside of the range."""
    digits = 0 if row.figure in NEAR else 1
    real, predicted, low, high = ("∞" if value > MOST else f"{value:.{digits}f}" for value in row[2:])
    shown = f"{real} / {predicted} ({low}-{high})"
    return shown if row.hit else f"**{shown}**"


def summary(table: Sequence[Row]) -> str:
    """Return how many figures lie in their ranges, in all and by client, and which orders are right."""
    hits, near = (sum(row.hit for row in table), sum(row.near for row in table))
    of_client: dict[str, list[Row]] = {}
    for row in table:
        way = "KIP-848" if row.cell.is_reconciled else "classic"
        way = "migration" if row.cell.scenario in MIGRATIONS else way
        of_client.setdefault(f"{row.cell.client}, {way}", []).append(row)
    in_range = (f"{sum(row.hit for row in own)} of {len(own)}: {name}" for name, own in of_client.items())
    return "\n".join(
        (
            f"{hits} of {len(table)} real medians lie in the predicted range;"
            f" {near} predicted medians are within 20 % or 200 ms",
            *in_range,
            _orders([row for row in table if row.figure == "stopped_seconds"]),
        )
    )


def _orders(table: Iterable[Row]) -> str:
    """Return how often the strategy that stops partitions for longer is the predicted one, of clear pairs."""
    pairs = [
        (one, other)
        for one, other in combinations(table, 2)
        if one.cell[:2] == other.cell[:2] and abs(one.real - other.real) > CLEAR * max(one.real, other.real)
    ]
    right = sum((one.real < other.real) == (one.predicted < other.predicted) for one, other in pairs)
    return (
        f"the order of two strategies is right in {right} of {len(pairs)} pairs"
        f" whose real stopped times differ by more than {CLEAR:.0%}"
    )


def apart(
    real: Mapping[str, Mapping[Cell, Sequence[Figures]]],
) -> Iterator[str]:
    """Yield a line for each figure whose ranges on two brokers are further apart than they are accurate."""
    (one, those), (other, these) = real.items()
    for cell in (cell for cell in those if cell in these):
        for figure in Figures._fields:
            ranges = [sorted(_values(runs[cell], figure)) for runs in (those, these)]
            (_, low), (high, _) = sorted((values[0], values[-1]) for values in ranges)
            if high - low > WHOLE.get(figure, ACCURACY_SECONDS):
                shown = (f"{median(values):.1f} ({values[0]:.1f}-{values[-1]:.1f})" for values in ranges)
                yield f"{cell} {figure}: " + ", ".join(map(" ".join, zip((one, other), shown, strict=True)))


def _line(row: Row) -> tuple[str, ...]:
    values = (row.real, row.predicted, row.low, row.high)
    marks = ("hit" if row.hit else "MISS", "near" if row.near else "FAR")
    return (*row.cell, row.figure, *(f"{value:.2f}" for value in values), *marks)


def worth(real: Mapping[Cell, Sequence[Figures]], predicted: Mapping[Cell, Sequence[Figures]]) -> bytes:
    """Return the cells as `rebalance_lab.verdicts.calibrated` has them, one a line."""
    lines, table = [], rows(real, predicted)
    for cell, runs in real.items():
        row = next(row for row in table if row.cell == cell and row.figure == "stopped_seconds")
        met = sum(row._replace(real=run.stopped_seconds).hit for run in runs)
        scenario = parse_scenario(simulated_by(cell.document, cell.client), where=cell.scenario)
        registry = default_registry()
        way = calibrated.way_of(registry.strategy(cell.strategy), registry)
        batch_ms = round(calibrated.longest_batch_ms(scenario, registry))
        event = calibrated.kinds_of(scenario)[-1]
        lines.append(calibrated.Cell(cell.client, way, event, batch_ms, len(runs), met))
    return b"[\n " + b",\n ".join(map(msgspec.json.encode, lines)) + b"\n]\n"
