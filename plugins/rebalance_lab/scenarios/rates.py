"""The rates at which records are produced: per partition, constant or in steps, also from CSV files."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator_core.errors import InputError

_A_FILE = "a CSV file, named relative to the scenario"


@dataclass(frozen=True, slots=True)
class Rates:
    """Records/s produced to each partition over time.

    ``steps`` are pairs of a time and the rates of each partition from then on. They are in order of time, and
    the first is at 0. ``even`` is the rate of the topic if it is split evenly, over partitions added later,
    too. Otherwise no records are produced to partitions added later.
    """

    steps: tuple[tuple[int, tuple[float, ...]], ...]
    even: float | None = None

    @classmethod
    def evenly(cls, rate: float, partitions: int) -> "Rates":
        """Return a constant rate of the topic, split evenly."""
        return cls(((0, (rate / partitions,) * partitions),), even=rate)

    @classmethod
    def constant(cls, rates: tuple[float, ...]) -> "Rates":
        """Return a constant rate for each partition."""
        return cls(((0, rates),))

    @classmethod
    def in_intervals(cls, counts: Sequence[tuple[float, ...]], interval_ms: int, until_ms: int) -> "Rates":
        """Return rates from records of each partition per interval. After the last row they are 0."""
        seconds = interval_ms / 1_000
        times = range(0, min(len(counts) * interval_ms, until_ms), interval_ms)
        steps = [(at_ms, tuple(n / seconds for n in row)) for at_ms, row in zip(times, counts, strict=False)]
        if len(counts) * interval_ms < until_ms:
            steps.append((len(counts) * interval_ms, (0.0,) * len(counts[0])))
        return cls(tuple(_changes(steps)))

    def resized(self, now: tuple[float, ...], partitions: int) -> tuple[float, ...]:
        """Return the current rates ``now`` for another number of partitions."""
        if self.even is not None:
            return (self.even / partitions,) * partitions
        return now[:partitions] + (0.0,) * (partitions - len(now))


def read_rates(path: Path, *, partitions: int, interval_ms: int, until_ms: int, where: str) -> Rates:
    """Return the rates of a CSV file: a row per interval, a column per partition, values are records.

    An additional first column is a label, such as a time. The first row is a header if one of its values is
    not a number. After the last row the rates are 0.

    Raises:
        InputError: if the file is not such a CSV. The error has the file and the row (1 is the first line).
    """
    return Rates.in_intervals(read_counts(path, partitions, where), interval_ms, until_ms)


def read_counts(path: Path, partitions: int, where: str) -> list[tuple[float, ...]]:
    """Return the rows of a CSV file: records of each partition.

    Raises:
        InputError: as `read_rates`.
    """
    counts: list[tuple[float, ...]] = []
    for line, row in _rows(path, where):
        place = f"{where}: {path}, row {line}"
        values = _values(row, partitions, place)
        if not counts and line == 1 and any(_number(cell) is None for cell in values):
            continue
        counts.append(tuple(_count(cell, place) for cell in values))
    if not counts:
        raise InputError(f"{where}: {path}", "no rows of numbers", f"a row of {partitions} per interval")
    return counts


def _rows(path: Path, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, with their line numbers."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            try:
                for row in reader:
                    if row:
                        yield reader.line_num, row
            except (csv.Error, UnicodeDecodeError) as error:
                place = f"{where}: {path}, row {reader.line_num + 1}"
                raise InputError(place, str(error), "comma-separated numbers in UTF-8") from None
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror})"
        raise InputError(f"{where}: {path}", found, _A_FILE) from None
    except ValueError:  # a null character, or half of a surrogate pair
        raise InputError(where, repr(str(path)), _A_FILE) from None


def _values(row: list[str], partitions: int, place: str) -> list[str]:
    if len(row) == partitions:
        return row
    if len(row) == partitions + 1:
        return row[1:]
    expected = f"{partitions}, one per partition (and possibly a label in front)"
    raise InputError(place, f"{len(row)} columns", expected)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _count(cell: str, place: str) -> float:
    value = _number(cell)
    if value is None or not 0 <= value < math.inf:
        raise InputError(place, repr(cell[:60]), "a number of records, not negative")
    return value


def _changes(steps: list[tuple[int, tuple[float, ...]]]) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Yield the steps that differ from the one before."""
    before = None
    for at_ms, rates in steps:
        if rates != before:
            yield at_ms, rates
        before = rates
