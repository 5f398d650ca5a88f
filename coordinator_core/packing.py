"""Many lists of topics or partitions as bytes, read and written together.

A list of partitions is an array of entries, each a topic with an array of partition numbers, as in the
messages of the consumer protocol and in the user data of Apache Kafka's sticky assignor. A list of topics is
an array of names. Numbers are big-endian: int16 for the length of a name, int32 for all others. Lists are
read in lockstep, entry by entry, so that a numpy call reads a field of all lists.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.java import java_order
from coordinator_core.model import NO_PARTITIONS, NOTHING, Int32Array, Partitions, TabledTopics, TopicIndex

_Int64Array = NDArray[np.int64]
_Uint64Array = NDArray[np.uint64]

FEWEST_LISTS = 16
"""Fewer lists are not read together, since reading one after the other takes less time."""

_LENGTH = struct.Struct(">h")
_COUNT_SIZE, _LENGTH_SIZE = 4, 2
_PADDING = bytes(2**15 + 16)
"""Follows the lists in the buffer: a length of 32,767 at the end of the last one still leads into it."""

_LARGEST_OFFSET = 2**31 - 1 - len(_PADDING)

_LARGEST_SPAN = 2**20
"""Numbers of partitions may reach this value in sum over the topics, or eight times the count of numbers."""

_MASKS: _Uint64Array = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)
_SAMPLE_SIZE = 1 << 11
"""The names in which the different ones are found first, by sorting."""

_SAMPLE_STEP = 7_919
"""A prime number: names that recur at a regular distance are in the sample, too."""

_SLOTS_PER_NAME = 16
"""The slots of a hash table for each name. Two names in one slot are rare."""

_BLOCK_SIZE = 1 << 13
"""The elements of a block: arrays of 64 KB, which memory allocators reuse without returning them."""

_CELLS_PER_ENTRY = 64
"""The size of a table of lists and topics, relative to the count of entries, up to which it is made."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class _Buffer:
    """Bytes, with a number at every offset as a view: ``lengths[at]`` is the int16 at the offset `at`."""

    def __init__(self, data: bytearray | bytes) -> None:
        self.data = data
        self.lengths = self._view(">i2")
        self.counts = self._view(">i4")
        self.words = self._view("<u8")

    def pieces(self, size: int) -> NDArray[np.void]:
        """Return the piece of this size at every offset."""
        return self._view(f"V{size}")

    def _view(self, dtype: str) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        shape = max(0, len(self.data) - size + 1)
        return np.ndarray((shape,), dtype=dtype, buffer=self.data, strides=(1,))


class _Lists(NamedTuple):
    """Lists that were read in lockstep. K lists of all, n entries, those of a list one after the other.

    ``which``   int64[K]: the positions of the lists;
    ``end``     int64[K]: the offset after each list;
    ``entries`` int64[K]: the count of its entries;
    ``name``    int32[n] and ``length`` int32[n]: offset and length of the name of each entry;
    ``number``  int32[n]: the count of its numbers, which begin at ``name + length + 4``.
    """

    which: _Int64Array
    end: _Int64Array
    entries: _Int64Array
    name: Int32Array
    length: Int32Array
    number: Int32Array

    def only(self, chosen: NDArray[np.bool_]) -> "_Lists | None":
        """Return the chosen lists (bool[K]); None without any."""
        if not chosen.any():
            return None
        of_entry = np.repeat(chosen, self.entries)
        which, end, entries = (values[chosen] for values in (self.which, self.end, self.entries))
        name, length, number = (values[of_entry] for values in (self.name, self.length, self.number))
        return _Lists(which, end, entries, name, length, number)


