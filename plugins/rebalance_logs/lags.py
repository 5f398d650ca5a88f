"""Lag and offsets of a group over time, from CSV or from Prometheus: the rates and the backlog of partitions.

Logs do not show records. What monitoring has of them comes in one of these:

- the answer of Prometheus to a range query, as JSON: series with the labels ``topic`` and ``partition``;
- CSV with a line of names: ``time``, ``topic``, ``partition``, and ``lag``, ``committed`` or ``end_offset``.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from rebalance_lab.verdicts.words import counted
from rebalance_logs.causes import Stop

EXPECTED = "the JSON of a range query of Prometheus, or CSV with time, topic, partition and lag or offsets"


class Amount(StrEnum):
    """What a figure is."""

    LAG = "lag"
    COMMITTED = "committed"
    END = "end_offset"


class Sample(NamedTuple):
    """A figure of a partition at a time, in milliseconds since 1970."""

    partition: TopicPartition
    amount: Amount
    at_ms: int
    value: float


_NAMES = {
    "time": ("time", "timestamp", "ts", "at"),
    "topic": ("topic",),
    "partition": ("partition",),
    "group": ("group", "consumergroup", "consumer_group", "group_id"),
    Amount.LAG: ("lag", "value"),
    Amount.COMMITTED: ("committed", "current_offset", "current-offset", "offset"),
    Amount.END: ("end_offset", "log_end_offset", "log-end-offset", "latest_offset"),
}
"""Fields, and the names that monitoring systems give to their columns and labels."""


@dataclass(frozen=True, slots=True)
class Load:
    """The records of a group: records/s of each partition, and how many waited at first.

    ``source`` says in words what they are from. A partition that is not known is missing.
    """

    rates: Mapping[TopicPartition, float]
    backlog: Mapping[TopicPartition, int]
    source: str


def read_load(path: Path, group: str, stops: Sequence[Stop], zone: tzinfo) -> Load:
    """Read lag and offsets of a group.

    The rate of a partition is that of its end offset, which may be given as committed offset and lag, or else
    of its committed offset. Where there is lag alone, it grows at the rate of the partition while that stands
    still: ``stops`` are those of the logs. ``zone``: of times without one.

    Raises:
        InputError: if the file cannot be read, is neither format, or has nothing of the group.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("--lag", f"{path} ({error})", EXPECTED) from None
    rows = _rows_of_json(text, path) if text.lstrip()[:1] == "{" else _rows_of_csv(text, path)
    samples = list(_samples(rows, group, path, zone))
    if not samples:
        raise InputError("--lag", f"{path} without figures of {group}", f"some of the group {group}")
    series: dict[Amount, dict[TopicPartition, list[tuple[int, float]]]] = {amount: {} for amount in Amount}
    for sample in sorted(samples, key=lambda s: s.at_ms):
        series[sample.amount].setdefault(sample.partition, []).append((sample.at_ms, sample.value))
    lags, committed = series[Amount.LAG], series[Amount.COMMITTED]
    ends = series[Amount.END] or {tp: _sums(own, lags[tp]) for tp, own in committed.items() if tp in lags}
    backlog = {tp: max(0, round(own[0][1])) for tp, own in lags.items()}
    for partition, own in ends.items():
        if partition not in backlog and partition in committed:
            backlog[partition] = max(0, round(own[0][1] - committed[partition][0][1]))
    for offsets, words in ((ends, "end offsets"), (committed, "committed offsets")):
        rates = {tp: rate for tp, own in offsets.items() if (rate := _rate(own)) is not None}
        if rates:
            return Load(rates, backlog, f"{words} of {counted(len(rates), 'partition')} in {path.name}")
    stopped = {tp: [stop for stop in stops if stop.partition == tp] for tp in lags}
    rates = {tp: rate for tp, own in lags.items() if (rate := _rate(own, stopped[tp])) is not None}
    words = f"the lag of {counted(len(rates), 'partition')} in {path.name} that stood still at times"
    return Load(rates, backlog, words)


