"""What the algorithms return."""

from collections.abc import Callable
from dataclasses import dataclass

from coordinator_core.model import Int32Array


@dataclass(frozen=True, eq=False)
class Answer:
    """An assignment, before a cooperative assignor holds anything back.

    ``owner``  int32[P]: the owner of each partition as a position in the members of the problem, or -1;
    ``moving`` int32[n]: the partitions that the cooperative assignor leaves out, since their new owner has to
               wait for the old one;
    ``listed`` returns the order in which Kafka lists the partitions of each member: a permutation of the
               dense numbers, or None for the ascending order.
    """

    owner: Int32Array
    moving: Int32Array
    listed: Callable[[], Int32Array | None]
