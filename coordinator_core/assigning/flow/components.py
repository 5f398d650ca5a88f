"""Connected components of the subscription graph, which can be solved separately."""

import numpy as np

from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array

_QUICK_STEPS = 4


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
