"""The running group that a scenario may begin with: the partitions of each member at time 0.

A member with ``owned`` is in that group, even if ``owned`` is empty. All other members join.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside
from rebalance_lab.scenarios.fields import FIRST_GENERATION, MemberFields
from rebalance_lab.scenarios.roster import Roster


class Ownership(NamedTuple):
    """The partitions of a member at time 0, sorted, and its generation.

    ``owned`` is None for a member that joins.
    """

    owned: tuple[TopicPartition, ...] | None = None
    generation: int = FIRST_GENERATION


def ownership_of(entry: MemberFields, where: str, roster: Roster) -> Ownership:
    """Return the ownership in a member's entry.

    Raises:
        InputError: if a partition does not exist, or the member does not subscribe to its topic.
    """
    if entry.owned is UNSET:
        if entry.generation is not UNSET:
            expected = "one only together with owned"
            raise InputError(inside(where, "generation"), "a generation", expected)
        return Ownership()
    at = inside(where, "owned")
    if entry.count is not UNSET and entry.count != 1:
        found = f"the partitions of each of {entry.count} members"
        raise InputError(at, found, "a count of 1: a partition has one owner")
    pattern = entry.topics_pattern
    subscribed = entry.topics or [t for t in roster.topics if pattern and re.fullmatch(pattern, t)]
    owned: list[TopicPartition] = []
    for topic, numbers in entry.owned.items():
        count = roster.topic(topic, at)
        if topic not in subscribed:
            expected = f"one that the member subscribes to: {', '.join(subscribed) or '(none)'}"
            raise InputError(at, f"the topic {topic!r}", expected)
        owned += _partitions(topic, numbers, inside(at, topic), count)
    return Ownership(tuple(sorted(owned)), entry.generation or FIRST_GENERATION)


def _partitions(topic: str, numbers: Sequence[Any], where: str, count: int) -> list[TopicPartition]:
    seen: dict[int, None] = {}
    for i, number in enumerate(numbers):
        doc.whole(number, inside(where, i), low=0, high=count - 1)
        if number in seen:
            raise InputError(inside(where, i), f"partition {number} twice", "each partition once")
        seen[number] = None
    return [TopicPartition(topic, number) for number in seen]
