"""The racks of the replicas of each partition, in documents and in metadata."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from coordinator_core.model import TopicInfo
from coordinator_core.reading.checks import unexpected

Racks: TypeAlias = tuple[tuple[str, ...], ...]
"""The racks of each partition. Empty for a partition whose racks are unknown, such as one added later."""


def checked_length(values: Sequence[Any], where: str, partitions: int, of: str = "") -> None:
    """Check that a list has an element for each partition. ``of`` names the elements in the error.

    Raises:
        InputError: if the list has another length.
    """
    if len(values) != partitions:
        expected = f"a list of {partitions} {of}".rstrip()
        raise unexpected(where, values, f"{expected}, one per partition")


def racks_of(racks: Racks, partitions: int) -> Racks:
    """Return the racks of a number of partitions. Those beyond the list have none."""
    return (*racks[:partitions], *((),) * (partitions - len(racks)))


def topic_infos(partitions: Mapping[str, int], racks: Mapping[str, Racks]) -> dict[str, TopicInfo]:
    """Return topics as consumers see them in metadata."""
    return {
        topic: TopicInfo(count, racks_of(racks[topic], count) if any(racks.get(topic, ())) else None)
        for topic, count in partitions.items()
    }
