"""The iteration order of Java's HashMap and HashSet.

Kafka's assignors iterate over topics, members and partitions in this order, which shows in the list of a
member or decides who owns a partition. The order is that of the buckets, and within a bucket that of
insertion. Not emulated: chains of nine or more keys in a table of 64 buckets or more, which Java turns into
trees.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from coordinator_core.java import java_hashes

FIRST_TABLE = 16
"""The smallest table of a set, and that of a map without an initial capacity."""

_HALF = np.uint32(16)
_LONGEST_CHAIN = 8
_SMALLEST_TREE_TABLE = 64

K = TypeVar("K")


def hash_order(names: Iterable[str]) -> list[str]:
    """Return the distinct names in the iteration order of a HashSet that they were inserted into in turn."""
    inserted = list(dict.fromkeys(names))
    return list(map(inserted.__getitem__, order_of(inserted)))


def order_of(names: Sequence[str]) -> NDArray[np.intp]:
    """intp[n]: the positions of distinct names in the order of `hash_order`."""
    spread = _spread(names)
    size = _table_size(spread.tolist(), FIRST_TABLE)
    return np.argsort(spread & np.uint32(size - 1), kind="stable")


def spread_hashes(names: Sequence[str]) -> list[int]:
    """Return the hash of each name as HashMap spreads it: with its upper half mixed into the lower one."""
    spread: list[int] = _spread(names).tolist()
    return spread


def _spread(names: Sequence[str]) -> NDArray[np.uint32]:
    hashes = java_hashes(names)
    spread: NDArray[np.uint32] = hashes ^ (hashes >> _HALF)
    return spread


def spread_uuid(number: UUID) -> int:
    """Return the hash of Kafka's Uuid as HashMap spreads it."""
    mixed = (number.int >> 64) ^ (number.int & 0xFFFF_FFFF_FFFF_FFFF)
    return spread_int((mixed >> 32) ^ (mixed & 0xFFFF_FFFF))


def spread_int(number: int) -> int:
    """Return the hash of an Integer, from 0 to 2 ** 32 - 1, as HashMap spreads it."""
    return number ^ (number >> 16)


def in_buckets(spread: Mapping[K, int], *, copied: int = 0) -> list[K]:
    """Return keys, with their spread hashes, in the order of a HashSet that they were inserted into.

    ``copied``: the set was made of a collection of this size, for which its first table has room.
    """
    first = copied_table(copied) if copied else FIRST_TABLE
    mask = _table_size([*spread.values()], first) - 1
    return sorted(spread, key={key: hashed & mask for key, hashed in spread.items()}.__getitem__)


def copied_table(count: int) -> int:
    """Return the size of the table of a HashSet that is made of a collection of this size.

    It is that of Java 17. From Java 19 on, tables for 12, 24, 48 ... keys are half as large.
    """
    return max(FIRST_TABLE, table_for(count * 4 // 3 + 1))


def table_for(capacity: int) -> int:
    """Return the size of the table of a HashMap that is made with an initial capacity."""
    return 1 << max(capacity - 1, 0).bit_length()


def _table_size(spread: Sequence[int], first: int) -> int:
    size = first
    while len(spread) * 4 > size * 3:
        size *= 2
    if size >= _SMALLEST_TREE_TABLE or len(spread) <= _LONGEST_CHAIN:
        return size
    if max(Counter(hashed & (first - 1) for hashed in spread).values()) <= _LONGEST_CHAIN:
        return size  # the chains of larger tables are shorter
    table: HashTable[int] = HashTable(first)
    for key, hashed in enumerate(spread):
        table.put(key, hashed)
    return table.size


class HashTable(Generic[K]):
    """The keys of a HashMap in the order of its iteration, while it changes.

    ``size`` is that of its table.
    """

    def __init__(self, size: int = FIRST_TABLE) -> None:
        self.size = size
        self._spread: dict[K, int] = {}
        self._chains: dict[int, list[K]] = {}

    def __iter__(self) -> Iterator[K]:
        for bucket in sorted(self._chains):
            yield from self._chains[bucket]

    def __len__(self) -> int:
        return len(self._spread)

    def __contains__(self, key: object) -> bool:
        return key in self._spread

    def put(self, key: K, spread: int) -> None:
        """Insert a key at the end of its chain, as `put` does. The table grows afterwards."""
        if key in self._spread:
            return
        chain = self._insert(key, spread, first=False)
        if len(chain) > _LONGEST_CHAIN and self.size < _SMALLEST_TREE_TABLE:
            self._grow()
        if self._is_full:
            self._grow()

    def compute(self, key: K, spread: int) -> None:
        """Insert a key at the start of its chain, as `computeIfAbsent` does. The table grows before."""
        if self._is_full:
            self._grow()
        if key in self._spread:
            return
        chain = self._insert(key, spread, first=True)
        if len(chain) >= _LONGEST_CHAIN and self.size < _SMALLEST_TREE_TABLE:
            self._grow()

    def remove(self, key: K) -> None:
        """Remove a key that the map has. The table stays as large as it is."""
        bucket = self._spread.pop(key) & (self.size - 1)
        self._chains[bucket].remove(key)
        if not self._chains[bucket]:
            del self._chains[bucket]

    @property
    def _is_full(self) -> bool:
        return len(self._spread) > self.size * 3 // 4

    def _insert(self, key: K, spread: int, *, first: bool) -> list[K]:
        self._spread[key] = spread
        chain = self._chains.setdefault(spread & (self.size - 1), [])
        chain.insert(0 if first else len(chain), key)
        return chain

    def _grow(self) -> None:
        listed = list(self)
        self.size *= 2
        self._chains = {}
        for key in listed:
            self._chains.setdefault(self._spread[key] & (self.size - 1), []).append(key)
