"""Java's order and hash of strings. Both work on UTF-16 code units."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


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
    return int(java_hashes([text]).astype(np.int32)[0])


def java_hashes(names: Sequence[str]) -> NDArray[np.uint32]:
    """uint32[n]: Java's `String.hashCode` of each name, without a sign."""
    if not names:
        return np.zeros(0, dtype=np.uint32)
    units = [java_key(name) for name in names]
    lengths = np.array([len(key) // 2 for key in units])
    width = int(lengths.max())
    padded = b"".join(key.ljust(2 * width, b"\0") for key in units)
    letters = np.frombuffer(padded, dtype=">u2").reshape(len(names), width).astype(np.uint32)
    hashes = np.zeros(len(names), dtype=np.uint32)
    for column in range(width):
        longer = hashes * np.uint32(31) + letters[:, column]
        hashes = np.where(column < lengths, longer, hashes)
    return hashes