class Rows(NamedTuple):
    """The bytes of n members in one buffer; those of each are between ``begin`` and ``end`` (int64[n])."""

    buffer: _Buffer
    begin: _Int64Array
    end: _Int64Array

    def hold(self, at: _Int64Array, size: int | _Int64Array) -> NDArray[np.bool_]:
        """bool[n]: whether each row has so many bytes at its offset in `at` (int64[n])."""
        return np.asarray(at + size <= self.end)

    def numbers(self, at: _Int64Array) -> _Int64Array:
        """int64[n]: the int32 at an offset in each row; undefined if the row does not hold it."""
        return self.buffer.counts[np.minimum(at, self.end)].astype(np.int64)

    def lengths(self, at: _Int64Array) -> _Int64Array:
        """int64[n]: the int16 at an offset in each row; undefined if the row does not hold it."""
        return self.buffer.lengths[np.minimum(at, self.end)].astype(np.int64)

    def piece(self, begin: int, end: int) -> bytes:
        """Return the bytes between two offsets."""
        return bytes(self.buffer.data[begin:end])


def rows_of(data: Sequence[bytes]) -> Rows:
    """Return the bytes of members in one buffer."""
    sizes = np.fromiter(map(len, data), dtype=np.int64, count=len(data))
    end = np.cumsum(sizes)
    return Rows(_Buffer(b"".join([*data, _PADDING])), end - sizes, end)


def read_partitions(rows: Rows, at: _Int64Array) -> tuple[list[Partitions | None], _Int64Array]:
    """Read the list of partitions at an offset in each row (int64[n]), and the offset after it (int64[n]).

    An element is None if its list must be read alone: if it is longer than almost all others, is cut short,
    or has a topic without partitions. All lists with topics must be read alone if one has a topic twice, a
    name that is not UTF-8, or a number that is negative or far above the others. The partitions share an
    index made for them.
    """
    counts = np.where(rows.hold(at, _COUNT_SIZE), rows.numbers(at), -1)
    found: list[Partitions | None] = [NO_PARTITIONS if count == 0 else None for count in counts.tolist()]
    after = at + _COUNT_SIZE
    lists = _walk(rows.buffer, at, rows.end, counts, with_numbers=True)
    made = None if lists is None else _partitions(rows.buffer, lists)
    if lists is None or made is None:
        return found, after
    after[lists.which] = lists.end
    for row, partitions in zip(lists.which.tolist(), made, strict=True):
        found[row] = partitions
    return found, after


class ReadLists(NamedTuple):
    """The partitions in the lists of members, as dense numbers of an index. n partitions, K lists of all.

    ``partition`` int32[n]; ``row`` int32[n]: the row of the list; ``read`` bool[K]: whether it was read, and
    need not be read alone; ``after`` int64[K]: the offset after each list.
    """

    partition: Int32Array
    row: Int32Array
    read: NDArray[np.bool_]
    after: _Int64Array


def read_claims(rows: Rows, at: _Int64Array, index: TopicIndex) -> ReadLists:
    """Read the list of partitions at an offset in each row (int64[n]), without those that the index lacks.

    Lists must be read alone as by `read_partitions`, except that numbers may have any value and topics may
    occur twice.
    """
    counts = np.where(rows.hold(at, _COUNT_SIZE), rows.numbers(at), -1)
    read, after = counts == 0, at + _COUNT_SIZE
    lists = _walk(rows.buffer, at, rows.end, counts, with_numbers=True)
    named = None if lists is None else _names(rows.buffer, lists.name, lists.length)
    if lists is None or named is None:
        return ReadLists(NOTHING, NOTHING, read, after)
    read[lists.which], after[lists.which] = True, lists.end
    names, topic = named
    position = np.fromiter(map(index.topic_positions.get, names, repeat(-1)), np.int32, len(names))
    sizes = np.append(np.diff(index.offsets), 0)  # 0 for position -1, of topics that it lacks
    topic, row = position[topic], np.repeat(lists.which.astype(np.int32), lists.entries)
    pieces = []
    for block in _blocks(lists.number):
        count, numbers = lists.number[block], _numbers(rows.buffer, lists, block)
        topics, holders = np.repeat(topic[block], count), np.repeat(row[block], count)
        known = (numbers >= 0) & (numbers < sizes[topics])
        numbers += index.offsets[topics]
        pieces.append((numbers[known], holders[known]))
    partition, holder = map(np.concatenate, zip(*pieces, strict=True))
    return ReadLists(partition, holder, read, after)


