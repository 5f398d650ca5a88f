"""A lower bound by the weights of partitions, as tests write them."""

import numpy as np

from coordinator_core.model import TopicIndex
from rebalance_lab.verdicts.bounds import largest_load_bound


def least_largest_load(weights, members):
    """A lower bound of the largest load, over all assignments of partitions to their subscribers."""
    counts = {}
    for topic, number in weights:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    index = TopicIndex(counts)
    weight = np.zeros(index.size)
    for (topic, number), value in weights.items():
        weight[index.number(topic, number)] = value
    return largest_load_bound(weight, index, list(members.values()))
