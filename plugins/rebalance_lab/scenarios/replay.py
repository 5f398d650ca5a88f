"""The workload `replay`: a scenario for each of the sliding windows over measured traffic."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import format_duration, parse_duration
from coordinator_core.registry.hookspecs import WorkloadSpec
from rebalance_lab.scenarios.rates import read_counts

BATCH_SECONDS = 10
"""The time of a batch with a backlog. Batches of 500 records would outlast max.poll.interval.ms."""


class Traffic(NamedTuple):
    """Measured records: a row per interval with a number per partition."""

    topic: str
    counts: list[tuple[float, ...]]


def replay(
    seed: int,
    row: int,
    *,
    rates_csv: Traffic,
    interval: int = 300_000,
    window: int = 7_200_000,
    step: int = 1_800_000,
    members: int = 4,
) -> Mapping[str, Any]:
    """Return a scenario with real traffic and a group that changes.

    Row n is the window that begins n steps after the first interval of the file. After the last window the
    first one follows again, with other changes. The group begins with ``members`` members. Each handles twice
    its even share of the mean traffic of the file, in batches of ten seconds at most. A member joins in the
    first half of the window. In the second half a random member leaves or crashes; in half of the rows it
    starts again before the end. All durations are in milliseconds.
    """
    random = Random(f"replay:{seed}:{row}")
    length, stride = max(1, window // interval), max(1, step // interval)
    windows = (len(rates_csv.counts) - length) // stride + 1
    if windows < 1:
        found = f"{format_duration(window)}, of {format_duration(len(rates_csv.counts) * interval)} measured"
        raise InputError("profile 'replay': window", found, "at most as much as the file has")
    first = row % windows * stride
    counts = rates_csv.counts[first : first + length]
    partitions = len(counts[0])
    mean_rate = sum(map(sum, rates_csv.counts)) / len(rates_csv.counts) / (interval / 1_000)
    handles = max(round(2 * mean_rate / members, 6), 1e-6)
    running = [f"m-{number}" for number in range(members + 1)]
    duration = length * interval

    def at(share: float) -> int:
        return round(duration * share / 1_000) * 1_000

    def member(name: str) -> Mapping[str, Any]:
        return {"id": name, "topics": [rates_csv.topic], "process_rate": handles}

    stopped = random.choice(running)
    events: list[Mapping[str, Any]] = [
        {"at": at(random.uniform(0.1, 0.4)), "join": member(running[-1])},
        {"at": at(random.uniform(0.5, 0.7)), random.choice(("leave", "crash")): stopped},
    ]
    if random.random() < 0.5:
        events.append({"at": at(random.uniform(0.75, 0.9)), "restart": stopped})
    topic = {"partitions": partitions, "rates_rows": [list(c) for c in counts], "interval": interval}
    return {
        "name": f"replay-{seed}-{row}",
        "duration": duration,
        "seed": random.randrange(2**31),
        "topics": {rates_csv.topic: topic},
        "members": [member(name) for name in running[:-1]],
        "events": events,
        "config": {"max.poll.records": min(500, max(1, round(handles * BATCH_SECONDS)))},
    }


def read_traffic(text: str) -> Traffic:
    """Return the traffic of a CSV file: a label, then a column per partition; a row per interval.

    Raises:
        InputError: if the file is not such a CSV.
    """
    path, where = Path(text), "profile 'replay': rates_csv"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            columns = len(next(csv.reader(file), ()))
    except (OSError, ValueError, csv.Error) as error:
        found = f"a file that cannot be read ({getattr(error, 'strerror', None) or error})"
        raise InputError(f"{where}: {text}", found, "a CSV file") from None
    if columns < 2:
        expected = "a label and a column per partition"
        raise InputError(f"{where}: {text}, row 1", f"{columns} columns", expected)
    return Traffic(path.stem, read_counts(path, columns - 1, where))


def _duration(name: str) -> Callable[[str], int]:
    return lambda text: parse_duration(text, f"profile 'replay': {name}", at_least_ms=1_000)


def _members(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 2 <= number <= 1_000:
        raise ValueError("a whole number from 2 to 1,000")
    return number


REPLAY = WorkloadSpec(
    "replay",
    replay,
    "Sliding windows over a CSV of measured traffic.",
    options={
        "rates_csv": read_traffic,
        **{name: _duration(name) for name in ("interval", "window", "step")},
        "members": _members,
    },
    required=("rates_csv",),
)
