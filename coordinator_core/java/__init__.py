"""Java's order and hash of strings. Both work on UTF-16 code units."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_INVERSE_OF_31 = pow(31, -1, 2**32)
_LAST_UNIT = 0xFFFF


def java_order(names: Iterable[str]) -> list[str]:
    """Sort as Java's `String.compareTo` does: by UTF-16 code units, not by code points."""
    listed = list(names)
    if all(map(str.isascii, listed)):
        return sorted(listed)
    return sorted(listed, key=java_key)


def java_key(name: str) -> bytes:
    """Return the sort key of a name: its code units."""
    return name.encode("utf-16-be", "surrogatepass")


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode` as a signed number of 32 bits."""
    return int(java_hashes([text]).view(np.int32)[0])


def java_hashes(names: Sequence[str]) -> NDArray[np.uint32]:
    """uint32[n]: Java's `String.hashCode` of each name, without a sign."""
    if not names:
        return np.zeros(0, dtype=np.uint32)
    codes = np.array(names, dtype=np.str_)
    letters = codes.view(np.uint32).reshape(len(names), -1)
    lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
    if letters.size and int(letters.max()) > _LAST_UNIT:
        units = [java_key(name) for name in names]
        lengths = np.array([len(key) // 2 for key in units])
        padded = b"".join(key.ljust(2 * int(lengths.max()), b"\0") for key in units)
        letters = np.frombuffer(padded, dtype=">u2").reshape(len(names), -1).astype(np.uint32)
    width = letters.shape[1]
    hashes = letters @ _powers(31, width)[::-1]
    # the zeros after a shorter name have multiplied its hash; 31 is odd and has an inverse
    return hashes * _powers(_INVERSE_OF_31, width + 1)[width - lengths]


@lru_cache(maxsize=512)
def _powers(base: int, count: int) -> NDArray[np.uint32]:
    """uint32[count]: 1, base, base squared ..., modulo 2 ** 32. Not to be changed."""
    powers = np.full(count, base, dtype=np.uint32)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint32)
