"""A group as a document: topics, members, and the partitions that they own.

A document is converted at once, and only of a wrong one the first error is searched (`documents`).
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any, NamedTuple, NoReturn, TypeAlias
from uuid import UUID
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Meta

from coordinator_core.assigning.problem import build_problem
from coordinator_core.errors import InputError
from coordinator_core.model import (
    MOST_PARTITIONS,
    NO_GENERATION,
    NO_OWNER,
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicIndex,
    TopicInfo,
)
from coordinator_core.reading.checks import LARGEST, inside
from rebalance_lab.scenarios.documents import Amount, Document, about, read, search_error
from rebalance_lab.scenarios.replicas import checked_length

SCENARIO_DURATION = "10m"
MOST_PARTITIONS_IN_ALL = 10_000_000
"""An assignment of this many partitions takes 2 GB. A larger one could exhaust the memory of the process."""


_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=249)]
"""A text whose blanks `_texts` looks for: a pattern would take longer."""
_TopicName: TypeAlias = Annotated[_Name, about(expected="a topic's name")]
_TopicId: TypeAlias = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{21}[AQgw]$")]
_Number: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_PARTITIONS)]
_Racks: TypeAlias = Annotated[tuple[Annotated[_Name, about(expected="a rack")], ...], about(of="racks")]
_Pair: TypeAlias = Annotated[tuple[str, _Number], about(expected="a pair [topic, partition]")]


class _Topic(Document, frozen=True):
    partitions: Annotated[_Number, about(missing="the number of partitions")]
    id: Annotated[_TopicId | None, about(expected="a topic's id, as Kafka prints it: 22 characters")] = None
    racks: Annotated[tuple[_Racks | None, ...] | None, about(of="lists of racks")] = None
    weights: Annotated[tuple[Amount, ...] | None, about(of="weights")] = None


class _Member(Document, frozen=True, kw_only=True):
    id: Annotated[
        Annotated[str, Meta(min_length=1)],
        about(expected="the member's id, as text", missing="the member's id"),
    ]
    instance_id: _Name | None = None
    rack: _Name | None = None
    topics: Annotated[list[_TopicName], about(of="topics", missing="a list of topics")]
    owned: Annotated[list[_Pair] | None, about(of="[topic, partition] pairs")] = None
    generation: Annotated[int, Meta(ge=NO_GENERATION, le=2**31 - 1)] | None = None
    capacity: Annotated[float, Meta(gt=0, lt=LARGEST)] | None = None


class _Group(msgspec.Struct):
    topics: Annotated[
        dict[_Name, _Topic],
        about(key="a topic's name", missing="a mapping of topic names, each with partitions"),
    ]
    members: Annotated[list[_Member], about(of="members", missing="a list of members")]
    assignor: Annotated[_Name | None, about(expected="an assignor's name")] = None


class GroupDocument(NamedTuple):
    """The content of a document. ``assignor`` is None if the document names none."""

    cluster: Cluster
    group: GroupSubscription
    assignor: str | None


def parse_group(document: Any, where: str) -> GroupDocument:
    """Return the group of a document. Unknown fields at the top are ignored.

    Raises:
        InputError: if the document is invalid. The message has the place inside the document.
    """
    root = f"{where}: "
    parsed = read(_Group, document, root)
    if not all(map(str.strip, _texts(parsed))):
        search_error(_Group, document, root)
    at = inside(root, "topics")
    for name, topic in parsed.topics.items():
        for field in ("racks", "weights"):
            values = getattr(topic, field)
            if values is not None:
                checked_length(values, inside(inside(at, name), field), topic.partitions)
    total = sum(topic.partitions for topic in parsed.topics.values())
    if total > MOST_PARTITIONS_IN_ALL:
        raise InputError(at, f"{total:,} partitions in all", f"at most {MOST_PARTITIONS_IN_ALL:,}")
    ids = {name: _read_id(topic.id) for name, topic in parsed.topics.items() if topic.id is not None}
    cluster = Cluster({name: _info(topic) for name, topic in parsed.topics.items()}, ids)
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    group = {
        member.id: Subscription(
            topics=shared.setdefault(topics := tuple(dict.fromkeys(member.topics)), topics),
            owned=owned,
            generation=NO_GENERATION if member.generation is None else member.generation,
            rack=member.rack,
            instance_id=member.instance_id,
            capacity=member.capacity,
        )
        for member, owned in zip(parsed.members, _owned_by_members(parsed, cluster.index), strict=True)
    }
    if len(group) < len(parsed.members):
        _refuse_second([member.id for member in parsed.members], inside(root, "members"))
    return GroupDocument(cluster, GroupSubscription(group), parsed.assignor)


def _refuse_second(ids: Sequence[str], where: str) -> NoReturn:
    """Name the first id that an earlier member has."""
    first: dict[str, int] = {}
    second = next(i for i, name in enumerate(ids) if first.setdefault(name, i) != i)
    at = inside(inside(where, second), "id")
    raise InputError(at, f"{ids[second]!r} twice", "a different id for each member")


def _info(topic: _Topic) -> TopicInfo:
    racks = None if topic.racks is None else tuple(names or () for names in topic.racks)
    return TopicInfo(topic.partitions, racks, topic.weights)


def _read_id(text: str) -> UUID:
    """Return the id that a text of Kafka stands for."""
    return UUID(bytes=urlsafe_b64decode(f"{text}=="))


def _texts(parsed: _Group) -> set[str]:
    """Return the texts of a group that must not be blank."""
    optional = [
        parsed.assignor,
        *(text for member in parsed.members for text in (member.rack, member.instance_id)),
    ]
    racks = (names for topic in parsed.topics.values() for names in topic.racks or () if names)
    found = {text for text in optional if text is not None}
    return found.union(parsed.topics, *(member.topics for member in parsed.members), *racks)


def _owned_by_members(parsed: _Group, index: TopicIndex) -> list[Partitions]:
    """Return the partitions of each member: as numbers of an index, if it has all of them."""
    starts = dict(zip(index.topics, index.offsets.tolist(), strict=False))
    counts = {name: topic.partitions for name, topic in parsed.topics.items()}
    known = [
        [starts[topic] + number for topic, number in member.owned or () if number < counts.get(topic, 0)]
        for member in parsed.members
    ]
    dense = np.array([*chain.from_iterable(known)], dtype=np.int32)
    found = []
    end = 0
    for member, numbers in zip(parsed.members, known, strict=True):
        begin, end = end, end + len(numbers)
        owned = member.owned or ()
        if not owned:
            found.append(NO_PARTITIONS)
        elif len(owned) == len(numbers) == len(set(numbers)):
            found.append(Partitions.dense(index, dense[begin:end]))
        else:
            found.append(Partitions.of(owned))
    return found


def assignment_document(assignment: GroupAssignment, members: Sequence[str]) -> dict[str, list[list[Any]]]:
    """Return ``{member: [[topic, partition], ...]}``, with members and partitions in their order."""
    found = assignment.numbers()
    if found is None:
        return {m: [[topic, number] for topic, number in assignment[m]] for m in members}
    index, dense = found
    bounds = zip(index.topics, pairwise(index.offsets.tolist()), strict=True)
    pairs = [[topic, number] for topic, (begin, end) in bounds for number in range(end - begin)]
    return {m: [pairs[number] for number in dense[m]] for m in members}


def scenario_document(parsed: GroupDocument, name: str) -> dict[str, Any]:
    """Return a group as a scenario of ten minutes in which a member leaves after five: by a hash of the name.

    Weights become rates, and capacities become process rates. If members own partitions, the scenario begins
    with a running group of the members with the newest generation, and the other members join. A partition
    has no owner if two of these members claim it, if it does not exist, or if its owner does not subscribe to
    its topic. A member that subscribes to no topic of the group is left out.
    """
    topics: dict[str, Any] = {}
    for topic, info in parsed.cluster.topics.items():
        topics[topic] = {"partitions": info.partitions}
        if info.weights is not None:
            topics[topic]["rates"] = list(info.weights)
        if info.racks is not None and any(info.racks):
            topics[topic]["racks"] = [list(racks) for racks in info.racks]
    owned = _running(parsed)
    members = [
        _scenario_member(member, subscription, [t for t in subscription.topics if t in topics], owned)
        for member, subscription in parsed.group.items()
    ]
    members = [member for member in members if member["topics"]]
    leaving = crc32(name.encode(errors="surrogatepass")) % max(1, len(members))
    leaves = [{"at": "5m", "leave": members[leaving]["id"]}] if len(members) > 1 else []
    return {
        "name": name[:249],
        "duration": SCENARIO_DURATION,
        "topics": topics,
        "members": members,
        "events": leaves,
    }


def _running(parsed: GroupDocument) -> dict[str, dict[str, list[int]]]:
    """Return the partitions of each member of the newest generation; empty if no member owns any."""
    claims = {m: s for m, s in parsed.group.items() if s.owned or s.generation != NO_GENERATION}
    if not claims:
        return {}
    newest = max(s.generation for s in claims.values())
    group = GroupSubscription({m: s for m, s in claims.items() if s.generation == newest})
    problem = build_problem(parsed.cluster, group)
    owned: dict[str, dict[str, list[int]]] = {member: {} for member in group}
    held = np.flatnonzero(problem.owner != NO_OWNER).astype(np.int32)
    for (topic, number), owner in zip(problem.index.partitions(held), problem.owner[held], strict=True):
        owned[problem.members[owner]].setdefault(topic, []).append(number)
    return owned if len(held) else {}


def _scenario_member(
    member: str, subscription: Subscription, topics: list[str], owned: Mapping[str, dict[str, list[int]]]
) -> dict[str, Any]:
    document: dict[str, Any] = {"id": member, "topics": topics}
    fields = {
        "process_rate": subscription.capacity,
        "rack": subscription.rack,
        "instance_id": subscription.instance_id,
        "owned": owned.get(member),
        "generation": subscription.generation if member in owned and subscription.generation > 0 else None,
    }
    return document | {key: value for key, value in fields.items() if value is not None}
