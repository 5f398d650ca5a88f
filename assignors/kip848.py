"""The assignors of Kafka's consumer protocol (KIP-848), which run in the coordinator.

Both ignore racks, as those of Apache Kafka 4 do. On the wire they are called ``range`` and ``uniform``.
"""

from assignors.average import AverageAssignor
from assignors.uniform import uniform_assignment
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment

VERSIONS = ("4.0", "4.1", "4.2", "4.3", "4.4")
"""The versions of Kafka whose assignors these are; the newest is the default."""


def read_version(text: str) -> str:
    """Return a version of Kafka.

    Raises:
        ValueError: if it is none that is known.
    """
    if text not in VERSIONS:
        raise ValueError(f"one of {', '.join(VERSIONS)}")
    return text


class Range848Assignor(AverageAssignor):
    """Each topic in consecutive runs over its sorted members, static members first."""

    name = "range-848"


class Uniform848Assignor(Assignor):
    """Equally many partitions for each member, which keeps what it has; Kafka's default.

    ``kafka`` is the version of the broker. In 4.0 the first members get the additional partitions, whoever
    has them; from 4.1 on members keep them.
    """

    name = "uniform-848"
    capabilities = (Capability.STICKY, Capability.BALANCED)
    options = {"kafka": read_version}  # noqa: RUF012 - read-only in the interface

    def __init__(self, kafka: str = VERSIONS[-1]) -> None:
        self._first_get_extra = kafka == "4.0"

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        return uniform_assignment(problem, first_get_extra=self._first_get_extra)