def read_topics(rows: Rows, at: _Int64Array) -> tuple[list[tuple[str, ...] | None], _Int64Array]:
    """Read the list of topics at an offset in each row, as `read_partitions` does."""
    counts = np.where(rows.hold(at, _COUNT_SIZE), rows.numbers(at), -1)
    found: list[tuple[str, ...] | None] = [None] * len(at)
    lists = _walk(rows.buffer, at, rows.end, counts, with_numbers=False)
    named = None if lists is None else _names(rows.buffer, lists.name, lists.length)
    if lists is None or named is None:
        return found, at
    names = tuple(java_order(named[0]))
    place = {name: at for at, name in enumerate(names)}
    number = np.fromiter(map(place.__getitem__, named[0]), np.int64, len(names))[named[1]]
    listed = np.array(names, dtype=object)[number].tolist()
    number += np.repeat(np.arange(len(lists.which)) * len(names), lists.entries)
    table = np.zeros((len(lists.which), len(names)), dtype=np.bool_)
    table.ravel()[number] = True
    starts = starts_of(lists.entries).tolist()
    for at_row, row, first, end in zip(lists.which.tolist(), table, starts, starts[1:], strict=False):
        found[at_row] = TabledTopics.of(names, row, listed[first:end])
    after = at.copy()
    after[lists.which] = lists.end
    return found, after


