"""What the members of each group together can handle, and what they have: from figures of the busiest one."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebalance_spark.groups import LARGEST, SHARE
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import Scored

MEMBERS, PARTITIONS = "members", "partitions"


class Capacity(NamedTuple):
    """What each of S subjects can handle.

    ``too_much``: whether all members together have more than they can handle, in half or more of the
    scenarios with overload. ``members``, ``needed``: in the scenario that needs most members, how many there
    are, and how many could handle it if all had the same, 0 if that is not known. ``hot``: the load of the
    busiest partition alone where it is greatest, as a share of what a member can handle, NaN if that is not
    known. ``partitions``: the most of a scenario, 0 if that is not known. ``full``: whether there are as many
    members as the largest topic has partitions, in some scenario.
    """

    too_much: npt.NDArray[np.bool_]
    members: npt.NDArray[np.int64]
    needed: npt.NDArray[np.int64]
    hot: npt.NDArray[np.float64]
    partitions: npt.NDArray[np.int64]
    full: npt.NDArray[np.bool_]


def capacity_of(
    scored: Scored, load: npt.NDArray[np.float64], imbalance: npt.NDArray[np.float64], subjects: Subjects
) -> Capacity:
    """Return what subjects can handle, from the load and the balance of the busiest member in each scenario.

    The load of the busiest member, divided by how much more than the mean it has, is that of the mean.
    """
    size, numbers = len(subjects.names), subjects.numbers
    mean = np.divide(load, imbalance, out=np.full(len(load), np.nan), where=imbalance > 0)
    overloaded = np.bincount(numbers, load > 1, size)
    beyond = np.bincount(numbers, (load > 1) & ~(mean <= 1), size)
    members = _column(scored, MEMBERS)
    of_all = np.nan_to_num(mean * members)
    most = np.zeros(size)
    np.maximum.at(most, numbers, of_all)
    at_most = (of_all == most[numbers]) & (of_all > 0)
    there = np.zeros(size, dtype=np.int64)
    there[numbers[at_most]] = members[at_most]
    hot = np.full(size, np.nan)
    np.fmax.at(hot, numbers, mean * members * _column(scored, SHARE))
    partitions = np.zeros(size)
    np.fmax.at(partitions, numbers, np.nan_to_num(_column(scored, PARTITIONS)))
    full = np.bincount(numbers, members == _column(scored, LARGEST), size) > 0
    too_much = (overloaded > 0) & (2 * beyond >= overloaded)
    needed = np.ceil(most).astype(np.int64)
    return Capacity(too_much, there, needed, hot, partitions.astype(np.int64), full)


def _column(scored: Scored, name: str) -> npt.NDArray[np.float64]:
    """Return a column of the workload, NaN where it is not known."""
    if name not in scored.others:
        return np.full(len(scored.scenarios), np.nan)
    return np.array([np.nan if value is None else value for value in scored.values(name)], dtype=np.float64)
