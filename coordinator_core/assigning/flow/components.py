"""Connected components of the subscription graph, which can be solved separately."""

from dataclasses import dataclass

import numpy as np

from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.problem import BoolArray, merged_rows
from coordinator_core.model import NO_OWNER, Int32Array

_QUICK_STEPS = 4


@dataclass(frozen=True, eq=False)
class Component:
    """A connected component with numbers of its own. p partitions, m members, c classes, t topics.

    ``topic``  int32[p], ascending; ``owner`` int32[p]: previous owner among the m, -1 none;
    ``rack_set`` int32[p], a row of `crossing`; ``member_class`` int32[m]; ``member_rack`` int32[m], a
    column of `crossing`; ``subscribes`` bool[c, t]; ``crossing`` bool[s, r].
    """

    topic: Int32Array
    owner: Int32Array
    rack_set: Int32Array
    member_class: Int32Array
    member_rack: Int32Array
    subscribes: BoolArray
    crossing: BoolArray


def components(subscribes: BoolArray) -> tuple[Int32Array, Int32Array, int]:
    """Return the components of classes, int32[C], and topics, int32[T] (-1: no subscriber), and their number.

    Numbered by their first class. A class without topics is a component of its own.
    """
    classes, topics = subscribes.shape
    if _is_connected(subscribes):
        topic_component = np.where(subscribes.any(axis=0), 0, NO_OWNER).astype(np.int32)
        return np.zeros(classes, dtype=np.int32), topic_component, min(classes, 1)
    rows, columns = np.nonzero(subscribes)
    label = np.arange(classes)
    topic_label = np.full(topics, classes)
    while True:
        np.minimum.at(topic_label, columns, label[rows])
        lower = label.copy()
        np.minimum.at(lower, rows, topic_label[columns])
        lower = lower[lower]
        if np.array_equal(lower, label):
            break
        label = lower
    roots, class_component = np.unique(label, return_inverse=True)
    number = np.full(classes + 1, NO_OWNER, dtype=np.int32)
    number[roots] = np.arange(len(roots))
    return class_component.astype(np.int32), number[topic_label], len(roots)


def _is_connected(subscribes: BoolArray) -> bool:
    """Whether a few steps from the first class reach every class."""
    if len(subscribes) <= 1:
        return True
    reached = subscribes[0]
    for _ in range(_QUICK_STEPS):
        classes = subscribes[:, reached].any(axis=1)
        if classes.all():
            return True
        wider = subscribes[classes].any(axis=0)
        if np.array_equal(wider, reached):
            return False
        reached = wider
    return False


def lowest_subscribers(subscribes: BoolArray, level: IntArray) -> BoolArray:
    """bool[c, t]: which classes may own a topic: of its subscribers only those of the lowest level.

    ``level`` int64[c]: the level of each class (see `levels`).
    """
    if not len(level) or (level == level[0]).all():
        return subscribes
    lowest = np.where(subscribes, level[:, None], np.iinfo(np.int64).max).min(axis=0)
    return np.asarray(subscribes & (level[:, None] == lowest))


def merged_columns(matrix: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return the distinct columns in order of appearance, and the number of each column, int64[t].

    The transpose of the returned columns is contiguous.
    """
    columns, which = merged_rows(np.ascontiguousarray(matrix.T))
    return columns.T, which.astype(np.int64)