def _walk(
    buffer: _Buffer, begin: _Int64Array, end: _Int64Array, counts: _Int64Array, *, with_numbers: bool
) -> _Lists | None:
    """Read the entries of lists in lockstep; None if too few lists have entries.

    ``begin``, ``end`` and ``counts`` int64[n]: where the bytes of each list begin and end, and its count.
    """
    fixed_size = _LENGTH_SIZE + _COUNT_SIZE * with_numbers
    least_size = fixed_size + _COUNT_SIZE * with_numbers
    fits = (counts > 0) & (counts <= (end - begin) // least_size) & (end <= _LARGEST_OFFSET)
    which = np.flatnonzero(fits)
    which = which[np.argsort(-counts[which], kind="stable")]  # the longest first: the active ones lead
    if len(which) < FEWEST_LISTS:
        return None
    which = which[counts[which] <= counts[which[FEWEST_LISTS - 1]]]
    count, limit = counts[which], end[which]
    starts = starts_of(count)
    name = np.empty(starts[-1], dtype=np.int32)
    lists = _Lists(which, begin[which] + _COUNT_SIZE, count, name, np.empty_like(name), np.empty_like(name))
    at, place = lists.end, starts[:-1].copy()
    behind_names = buffer.counts[_LENGTH_SIZE:]
    for k in np.searchsorted(-count, -np.arange(int(count[0])), side="left").tolist():
        at, last, place = at[:k], limit[:k], place[:k]
        lists.name[place] = at
        following = at + buffer.lengths[at]
        if with_numbers:
            number = behind_names[following].astype(np.int64)
            lists.number[place] = number
            number *= 4
            following += number
        following += fixed_size
        lists.end[:k] = following
        # an entry that is cut short leads anywhere; this offset stays in the buffer, and the list is dropped
        np.maximum(following, 0, out=following)
        at = np.minimum(following, last, out=following)
        place += 1
    lists.length[:] = buffer.lengths[name]
    sound = lists.length >= 0
    end_of_entry = name.astype(np.int64) + lists.length + fixed_size
    if with_numbers:
        sound &= lists.number > 0
        end_of_entry += 4 * lists.number.astype(np.int64)
    sound &= end_of_entry <= np.repeat(limit, count)
    valid = np.logical_and.reduceat(sound, starts[:-1])
    name += _LENGTH_SIZE
    return lists if valid.all() else lists.only(valid)


def starts_of(counts: NDArray[np.integer | np.bool_]) -> _Int64Array:
    """int64[n + 1]: the start of each of consecutive segments with these lengths."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _blocks(sizes: NDArray[np.integer]) -> Iterator[slice]:
    """Divide elements of these sizes into blocks, whose arrays fit into the caches of a processor."""
    end = np.cumsum(sizes)
    begin = 0
    while begin < len(end):
        limit = _BLOCK_SIZE + (int(end[begin - 1]) if begin else 0)
        after = max(begin + 1, int(np.searchsorted(end, limit, side="right")))
        yield slice(begin, after)
        begin = after


def _partitions(buffer: _Buffer, lists: _Lists) -> list[Partitions] | None:
    """Return the partitions of each list, in one index; None if they need an unusual form."""
    named = _names(buffer, lists.name, lists.length)
    if named is None:
        return None
    names, topic = named
    numbers_start = starts_of(lists.number)
    numbers = np.empty(numbers_start[-1], dtype=np.int32)
    highest = np.empty(len(topic), dtype=np.int32)
    for block in _blocks(lists.number):
        begin = numbers_start[block]
        first, read = begin[0], _numbers(buffer, lists, block)
        if read.min() < 0:
            return None
        numbers[first : first + len(read)] = read
        highest[block] = np.maximum.reduceat(read, begin - first)
    index = _index(names, topic, highest, limit=max(_LARGEST_SPAN, 8 * len(numbers)))
    if index is None:
        return None
    position = np.fromiter(map(index.topic_positions.__getitem__, names), dtype=np.int32, count=len(names))
    topic = position[topic]
    entries_start = starts_of(lists.entries)
    if _topic_twice(topic, entries_start):
        return None
    numbers += np.repeat(index.offsets[topic], lists.number)
    bounds = numbers_start[entries_start].tolist()
    pieces = map(numbers.__getitem__, map(slice, bounds, bounds[1:]))
    return list(map(partial(Partitions.dense, index), pieces))


def _numbers(buffer: _Buffer, lists: _Lists, block: slice) -> Int32Array:
    """int32[n]: the numbers of a block of entries, one entry after the other."""
    count = lists.number[block]
    before = np.cumsum(count) - count
    at = np.repeat(lists.name[block] + lists.length[block] + _COUNT_SIZE - 4 * before, count)
    at += np.arange(0, 4 * len(at), 4)
    numbers: Int32Array = buffer.counts[at].astype(np.int32)
    return numbers


def _index(names: Sequence[str], topic: Int32Array, highest: Int32Array, limit: int) -> TopicIndex | None:
    """Return an index of topics up to the highest number of each; None if it has too many partitions."""
    small = len(names) <= np.iinfo(np.int16).max
    by_topic = np.argsort(topic.astype(np.int16) if small else topic, kind="stable")
    counts = np.maximum.reduceat(highest[by_topic], starts_of(np.bincount(topic))[:-1]).astype(np.int64) + 1
    return None if int(counts.sum()) > limit else TopicIndex(dict(zip(names, counts.tolist(), strict=True)))


def _topic_twice(topic: Int32Array, starts: _Int64Array) -> bool:
    """Whether a list, of entries that begin at `starts`, has a topic twice."""
    rising = np.ones(len(topic) + 1, dtype=np.bool_)
    rising[1:-1] = topic[1:] > topic[:-1]
    rising[starts] = True
    if rising.all():
        return False
    topics, lists = int(topic.max()) + 1, len(starts) - 1
    keys = np.repeat(np.arange(lists) * topics, np.diff(starts))
    keys += topic
    if lists * topics > _CELLS_PER_ENTRY * len(keys):
        keys.sort()
        return bool((keys[1:] == keys[:-1]).any())
    found = np.zeros(lists * topics, dtype=np.bool_)
    found[keys] = True
    return int(np.count_nonzero(found)) < len(keys)


def _names(buffer: _Buffer, at: Int32Array, length: Int32Array) -> tuple[list[str], Int32Array] | None:
    """Return the distinct names, and the number of the name at each offset: int32[n].

    None if a name is not UTF-8, or if two names have one hash. Names are compared with those of a sample, by
    a hash table; those that it does not have follow at the end.
    """
    number_of: dict[bytes, int] = {}
    starts = range(-_LENGTH_SIZE, max(1, int(length.max())), 8)
    sample = np.arange(len(at))
    if len(at) > _SAMPLE_SIZE:
        sample = sample[:_SAMPLE_SIZE] * _SAMPLE_STEP % len(at)
    found = _distinct(buffer, at[sample], length[sample], starts, number_of)
    if found is None:
        return None
    number, first = found
    if len(sample) < len(at):
        sample = sample[first]
        known = _words(buffer, at[sample], length[sample], starts)
        bits = np.uint64(64 - (_SLOTS_PER_NAME * len(first)).bit_length())
        table = np.zeros(1 << 64 - int(bits), dtype=np.int32)
        table[_hash(known) >> bits] = np.arange(len(first))
        number = np.empty(len(at), dtype=np.int32)
        unknown = np.empty(len(at), dtype=np.bool_)
        for block in _blocks(np.ones(len(at), dtype=np.int64)):
            words = _words(buffer, at[block], length[block], starts)
            number[block] = candidate = table[_hash(words) >> bits]
            unknown[block] = ~_equal(words, [word[candidate] for word in known])
        left = np.flatnonzero(unknown)
        found = _distinct(buffer, at[left], length[left], starts, number_of)
        if found is None:
            return None
        number[left] = found[0]
    try:
        return [name.decode() for name in number_of], number
    except UnicodeDecodeError:
        return None


def _distinct(
    buffer: _Buffer, at: Int32Array, length: Int32Array, starts: range, number_of: dict[bytes, int]
) -> tuple[Int32Array, _Int64Array] | None:
    """Return the number of each name, int32[n], and the position of the first of each different name.

    None if two names have one hash. ``number_of`` has the numbers of known names, and receives the others.
    """
    words = _words(buffer, at, length, starts)
    _, first, which = np.unique(_hash(words), return_index=True, return_inverse=True)
    if not _equal(words, [word[first][which] for word in words]).all():
        return None
    pieces = map(slice, at[first].tolist(), (at[first] + length[first]).tolist())
    numbers = [number_of.setdefault(bytes(buffer.data[piece]), len(number_of)) for piece in pieces]
    return np.array(numbers, dtype=np.int32)[which], first


def _words(buffer: _Buffer, at: Int32Array, length: Int32Array, starts: range) -> list[_Uint64Array]:
    """Return words that have all bytes of each name and of the length before it: uint64[n] each.

    ``starts``: where words begin, relative to the name. A word that would end behind the name ends with it.
    """
    last = np.maximum(length - 8, -_LENGTH_SIZE)
    words = [buffer.words[at + np.minimum(start, last)] for start in starts]
    if len(length) and length.min() < 8 - _LENGTH_SIZE:
        mask = _MASKS[np.minimum(length + _LENGTH_SIZE, 8)]
        words = [word & mask for word in words]
    return words


def _hash(words: Sequence[_Uint64Array]) -> _Uint64Array:
    """Return a number of 64 bits for each row of words: uint64[n]."""
    hashed = words[0] * _MULTIPLIER
    for word in words[1:]:
        hashed ^= hashed >> np.uint64(32)
        hashed ^= word
        hashed *= _MULTIPLIER
    return hashed


def _equal(words: Sequence[_Uint64Array], others: Sequence[_Uint64Array]) -> NDArray[np.bool_]:
    """bool[n]: whether all words of a row are those of the other row."""
    equal: NDArray[np.bool_] = words[0] == others[0]
    for word, other in zip(words[1:], others[1:], strict=True):
        equal &= word == other
    return equal


class _Records(NamedTuple):
    """The entries of T topics with one number each, as bytes.

    ``length`` int64[T]: the length of the topic's name with the field before it; ``rank`` int64[T]: the place
    of a topic in the table of its length in `tables`, whose records have the fields of `_record`.
    """

    length: _Int64Array
    rank: _Int64Array
    tables: dict[int, NDArray[np.void]]


def write_partitions(
    index: TopicIndex, listed: Int32Array, starts: _Int64Array, *, before: bytes = b"", after: bytes = b""
) -> list[bytes] | None:
    """Return the list of the partitions of each member; None if the partitions of a topic are apart in one.

    ``listed`` int32[n]: dense numbers, those of member m from ``starts[m]`` on; ``starts`` int64[M + 1]. The
    topics of a list are in the order of their appearance, as in `Partitions.by_topic`. Each list is returned
    with the given bytes before and after it.
    """
    records = _records(index.topics)
    lists: list[bytes] = []
    for block in _blocks(np.diff(starts)):
        bounds = starts[block.start : block.stop + 1]
        chosen = listed[bounds[0] : bounds[-1]]
        written = _written(index, records, chosen, bounds - bounds[0], (before, after))
        if written is None:
            return None
        lists += written
    return lists


def _written(
    index: TopicIndex, records: _Records, listed: Int32Array, starts: _Int64Array, around: tuple[bytes, bytes]
) -> list[bytes] | None:
    """Return the lists of a block of members, whose numbers begin at 0, as `write_partitions` does."""
    topic = index.topic_of_every[listed]
    numbers = listed - index.offsets[topic]
    first = _entries(topic, starts)
    topic = topic[first]
    entries_start = np.searchsorted(first, starts)
    if len(first) and _topic_twice(topic, entries_start):
        return None
    several = len(first) < len(listed)
    number = np.diff(first, append=len(listed)) if several else np.ones(len(first), dtype=np.int64)
    length = records.length[topic]
    ends = starts_of(length + _COUNT_SIZE + 4 * number)
    before, after = map(len, around)
    shift = (before + _COUNT_SIZE + after) * np.arange(len(starts))  # by what is written around the lists
    bounds = ends[entries_start] + shift
    entries = np.diff(entries_start)
    at = ends[:-1] + np.repeat(shift[:-1] + (before + _COUNT_SIZE), entries)
    buffer = _Buffer(bytearray(bounds[-1]))
    buffer.pieces(before)[bounds[:-1]] = np.void(around[0])
    buffer.counts[bounds[:-1] + before] = entries
    buffer.pieces(after)[bounds[1:] - after] = np.void(around[1])
    for each, table in records.tables.items():
        chosen = np.flatnonzero(length == each) if len(records.tables) > 1 else slice(None)
        written = table.take(records.rank[topic[chosen]])
        written["count"], written["first"] = number[chosen], numbers[first[chosen]]
        buffer.pieces(table.itemsize)[at[chosen]] = written.view(f"V{table.itemsize}")
    if several:
        at = np.repeat(at + length + _COUNT_SIZE - 4 * first, number)
        at += np.arange(0, 4 * len(listed), 4)
        buffer.counts[at] = numbers
    data, bounds = bytes(buffer.data), bounds.tolist()
    return list(map(data.__getitem__, map(slice, bounds, bounds[1:])))


def _entries(topic: Int32Array, starts: _Int64Array) -> _Int64Array:
    """int64[n]: the position of the first partition of each entry, in lists that begin at `starts`."""
    begins = np.ones(len(topic), dtype=np.bool_)
    begins[1:] = topic[1:] != topic[:-1]
    begins[starts[starts < len(topic)]] = True
    return np.flatnonzero(begins)


def _records(names: Sequence[str]) -> _Records:
    texts = [_text(name) for name in names]
    length = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    rank = np.empty_like(length)
    tables = {}
    for each in np.unique(length).tolist():
        alike = np.flatnonzero(length == each)
        rank[alike] = np.arange(len(alike))
        tables[each] = np.empty(len(alike), dtype=_record(each))
        tables[each]["name"] = np.frombuffer(b"".join([texts[t] for t in alike.tolist()]), dtype=f"V{each}")
    return _Records(length, rank, tables)


def _record(length: int) -> np.dtype[np.void]:
    """Return the fields of an entry up to its first number."""
    return np.dtype([("name", f"V{length}"), ("count", ">i4"), ("first", ">i4")])


def _text(name: str) -> bytes:
    encoded = name.encode()
    return _LENGTH.pack(len(encoded)) + encoded
