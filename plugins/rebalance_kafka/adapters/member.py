"""One consumer: its assignor and its last assignment."""

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import user_data_of
from coordinator_core.errors import AssignmentError
from coordinator_core.java import java_order
from coordinator_core.model import NO_GENERATION, NO_PARTITIONS, Partitions, Subscription
from coordinator_core.reading.raised import raised
from rebalance_kafka.adapters.claims import Claim, Grant, as_listed, attach, detach

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def naming(assignor: Assignor, doing: str) -> "Generator[None]":
    """Convert every exception to an AssignmentError with the name of the assignor and the cause."""
    try:
        yield
    except AssignmentError:
        raise
    except (Exception, SystemExit) as error:
        violation = f"{doing} raised {raised(error)}"
        raise AssignmentError(assignor.name, [violation]) from error


class Member:
    """The state of a consumer between rebalances.

    ``gives_up``: whether the client is eager, so that the consumer has revoked its partitions when it joins.
    """

    def __init__(
        self, assignor: Assignor, *, rack: str | None, instance_id: str | None, gives_up: bool
    ) -> None:
        self.assignor = assignor
        self._rack, self._instance_id, self._gives_up = rack, instance_id, gives_up
        self._owned, self._generation = NO_PARTITIONS, NO_GENERATION
        self._member_id: str | None = None

    def subscription(self, topics: Iterable[str]) -> Subscription:
        """Return the subscription of the consumer. Equal states have equal bytes.

        Raises:
            AssignmentError: if the assignor fails.
        """
        listed = tuple(java_order(topics))
        own = user_data_of(self.assignor, listed)
        wanted = frozenset(listed)
        owned = Partitions({t: n for t, n in self._owned.by_topic().items() if t in wanted})
        claim = Claim(
            owned=as_listed(owned),
            generation=self._generation,
            rack=self._rack,
            instance_id=self._instance_id,
            member_id=self._member_id,
            gave_up=self._gives_up,
        )
        return Subscription(
            topics=listed,
            owned=NO_PARTITIONS if self._gives_up else owned,
            generation=self._generation,
            rack=self._rack,
            instance_id=self._instance_id,
            user_data=attach(own, claim),
        )

    def assigned(
        self, partitions: Iterable[tuple[str, int]], user_data: bytes | None, generation: int | None
    ) -> None:
        """Receive an assignment, with its generation or, for clients without generations, the leader's count.

        Raises:
            AssignmentError: if the assignor fails.
        """
        _, grant = detach(user_data, Grant)
        if generation is None:
            generation = max(self._generation, 0) + 1 if grant is None else grant.generation
        self._owned, self._generation = Partitions.of(sorted(partitions)), generation
        self._member_id = None if grant is None else grant.member_id
        with naming(self.assignor, "on_assignment"):
            self.assignor.on_assignment(self._owned, generation)


MakeMember = Callable[[], Member]
"""Makes the member of another consumer."""
