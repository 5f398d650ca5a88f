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
_GAMMA_64, _FIRST_64, _SECOND_64 = np.uint64(_GAMMA), np.uint64(_FIRST), np.uint64(_SECOND)
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)

BLOCK = 128
"""The most numbers that are drawn before they are wanted."""

MANY = 16
"""The number of numbers from which arrays are faster than lists."""


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

    def between(self, first: int, end: int, step: int = 1) -> NDArray[np.float64]:
        """Return every ``step``-th number from ``first`` to before ``end``, each as `at` returns it."""
        mixed = np.arange(first, end, step, dtype=np.uint64)
        mixed *= _GAMMA_64
        mixed += np.uint64(self._key)
        mixed ^= mixed >> _30
        mixed *= _FIRST_64
        mixed ^= mixed >> _27
        mixed *= _SECOND_64
        mixed ^= mixed >> _31
        mixed >>= _11
        unit: NDArray[np.float64] = mixed.astype(np.float64)
        unit *= _UNIT
        return unit


class Spread:
    """Whole numbers of a range [low, high), or ``low`` if the range is empty, by their number.

    They follow from every ``step``-th number of a stream, from its number ``start`` on. Numbers that are
    wanted one after the other are drawn in blocks, each up to twice as long as the one before.
    """

    __slots__ = ("_block", "_dice", "_first", "_low", "_start", "_step", "_width")

    def __init__(self, low: int, high: int, dice: Dice, *, start: int = 0, step: int = 1) -> None:
        self._low, self._width = low, max(0, high - low)
        self._dice, self._start, self._step = dice, start, step
        self._block: list[int] = []
        self._first = 0

    def at(self, number: int) -> int:
        """Return a number."""
        place = number - self._first
        if not 0 <= place < len(self._block):
            follows = place == len(self._block)
            self._block = self._drawn(number, min(2 * len(self._block) or 1, BLOCK) if follows else 1)
            self._first, place = number, 0
        return self._block[place]

    def between(self, first: int, end: int) -> NDArray[np.int64]:
        """Return the numbers from ``first`` to before ``end``, each as `at` returns it."""
        start, step = self._start, self._step
        unit = self._dice.between(start + first * step, start + end * step, step)
        return self._low + (unit * self._width).astype(np.int64)

    def _drawn(self, first: int, count: int) -> list[int]:
        if count >= MANY:
            numbers: list[int] = self.between(first, first + count).tolist()
            return numbers
        at, start, step = self._dice.at, self._start, self._step
        return [
            self._low + int(at(start + number * step) * self._width) for number in range(first, first + count)
        ]