def _sums(one: Sequence[tuple[int, float]], other: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the sums of two series at the times that both have."""
    values = dict(other)
    return [(at_ms, value + values[at_ms]) for at_ms, value in one if at_ms in values]


def _rate(amounts: Sequence[tuple[int, float]], during: Sequence[Stop] | None = None) -> float | None:
    """Return by how much an amount grows in a second, at any time or ``during`` some stops.

    None if it is not known: a step back, as of offsets that are reset, says nothing.
    """
    steps = [
        (b[0] - a[0], b[1] - a[1])
        for a, b in pairwise(amounts)
        if during is None or any(stop.from_ms <= a[0] and b[0] <= stop.until_ms for stop in during)
    ]
    known = [(step, growth) for step, growth in steps if step > 0 and growth >= 0]
    time_ms = sum(step for step, _ in known)
    return 1_000 * sum(growth for _, growth in known) / time_ms if time_ms else None


# --- formats


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Result(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct):
    data: _Result


def _rows_of_json(text: str, path: Path) -> Iterator[dict[str, str]]:
    """Yield the figures of an answer of Prometheus as rows of CSV would have them."""
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except msgspec.DecodeError as error:
        raise InputError("--lag", f"{path} ({error})", EXPECTED) from None
    for series in answer.data.result:
        labels = {name.lower(): value for name, value in series.metric.items()}
        amount = _amount(labels.get("__name__", ""))
        for at_s, value in series.values:
            yield labels | {"time": str(at_s), amount: value}


def _amount(name: str) -> Amount:
    """Return what a metric of Prometheus is, by its name."""
    if "lag" in name or not name:
        return Amount.LAG
    return Amount.COMMITTED if "group" in name or "commit" in name else Amount.END


def _rows_of_csv(text: str, path: Path) -> Iterator[dict[str, str]]:
    rows = csv.DictReader(io.StringIO(text))
    names = [name.strip().lower() for name in rows.fieldnames or ()]
    fields = [{name for amount in Amount for name in _NAMES[amount]}]
    fields += [set(_NAMES[field]) for field in ("time", "topic", "partition")]
    if any(of_field.isdisjoint(names) for of_field in fields):
        raise InputError("--lag", f"{path} with the columns {', '.join(names) or 'none'}", EXPECTED)
    for line in rows:
        yield {str(name).strip().lower(): str(value or "").strip() for name, value in line.items() if name}


def _samples(rows: Iterable[Mapping[str, str]], group: str, path: Path, zone: tzinfo) -> Iterator[Sample]:
    for row in rows:
        partition = _partition(row, path)
        if partition is not None and _value(row, "group") in ("", group):
            at_ms = _time_ms(_value(row, "time"), path, zone)
            for amount in Amount:
                if (value := _value(row, amount)) not in ("", "-"):
                    yield Sample(partition, amount, at_ms, _number(value, path))


def _value(row: Mapping[str, str], field: str) -> str:
    return next((row[name] for name in _NAMES[field] if name in row), "")


def _partition(row: Mapping[str, str], path: Path) -> TopicPartition | None:
    topic, number = _value(row, "topic"), _value(row, "partition")
    if not topic or not number:
        return None
    if not number.isdecimal():
        raise InputError("--lag", f"{path} with the partition {number!r}", "numbers of partitions")
    return TopicPartition(topic, int(number))


def _number(text: str, path: Path) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError("--lag", f"{path} with {text!r}", "numbers") from None


def _time_ms(text: str, path: Path, zone: tzinfo) -> int:
    """Return a time: seconds or milliseconds since 1970, or ISO 8601."""
    try:
        number = float(text)
        return round(number if number > 1e11 else number * 1_000)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            "--lag", f"{path} with the time {text!r}", "seconds since 1970 or ISO 8601"
        ) from None
    return round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1_000)


def of_topic(values: Mapping[TopicPartition, Any], topic: str, size: int, rest: Any) -> Iterable[Any]:
    """Yield the values of the partitions of a topic, ``rest`` where there is none."""
    return (values.get(TopicPartition(topic, number), rest) for number in range(size))
