"""A group as a document: topics, members, and the partitions that they own.

A correct document is converted at once by msgspec. Any other is read field by field, with the place of each
field, for the error.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any, NamedTuple, TypeAlias
from zlib import crc32

import msgspec
import numpy as np

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
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import LARGEST, inside, unexpected
from rebalance_lab.scenarios.replicas import parse_racks, per_partition

SCENARIO_DURATION = "10m"
MOST_PARTITIONS_IN_ALL = 10_000_000
"""An assignment of this many partitions takes 2 GB. A larger one could exhaust the memory of the process."""
_TOPIC_FIELDS = ("partitions", "racks", "weights")
_MEMBER_FIELDS = ("id", "instance_id", "rack", "topics", "owned", "generation", "capacity")


_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=249)]
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_PARTITIONS)]
_Generation: TypeAlias = Annotated[int, msgspec.Meta(ge=NO_GENERATION, le=2**31 - 1)]
_Weight: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=LARGEST)]
_Capacity: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=LARGEST)]


class _Topic(msgspec.Struct, forbid_unknown_fields=True):
    partitions: _Number
    racks: tuple[tuple[_Name, ...] | None, ...] | None = None
    weights: tuple[_Weight, ...] | None = None


class _Member(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    topics: list[_Name]
    owned: list[tuple[str, _Number]] | None = None
    generation: _Generation | None = None
    rack: _Name | None = None
    instance_id: _Name | None = None
    capacity: _Capacity | None = None


class _Group(msgspec.Struct):
    topics: dict[_Name, _Topic]
    members: list[_Member]
    assignor: _Name | None = None


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
    return _converted(document) or _read(document, where)


def _converted(document: Any) -> GroupDocument | None:
    """Return the group of a document, or None if the document may be invalid."""
    try:
        read = msgspec.convert(document, _Group)
    except (msgspec.ValidationError, ValueError):
        return None
    cluster = Cluster({name: _info(topic) for name, topic in read.topics.items()})
    ids = {member.id for member in read.members}
    total = sum(topic.partitions for topic in read.topics.values())
    complete = all(map(_is_complete, read.topics.values())) and len(ids) == len(read.members)
    if not complete or total > MOST_PARTITIONS_IN_ALL or not all(map(str.strip, _texts(read))):
        return None
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
        for member, owned in zip(read.members, _owned_by_members(read, cluster.index), strict=True)
    }
    return GroupDocument(cluster, GroupSubscription(group), read.assignor)


def _info(topic: _Topic) -> TopicInfo:
    racks = None if topic.racks is None else tuple(names or () for names in topic.racks)
    return TopicInfo(topic.partitions, racks, topic.weights)


def _is_complete(topic: _Topic) -> bool:
    """Whether the lists of a topic have an element for each partition."""
    return all(listed is None or len(listed) == topic.partitions for listed in (topic.racks, topic.weights))


def _texts(read: _Group) -> set[str]:
    """Return the texts of a group that must not be blank."""
    optional = [
        read.assignor,
        *(text for member in read.members for text in (member.rack, member.instance_id)),
    ]
    racks = (names for topic in read.topics.values() for names in topic.racks or () if names)
    found = {text for text in optional if text is not None}
    return found.union(read.topics, *(member.topics for member in read.members), *racks)


def _owned_by_members(read: _Group, index: TopicIndex) -> list[Partitions]:
    """Return the partitions of each member: as numbers of an index, if it has all of them."""
    starts = dict(zip(index.topics, index.offsets.tolist(), strict=False))
    counts = {name: topic.partitions for name, topic in read.topics.items()}
    known = [
        [starts[topic] + number for topic, number in member.owned or () if number < counts.get(topic, 0)]
        for member in read.members
    ]
    dense = np.array([*chain.from_iterable(known)], dtype=np.int32)
    found = []
    end = 0
    for member, numbers in zip(read.members, known, strict=True):
        begin, end = end, end + len(numbers)
        owned = member.owned or ()
        if not owned:
            found.append(NO_PARTITIONS)
        elif len(owned) == len(numbers) == len(set(numbers)):
            found.append(Partitions.dense(index, dense[begin:end]))
        else:
            found.append(Partitions.of(owned))
    return found


def _read(document: Any, where: str) -> GroupDocument:
    """Return the group of a document, as `parse_group` does."""
    root = f"{where}: "
    fields = doc.mapping(document, root)
    expected = "a mapping of topic names, each with partitions"
    topics = doc.mapping(doc.required(fields, "topics", root, expected), inside(root, "topics"))
    members = doc.sequence(
        doc.required(fields, "members", root, "a list of members"), inside(root, "members"), "members"
    )
    assignor = fields.get("assignor")
    if assignor is not None:
        doc.text(assignor, inside(root, "assignor"), "an assignor's name")
    at = inside(root, "topics")
    cluster = Cluster({_name(t, at): _topic(info, inside(at, t)) for t, info in topics.items()})
    total = sum(topic.partitions for topic in cluster.topics.values())
    if total > MOST_PARTITIONS_IN_ALL:
        raise InputError(at, f"{total:,} partitions in all", f"at most {MOST_PARTITIONS_IN_ALL:,}")
    group: dict[str, Subscription] = {}
    for i, value in enumerate(members):
        at = inside(inside(root, "members"), i)
        member, subscription = _member(value, at)
        if member in group:
            raise InputError(inside(at, "id"), f"{member!r} twice", "a different id for each member")
        group[member] = subscription
    return GroupDocument(cluster, GroupSubscription(group), assignor)


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


def _name(topic: str, where: str) -> str:
    return doc.text(topic, where, "a topic's name")


def _topic(value: Any, where: str) -> TopicInfo:
    fields = doc.mapping(value, where, _TOPIC_FIELDS)
    count = doc.required(fields, "partitions", where, "the number of partitions")
    partitions = doc.whole(count, inside(where, "partitions"), low=0, high=MOST_PARTITIONS)
    return TopicInfo(
        partitions,
        None
        if fields.get("racks") is None
        else parse_racks(fields["racks"], inside(where, "racks"), partitions),
        _weights(fields.get("weights"), inside(where, "weights"), partitions),
    )


def _weights(value: Any, where: str, partitions: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    listed = per_partition(value, where, partitions, "weights")
    return tuple(doc.number(weight, inside(where, i)) for i, weight in enumerate(listed))


def _member(value: Any, where: str) -> tuple[str, Subscription]:
    fields = doc.mapping(value, where, _MEMBER_FIELDS)
    member = doc.required(fields, "id", where, "the member's id")
    if not isinstance(member, str) or not member:
        raise unexpected(inside(where, "id"), member, "the member's id, as text")
    listed = doc.required(fields, "topics", where, "a list of topics")
    topics = doc.sequence(listed, inside(where, "topics"), "topics")
    for i, topic in enumerate(topics):
        _name(topic, inside(inside(where, "topics"), i))
    capacity = fields.get("capacity")
    if capacity is not None:
        capacity = doc.number(capacity, inside(where, "capacity"), positive=True)
    return member, Subscription(
        topics=tuple(dict.fromkeys(topics)),
        owned=_owned(fields.get("owned"), inside(where, "owned")),
        generation=_generation(fields, where),
        rack=_optional_text(fields, "rack", where),
        instance_id=_optional_text(fields, "instance_id", where),
        capacity=capacity,
    )


def _generation(fields: Mapping[str, Any], where: str) -> int:
    given = fields.get("generation")
    if given is None:
        return NO_GENERATION
    return doc.whole(given, inside(where, "generation"), low=NO_GENERATION, high=2**31 - 1)


def _optional_text(fields: Mapping[str, Any], key: str, where: str) -> str | None:
    given = fields.get(key)
    return None if given is None else doc.text(given, inside(where, key))


def _owned(value: Any, where: str) -> Partitions:
    listed = doc.sequence([] if value is None else value, where, "[topic, partition] pairs")
    for i, pair in enumerate(listed):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise unexpected(inside(where, i), pair, "a pair [topic, partition]")
        doc.whole(pair[1], inside(inside(where, i), 1), low=0, high=MOST_PARTITIONS)
    return Partitions.of((topic, number) for topic, number in listed)
