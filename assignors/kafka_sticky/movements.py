"""The moves that Kafka remembers while it balances a group, to undo one rather than to add another."""

from coordinator_core.java import java_hash
from coordinator_core.java.hash_maps import HashTable, spread_int

_BITS = 0xFFFFFFFF


class Movements:
    """The partitions of a topic that moved, each with the member that it left first and the one it is at."""

    def __init__(self, topic: str) -> None:
        self._hash = java_hash(topic)
        self._pair: dict[int, tuple[int, int]] = {}
        self._moved: dict[tuple[int, int], HashTable[int]] = {}

    def instead(self, number: int, owner: int, receiver: int) -> int:
        """Return the partition to move: one that moved from the receiver to the owner, if there is one.

        Of several it is the first in the order of Java's HashSet.
        """
        source = self._pair[number][0] if number in self._pair else owner
        undone = self._moved.get((receiver, source))
        return number if undone is None else next(iter(undone))

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
            moved = self._moved.setdefault((source, receiver), HashTable())
            moved.put(number, spread_int((31 * (31 + number) + self._hash) & _BITS))
