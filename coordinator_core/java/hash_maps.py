"""The iteration order of Java's HashMap and HashSet over strings.

Kafka's Range assignor iterates over its topics in this order, which shows in the list of each member. The
order is that of the buckets, and within a bucket that of insertion. Not emulated: chains of nine or more
strings in a table of 64 buckets or more, which Java turns into trees.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from coordinator_core.java import java_hashes

_FIRST_TABLE = 16
_HALF = np.uint32(16)
_LONGEST_CHAIN = 8
_SMALLEST_TREE_TABLE = 64


def hash_order(names: Iterable[str]) -> list[str]:
    """Return the distinct names in the iteration order of a HashSet that they were inserted into in turn."""
    inserted = list(dict.fromkeys(names))
    return in_buckets(dict(zip(inserted, spread_hashes(inserted), strict=True)))


def spread_hashes(names: Sequence[str]) -> list[int]:
    """Return the hash of each name as HashMap spreads it: with its upper half mixed into the lower one."""
    hashes = java_hashes(names)
    spread: list[int] = (hashes ^ (hashes >> _HALF)).tolist()
    return spread


def in_buckets(spread: Mapping[str, int]) -> list[str]:
    """Return names, with their spread hashes, in the order of a HashSet that they were inserted into."""
    mask = _table_size(list(spread.values())) - 1
    return sorted(spread, key={name: hashed & mask for name, hashed in spread.items()}.__getitem__)


def _table_size(spread: Sequence[int]) -> int:
    size = _FIRST_TABLE
    while len(spread) * 4 > size * 3:
        size *= 2
    if size >= _SMALLEST_TREE_TABLE or len(spread) <= _LONGEST_CHAIN:
        return size
    if max(Counter(hashed & (_FIRST_TABLE - 1) for hashed in spread).values()) <= _LONGEST_CHAIN:
        return size  # the chains of larger tables are shorter
    return _small_table_size(spread)


def _small_table_size(spread: Sequence[int]) -> int:
    """Double the table early if a chain is longer than eight and the table is too small for trees."""
    size, chains = _FIRST_TABLE, dict[int, int]()
    for count, hashed in enumerate(spread, start=1):
        bucket = hashed & (size - 1)
        too_long = chains.get(bucket, 0) >= _LONGEST_CHAIN and size < _SMALLEST_TREE_TABLE
        chains[bucket] = chains.get(bucket, 0) + 1
        for needed in (too_long, count * 4 > size * 3):
            if needed:
                size *= 2
                chains = _chains(spread[:count], size)
    return size


def _chains(spread: Sequence[int], size: int) -> dict[int, int]:
    chains: dict[int, int] = {}
    for hashed in spread:
        chains[hashed & (size - 1)] = chains.get(hashed & (size - 1), 0) + 1
    return chains
