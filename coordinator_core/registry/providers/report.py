"""The report of a member on the load of its partitions: its format, and estimates that can be averaged.

A report is big-endian: float64 capacity in records/s (NaN: unknown), int32 number of topics, and for each
topic int16 length and UTF-8 name, int32 number of partitions, and for each partition int32 number, float32
seconds measured, float32 records/s, float32 lag in records.
"""

import struct
from collections.abc import Mapping
from math import isfinite, isnan, nan
from typing import NamedTuple

import numpy as np

from coordinator_core.assigning.problem import is_capacity
from coordinator_core.model import TopicPartition

HALF_LIFE_SECONDS = 3_600.0
"""Measurements lose half their weight in an hour."""

_START = struct.Struct(">di")
_LENGTH = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_ENTRY = np.dtype([("partition", ">i4"), ("seconds", ">f4"), ("rate", ">f4"), ("lag", ">f4")])


class Estimate(NamedTuple):
    """A mean rate (records/s), the seconds for which it was measured, and the last lag (records)."""

    seconds: float
    rate: float
    lag: float

    def aged(self, seconds: float) -> "Estimate":
        """Return the estimate some time later, with fewer seconds."""
        return self._replace(seconds=self.seconds * 0.5 ** (seconds / HALF_LIFE_SECONDS))

    def with_measured(self, seconds: float, rate: float, lag: float) -> "Estimate":
        """Return the mean with a new measurement that began at the end of this one."""
        if seconds <= 0:
            return self._replace(lag=lag)
        old = self.aged(seconds)
        total = old.seconds + seconds
        return Estimate(total, (old.rate * old.seconds + rate * seconds) / total, lag)


class Report(NamedTuple):
    """The capacity of a member, if it is known, and its estimates."""

    capacity: float | None
    estimates: Mapping[TopicPartition, Estimate]


def encode_report(report: Report) -> bytes:
    """Return the bytes of a report. Equal reports give equal bytes."""
    by_topic: dict[str, list[tuple[int, float, float, float]]] = {}
    for tp in sorted(report.estimates):
        by_topic.setdefault(tp.topic, []).append((tp.partition, *report.estimates[tp]))
    parts = [_START.pack(nan if report.capacity is None else report.capacity, len(by_topic))]
    for topic, entries in by_topic.items():
        name = topic.encode()
        parts += [_LENGTH.pack(len(name)), name, _COUNT.pack(len(entries))]
        parts.append(np.array(entries, dtype=_ENTRY).tobytes())
    return b"".join(parts)


def decode_report(data: bytes) -> Report | None:
    """Return the report, or None if the bytes are not a report or contain an invalid amount."""
    estimates: dict[TopicPartition, Estimate] = {}
    try:
        (capacity, topics), at = _START.unpack_from(data), _START.size
        for _ in range(topics):
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            topic = data[at : at + max(length, 0)].decode()
            (count,) = _COUNT.unpack_from(data, at + max(length, 0))
            if length < 0 or count < 0:
                return None
            at += length + _COUNT.size
            entries = np.frombuffer(data, dtype=_ENTRY, count=count, offset=at)
            at += _ENTRY.itemsize * count
            for partition, *amounts in entries.tolist():
                if partition < 0 or not all(isfinite(a) and a >= 0 for a in amounts):
                    return None
                estimates[TopicPartition(topic, partition)] = Estimate(*amounts)
    except (struct.error, ValueError):
        return None
    if at != len(data) or not (isnan(capacity) or is_capacity(capacity)):
        return None
    return Report(None if isnan(capacity) else capacity, estimates)
