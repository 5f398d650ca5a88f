"""Where the replicas of partitions are, as documents say it: per partition, the racks of its replicas."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from coordinator_core.model import TopicInfo
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, wrong

Racks: TypeAlias = tuple[tuple[str, ...], ...]
"""Per partition; empty where nothing is known, as it is of partitions that are added later."""


def parse_racks(value: Any, where: str, partitions: int) -> Racks:
    """The racks of each partition; a null is as an empty list. Raises InputError."""
    listed = per_partition(value, where, partitions, "lists of racks")
    racks = []
    for i, each in enumerate(listed):
        names = doc.sequence([] if each is None else each, inside(where, i), "racks")
        racks.append(tuple(doc.text(n, inside(inside(where, i), j), "a rack") for j, n in enumerate(names)))
    return tuple(racks)


def per_partition(value: Any, where: str, partitions: int, of: str) -> Sequence[Any]:
    """A list with something for each partition. Raises InputError."""
    listed = doc.sequence(value, where, of)
    if len(listed) != partitions:
        raise wrong(where, listed, f"a list of {partitions}, one per partition")
    return listed


def racks_of(racks: Racks, partitions: int) -> Racks:
    """Of so many partitions; those beyond the list have none."""
    return (*racks[:partitions], *((),) * (partitions - len(racks)))


def topic_infos(partitions: Mapping[str, int], racks: Mapping[str, Racks]) -> dict[str, TopicInfo]:
    """Topics as their metadata tells a consumer of them."""
    return {
        topic: TopicInfo(count, racks_of(racks[topic], count) if any(racks.get(topic, ())) else None)
        for topic, count in partitions.items()
    }
