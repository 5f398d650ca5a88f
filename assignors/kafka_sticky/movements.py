"""The moves that Kafka remembers while it balances a group, to undo one rather than to add another."""

from coordinator_core.java import java_hash

_FIRST_TABLE = 16
_BITS = 0xFFFFFFFF


class Movements:
    """The partitions of a topic that moved, each with the member that it left first and the one it is at."""

    def __init__(self, topic: str) -> None:
        self._hash = java_hash(topic)
        self._pair: dict[int, tuple[int, int]] = {}
        self._moved: dict[tuple[int, int], _HashSet] = {}

    def instead(self, number: int, owner: int, receiver: int) -> int:
        """Return the partition to move: one that moved from the receiver to the owner, if there is one.

        Of several it is the first in the order of Java's HashSet.
        """
        source = self._pair[number][0] if number in self._pair else owner
        undone = self._moved.get((receiver, source))
        return number if undone is None else undone.first()

    def add(self, number: int, owner: int, receiver: int) -> None:
        """Remember a move. A partition that is back where it came from has not moved."""
        source = owner
        if number in self._pair:
            pair = self._pair.pop(number)
            source = pair[0]
            self._moved[pair].remove(number)
            if not self._moved[pair]:
                del self._moved[pair]
        if source != receiver:
            self._pair[number] = source, receiver
            self._moved.setdefault((source, receiver), _HashSet(self._hash)).add(number)


class _HashSet:
    """A HashSet of partitions of one topic, with Java's order of iteration."""

    def __init__(self, topic_hash: int) -> None:
        self._topic_hash, self._table = topic_hash, _FIRST_TABLE
        self._hashes: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, number: int) -> None:
        hashed = (31 * (31 + number) + self._topic_hash) & _BITS
        self._hashes[number] = hashed ^ (hashed >> 16)
        if len(self._hashes) * 4 > self._table * 3:
            self._table *= 2

    def remove(self, number: int) -> None:
        del self._hashes[number]

    def first(self) -> int:
        mask = self._table - 1
        return min(self._hashes, key=lambda number: self._hashes[number] & mask)
