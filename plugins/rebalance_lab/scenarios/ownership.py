"""The running group that a scenario may begin with: the partitions of each member at time 0.

A member with ``owned`` is in that group, even if ``owned`` is empty. All other members join.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.schemas import described, listed, named, whole
from rebalance_lab.scenarios.roster import Roster

FIRST_GENERATION = 1
LAST_GENERATION = 2**31 - 1_000_000
"""Generations are int32. This leaves room for later generations."""

OWNERSHIP_FIELDS = {
    "owned": described(
        "The partitions that the member owns at time 0, such as {orders: [0, 3]}.",
        named(listed({"type": "integer", "minimum": 0})),
    ),
    "generation": described("Its generation.", whole(FIRST_GENERATION, LAST_GENERATION), default=1),
}

_EXPECTED = "a mapping of topics, each with a list of partition numbers"


class Ownership(NamedTuple):
    """The partitions of a member at time 0, sorted, and its generation.

    ``owned`` is None for a member that joins.
    """

    owned: tuple[TopicPartition, ...] | None = None
    generation: int = FIRST_GENERATION


class Owner(Protocol):
    """A member with its partitions."""

    @property
    def id(self) -> str: ...
    @property
    def owned(self) -> tuple[TopicPartition, ...] | None: ...
    @property
    def generation(self) -> int: ...


def parse_ownership(
    fields: Mapping[str, Any], where: str, roster: Roster, topics: tuple[str, ...], pattern: str | None
) -> Ownership:
    """Return the ownership in a member's entry.

    Raises:
        InputError: if the entry is wrong, or a topic is not among those that the member subscribes to.
    """
    if "owned" not in fields:
        if "generation" in fields:
            expected = "one only together with owned"
            raise InputError(inside(where, "generation"), "a generation", expected)
        return Ownership()
    at = inside(where, "owned")
    if fields.get("count", 1) != 1:
        found = f"the partitions of each of {doc.describe(fields['count'])} members"
        raise InputError(at, found, "a count of 1: a partition has one owner")
    value = fields["owned"]
    if not isinstance(value, Mapping):
        raise unexpected(at, value, _EXPECTED)
    subscribed = topics if pattern is None else tuple(t for t in roster.topics if re.fullmatch(pattern, t))
    owned: list[TopicPartition] = []
    for topic, numbers in doc.mapping(value, at).items():
        count = roster.topic(topic, at)
        if topic not in subscribed:
            expected = f"one that the member subscribes to: {', '.join(subscribed) or '(none)'}"
            raise InputError(at, f"the topic {topic!r}", expected)
        owned += _partitions(topic, numbers, inside(at, topic), count)
    generation = doc.whole(
        fields.get("generation", FIRST_GENERATION),
        inside(where, "generation"),
        low=FIRST_GENERATION,
        high=LAST_GENERATION,
    )
    return Ownership(tuple(sorted(owned)), generation)


def _partitions(topic: str, value: Any, where: str, count: int) -> list[TopicPartition]:
    seen: dict[int, None] = {}
    for i, number in enumerate(doc.sequence(value, where, "partition numbers")):
        doc.whole(number, inside(where, i), low=0, high=count - 1)
        if number in seen:
            raise InputError(inside(where, i), f"partition {number} twice", "each partition once")
        seen[number] = None
    return [TopicPartition(topic, number) for number in seen]


def check_running(owners: Iterable[tuple[Owner, str]]) -> None:
    """Check that the partitions of the members fit together. Each member comes with the place of its entry.

    Raises:
        InputError: if a partition has two owners, or if there are two generations.
    """
    owner_of: dict[TopicPartition, str] = {}
    first: Owner | None = None
    for member, where in owners:
        if member.owned is None:
            continue
        first = member if first is None else first
        if member.generation != first.generation:
            found = f"{member.generation}, where {first.id} is in {first.generation}"
            expected = "one generation for all members with owned"
            raise InputError(inside(where, "generation"), found, expected)
        for partition in member.owned:
            if partition in owner_of:
                at = inside(inside(where, "owned"), partition.topic)
                found = f"partition {partition.partition}, which {owner_of[partition]} owns"
                raise InputError(at, found, "partitions that no other member owns")
            owner_of[partition] = member.id
