"""The running group a scenario may begin with, as its document says it: who owns what at time 0.

A member with ``owned`` is in that group, also with nothing in it; all others join once time runs.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from coordinator_core.documents.roster import Roster
from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, wrong

OWNERSHIP_FIELDS = ("owned", "generation")
FIRST_GENERATION = 1
LAST_GENERATION = 2**31 - 1_000_000
"""Generations are int32; this leaves room for those that follow."""

_EXPECTED = "a mapping of topics, each with a list of partition numbers"


class Ownership(NamedTuple):
    """What a member owns at time 0, sorted, and since which generation; None where it has yet to join."""

    owned: tuple[TopicPartition, ...] | None = None
    generation: int = FIRST_GENERATION


class Owner(Protocol):
    """A member, as far as it owns something."""

    @property
    def id(self) -> str: ...
    @property
    def owned(self) -> tuple[TopicPartition, ...] | None: ...
    @property
    def generation(self) -> int: ...


def parse_ownership(
    fields: Mapping[str, Any], where: str, roster: Roster, topics: tuple[str, ...], pattern: str | None
) -> Ownership:
    """What a member's entry says of it. Raises InputError, also for what it does not subscribe to."""
    if "owned" not in fields:
        if "generation" in fields:
            expected = "one only together with owned"
            raise InputError(inside(where, "generation"), "a generation", expected)
        return Ownership()
    at = inside(where, "owned")
    if fields.get("count", 1) != 1:
        found = f"what each of {doc.describe(fields['count'])} members owns"
        raise InputError(at, found, "a count of 1: a partition has one owner")
    value = fields["owned"]
    if not isinstance(value, Mapping):
        raise wrong(at, value, _EXPECTED)
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
    """Whether what the members own fits together; each comes with the place of its entry.

    Raises InputError for a partition with two owners, and for two generations.
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
                raise InputError(at, found, "partitions that nobody else owns")
            owner_of[partition] = member.id
