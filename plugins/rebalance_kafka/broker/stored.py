"""What the store has: record batches, transactions, and configurations of topics."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Configs: TypeAlias = Mapping[str, str]
"""Values of a topic's configurations by their names."""


class StoredBatch(NamedTuple):
    """A record batch in the store."""

    first: int
    last: int
    max_timestamp_ms: int
    data: bytes


NO_SEQUENCE = -1
"""The sequence of a batch without an idempotent producer, and of the marker of a transaction."""


class NewBatch(NamedTuple):
    """A record batch to write to a partition. ``sequence`` is `NO_SEQUENCE` in a marker."""

    topic: str
    partition: int
    first: int
    last: int
    max_timestamp_ms: int
    producer: int
    epoch: int
    sequence: int
    data: bytes


class Transaction(NamedTuple):
    """A transaction on a partition, from its first record to its marker. ``last`` is None while it is open.

    The store has open transactions and aborted ones.
    """

    topic: str
    partition: int
    first: int
    producer: int
    last: int | None = None
