"""Random numbers by their number: the n-th number of a stream is a function of the stream's key and of n.

Thus numbers that nobody asks for can be left out, and those that follow stay the same. The generator is
SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), whose state after n
numbers is ``key + n * GAMMA``.
"""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_MASK = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_UNIT = 2.0**-53


class Dice:
    """A stream of random numbers in [0, 1)."""

    __slots__ = ("_key",)

    def __init__(self, concern: str) -> None:
        """``concern`` names the stream. Streams of different names are independent."""
        self._key = int.from_bytes(blake2b(concern.encode(), digest_size=8).digest())

    def at(self, number: int) -> float:
        """Return a number of the stream."""
        mixed = (self._key + number * _GAMMA) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * _FIRST) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * _SECOND) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) * _UNIT

    def between(self, first: int, end: int) -> NDArray[np.float64]:
        """Return the numbers from ``first`` to before ``end``, each as `at` returns it."""
        mixed = np.arange(first, end, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(self._key)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
        unit: NDArray[np.float64] = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64)
        unit *= _UNIT
        return unit


class Spread:
    """Whole numbers of a range [low, high), or ``low`` if the range is empty, by their number."""

    __slots__ = ("_dice", "_low", "_width")

    def __init__(self, low: int, high: int, concern: str) -> None:
        self._low, self._width = low, max(0, high - low)
        self._dice = Dice(concern) if self._width else None

    def at(self, number: int) -> int:
        """Return a number of the stream."""
        return self._low if self._dice is None else self._low + int(self._dice.at(number) * self._width)

    def between(self, first: int, end: int) -> NDArray[np.int64]:
        """Return the numbers from ``first`` to before ``end``."""
        if self._dice is None:
            return np.full(end - first, self._low, dtype=np.int64)
        return self._low + (self._dice.between(first, end) * self._width).astype(np.int64)
