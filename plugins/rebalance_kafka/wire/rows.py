"""Rows of partitions, with the topics under which a message has them."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from uuid import UUID


class Topic(NamedTuple):
    """A topic of a message, and how many of the rows are its own.

    ``name`` None: the message has an id, and no topic has it. ``topic_id`` None: the message has a name.
    """

    name: str | None
    topic_id: UUID | None
    rows: int = 0


class Rows(tuple[Any, ...]):
    """Rows of partitions in the order of a message.

    A message may have a topic twice or without rows. Kafka answers such topics as requested.
    """

    topics: tuple[Topic, ...]

    @classmethod
    def of(cls, topics: Iterable[tuple[Topic, Iterable[Any]]]) -> "Rows":
        """Return the rows of topics. The numbers of rows of the topics are set."""
        listed = [(topic, tuple(own)) for topic, own in topics]
        rows = cls(row for _, own in listed for row in own)
        rows.topics = tuple(topic._replace(rows=len(own)) for topic, own in listed)
        return rows

    def by_topic(self) -> Iterator[tuple[Topic, tuple[Any, ...]]]:
        """Yield each topic with its rows."""
        begin = 0
        for topic in self.topics:
            end = begin + topic.rows
            yield topic, self[begin:end]
            begin = end


def as_requested(requested: Rows, responses: Iterable[Any]) -> Rows:
    """Return responses, one for each row of a request in its order, under the topics of the request."""
    rows = Rows(responses)
    rows.topics = requested.topics
    return rows


def grouped(rows: Iterable[Any]) -> Iterator[tuple[Topic, tuple[Any, ...]]]:
    """Yield the topics of rows with their rows: as a message had them, or each topic once."""
    if isinstance(rows, Rows):
        yield from rows.by_topic()
        return
    by_topic: dict[str, list[Any]] = {}
    for row in rows:
        by_topic.setdefault(row.topic, []).append(row)
    for name, own in by_topic.items():
        yield Topic(name, None, len(own)), tuple(own)
