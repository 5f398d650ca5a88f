"""The racks of the replicas of each partition, in documents and in metadata."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from coordinator_core.model import TopicInfo
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected

Racks: TypeAlias = tuple[tuple[str, ...], ...]
"""The racks of each partition. Empty for a partition whose racks are unknown, such as one added later."""


def parse_racks(value: Any, where: str, partitions: int) -> Racks:
    """Return the racks of each partition. A null is the same as an empty list.

    Raises:
        InputError: if the value is not a list of lists of racks, one for each partition.
    """
    listed = per_partition(value, where, partitions, "lists of racks")
    racks = []
    for i, entry in enumerate(listed):
        names = doc.sequence([] if entry is None else entry, inside(where, i), "racks")
        racks.append(tuple(doc.text(n, inside(inside(where, i), j), "a rack") for j, n in enumerate(names)))
    return tuple(racks)


def per_partition(value: Any, where: str, partitions: int, of: str) -> Sequence[Any]:
    """Return a value that is a list with an element for each partition.

    Raises:
        InputError: if the value is not a list of that length.
    """
    listed = doc.sequence(value, where, of)
    if len(listed) != partitions:
        raise unexpected(where, listed, f"a list of {partitions}, one per partition")
    return listed


def racks_of(racks: Racks, partitions: int) -> Racks:
    """Return the racks of a number of partitions. Those beyond the list have none."""
    return (*racks[:partitions], *((),) * (partitions - len(racks)))


def topic_infos(partitions: Mapping[str, int], racks: Mapping[str, Racks]) -> dict[str, TopicInfo]:
    """Return topics as consumers see them in metadata."""
    return {
        topic: TopicInfo(count, racks_of(racks[topic], count) if any(racks.get(topic, ())) else None)
        for topic, count in partitions.items()
    }
