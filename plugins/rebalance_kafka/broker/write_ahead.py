"""The write-ahead log of SQLite: the writes in it that SQLite would drop without a word.

SQLite reads the log up to the last write before a checksum that does not fit, and drops the rest. That is
right for an incomplete last write. If an earlier one is damaged, all whole writes after it are dropped, too.
The format is described in section 4 of SQLite's document "Database File Format".
"""

from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator_core.errors import InputError

_MAGIC = 0x377F0682
"""The first number of a log whose checksums are of little-endian numbers. One more: of big-endian numbers."""
_HEADER_BYTES, _FRAME_BYTES = 32, 24
"""The header of the log: magic, version, page size, checkpoint, two salts, checksum of the first 24 bytes.
The header of a frame, before its page: page number, pages after a commit or 0, two salts, checksum of the
frames before, the first 8 bytes and the page."""

Words: TypeAlias = NDArray[np.uint32]


def incomplete_write(path: Path) -> str | None:
    """Return a description of the last write of a log if it is incomplete, None if every write is whole.

    Raises:
        InputError: if there is damage before a whole write.
    """
    data = path.read_bytes() if path.is_file() else b""
    if len(data) <= _HEADER_BYTES:
        return None
    header = np.frombuffer(data, ">u4", 8)
    order = ">u4" if header[0] & 1 else "<u4"
    state = _sums(np.frombuffer(data, order, 6)[np.newaxis])[0]
    if header[0] not in (_MAGIC, _MAGIC + 1) or (state != header[6:]).any():
        expected = f"its checksum, before {len(data) - _HEADER_BYTES:,} bytes of writes"
        raise InputError(f"{path}, byte 0", "a damaged header", f"{expected}; restore the folder from a copy")
    size = _FRAME_BYTES + int(header[2])
    full, part = divmod(len(data) - _HEADER_BYTES, size)
    count = full + (part > 0)
    padded = data[_HEADER_BYTES:].ljust(count * size, b"\0")
    heads = np.frombuffer(padded, ">u4").reshape(count, -1)[:, :6]
    salts = heads[:, 2:4] == header[4:6]
    frames = np.frombuffer(padded, order).reshape(count, -1)[: _leading(salts[:full].all(axis=1))]
    sums = _sums(np.delete(frames, slice(2, 6), axis=1), state)
    whole = _leading((sums == heads[: len(sums), 4:6]).all(axis=1))
    commits = heads[:, 1] != 0
    kept = int(np.flatnonzero(commits[:whole])[-1]) + 1 if commits[:whole].any() else 0
    rest = kept + np.flatnonzero(salts[kept:].any(axis=1))  # a frame of an earlier log has two other salts
    if not rest.size:
        return None
    begin = _HEADER_BYTES + kept * size
    later = int(commits[rest[:-1]].sum())
    if later:
        at = f"{path}, byte {_HEADER_BYTES + whole * size}"
        advice = f"restore the folder from a copy, or cut the file to {begin} bytes, which loses these writes"
        raise InputError(at, f"damage before {later} later writes", f"the checksum of the frame; {advice}")
    return f"{path}: the last write, from byte {begin} to {len(data)}, is incomplete and is dropped"


def _leading(values: NDArray[np.bool_]) -> int:
    """Return how many of the first values are true."""
    return len(values) if values.all() else int(values.argmin())


def _sums(rows: Words, state: Words | None = None) -> Words:
    """Return the checksum after each row of words, in order, which continues from that of the row before.

    ``rows``: (rows, words). ``state``: (2,), zeros by default. The result is (rows, 2).
    """
    weights, powers = _weights(rows.shape[1] // 2)
    own = rows.astype(np.uint32) @ weights
    sums = np.empty_like(own)
    state = np.zeros(2, np.uint32) if state is None else state
    for number, row in enumerate(own):
        state = sums[number] = powers @ state + row
    return sums


@cache
def _weights(pairs: int) -> tuple[Words, Words]:
    """Return the weights of words in a checksum, (2 * pairs, 2), and of the checksum before them, (2, 2).

    The checksum is linear in the words, modulo 2**32: a pair x, y makes s, t into s + t + x and
    s + 2 t + x + y.
    """
    weights = np.empty((2 * pairs, 2), np.uint32)
    step = np.array([[1, 1], [1, 2]], np.uint32)
    pair, powers = np.array([[1, 0], [1, 1]], np.uint32), np.eye(2, dtype=np.uint32)
    for number in range(pairs - 1, -1, -1):
        weights[2 * number : 2 * number + 2] = pair.T
        pair, powers = step @ pair, step @ powers
    return weights, powers
