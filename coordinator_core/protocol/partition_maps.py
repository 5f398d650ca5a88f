"""Sets of partitions as events carry them: topics with sorted numbers, and none without numbers."""

from coordinator_core.protocol.events import PartitionMap


def union(first: PartitionMap, second: PartitionMap) -> PartitionMap:
    """Return the partitions of both maps: the topics of the first one, and then others of the second one."""
    return {topic: sorted({*first.get(topic, ()), *second.get(topic, ())}) for topic in {**first, **second}}


def difference(first: PartitionMap, second: PartitionMap) -> PartitionMap:
    """Return the partitions of the first map that the second one does not have."""
    taken = {topic: set(second.get(topic, ())) for topic in first}
    rest = {topic: [n for n in numbers if n not in taken[topic]] for topic, numbers in first.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def intersection(first: PartitionMap, second: PartitionMap) -> PartitionMap:
    """Return the partitions that both maps have."""
    return difference(first, difference(first, second))
