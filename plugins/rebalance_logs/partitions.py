"""Partitions in the text of logs, in the forms of every client."""

import re
from collections.abc import Iterable

from coordinator_core.protocol.events import PartitionMap

_OBJECT = re.compile(r"topic=u?'([^']+)', partition=(\d+)")
_LISTED = re.compile(r"([\w.\-*]+)\"?'?\s*(?::|=)?\s*\[([\d\s,]*)\]")
_DASHED = re.compile(r"([\w.\-*]*[\w.*])-(\d+)(?![\w.\-])")
_OF_MEMBER = re.compile(r"([^\s{},=]+)=Assignment\(partitions=\[([^\]]*)\]?")


def partitions_of(text: str) -> PartitionMap:
    """Return the partitions that a text lists, in order.

    It may list them as ``orders-0, orders-1``, ``orders [0]``, ``{"orders":[0,1]}``, ``orders[0 1]`` or
    ``TopicPartition(topic='orders', partition=0)``.
    """
    objects = _OBJECT.findall(text)
    if objects:
        return _mapped(objects)
    listed = _LISTED.findall(text)
    if listed:
        return _mapped((topic, number) for topic, numbers in listed for number in re.findall(r"\d+", numbers))
    return _mapped(_DASHED.findall(text))


def assignments_of(text: str) -> dict[str, PartitionMap]:
    """Return the partitions of member ids that a leader of the Java client lists."""
    return {member: partitions_of(listed) for member, listed in _OF_MEMBER.findall(text)}


def _mapped(pairs: Iterable[tuple[str, str]]) -> PartitionMap:
    found: dict[str, set[int]] = {}
    for topic, number in pairs:
        found.setdefault(topic, set()).add(int(number))
    return {topic: sorted(found[topic]) for topic in sorted(found)}
