"""The order in which Java's HashMap and HashSet hand out strings.

Kafka's Range assignor walks its topics in that order, so a member's list shows it. The order is that of
the buckets, and within a bucket that of insertion. Not emulated: chains of nine or more strings in a
table of 64 buckets or more, which Java turns into trees.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from coordinator_core.model import java_key

_FIRST_TABLE = 16
_LONGEST_CHAIN = 8
_SMALLEST_TREE_TABLE = 64


def string_hashes(names: Sequence[str]) -> NDArray[np.uint32]:
    """uint32[n]: Java's ``String.hashCode`` of each name, over its UTF-16 code units."""
    if not names:
        return np.zeros(0, dtype=np.uint32)
    units = [java_key(name) for name in names]
    lengths = np.array([len(each) // 2 for each in units])
    width = int(lengths.max())
    padded = b"".join(each.ljust(2 * width, b"\0") for each in units)
    letters = np.frombuffer(padded, dtype=">u2").reshape(len(names), width).astype(np.uint32)
    hashes = np.zeros(len(names), dtype=np.uint32)
    for column in range(width):
        grown = hashes * np.uint32(31) + letters[:, column]
        hashes = np.where(column < lengths, grown, hashes)
    return hashes


def hash_order(names: Iterable[str]) -> list[str]:
    """The names, each once, in the order a HashSet gives them after insertion in the order given."""
    inserted = list(dict.fromkeys(names))
    hashes = string_hashes(inserted)
    spread = hashes ^ (hashes >> np.uint32(16))
    buckets = spread & np.uint32(_table_size(spread) - 1)
    return [inserted[at] for at in np.argsort(buckets, kind="stable").tolist()]


def _table_size(spread: NDArray[np.uint32]) -> int:
    size = _FIRST_TABLE
    while len(spread) * 4 > size * 3:
        size *= 2
    if size >= _SMALLEST_TREE_TABLE or len(spread) <= _LONGEST_CHAIN:
        return size
    return _small_table_size(spread.tolist())


def _small_table_size(spread: Sequence[int]) -> int:
    """A chain of more than eight in a table too small for trees doubles the table early."""
    size, chains = _FIRST_TABLE, dict[int, int]()
    for count, each in enumerate(spread, start=1):
        bucket = each & (size - 1)
        too_long = chains.get(bucket, 0) >= _LONGEST_CHAIN and size < _SMALLEST_TREE_TABLE
        chains[bucket] = chains.get(bucket, 0) + 1
        for needed in (too_long, count * 4 > size * 3):
            if needed:
                size *= 2
                chains = _chains(spread[:count], size)
    return size


def _chains(spread: Sequence[int], size: int) -> dict[int, int]:
    chains: dict[int, int] = {}
    for each in spread:
        chains[each & (size - 1)] = chains.get(each & (size - 1), 0) + 1
    return chains
