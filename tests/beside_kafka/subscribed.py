"""The bytes that members of the classic protocol send each other: subscriptions and assignments."""

from collections.abc import Iterable, Mapping
from struct import pack

NO_USERDATA = pack(">i", -1)


def subscription(topics: Iterable[str], owned: Mapping[str, Iterable[int]]) -> bytes:
    """Return a member's subscription with the partitions that it owns."""
    names = [_text(topic) for topic in topics]
    return b"".join([pack(">hi", 1, len(names)), *names, NO_USERDATA, _by_topic(owned)])


def assignment(share: Mapping[str, Iterable[int]]) -> bytes:
    """Return a member's assignment."""
    return pack(">h", 1) + _by_topic(share) + NO_USERDATA


def share_of(data: bytes) -> dict[str, tuple[int, ...]]:
    """Return the partitions of an assignment by topic.

    Raises:
        IndexError, UnicodeDecodeError: if it is none.
    """
    share: dict[str, tuple[int, ...]] = {}
    place = 2

    def take(size: int) -> int:
        nonlocal place
        place += size
        if place > len(data):
            raise IndexError(place)
        return int.from_bytes(data[place - size : place], "big")

    for _ in range(take(4)):
        size = take(2)
        topic = data[place : place + size].decode()
        place += size
        share[topic] = tuple(take(4) for _ in range(take(4)))
    return share


def _by_topic(partitions: Mapping[str, Iterable[int]]) -> bytes:
    rows = [(topic, tuple(numbers)) for topic, numbers in partitions.items()]
    parts = [_text(topic) + pack(f">i{len(numbers)}i", len(numbers), *numbers) for topic, numbers in rows]
    return pack(">i", len(rows)) + b"".join(parts)


def _text(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()
