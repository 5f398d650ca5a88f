"""One consumer: its assignor, and what it got last."""

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.errors import AssignmentError
from coordinator_core.java import java_order
from coordinator_core.model import NO_GENERATION, NO_PARTITIONS, Partitions, Subscription
from rebalance_kafka.adapters.claims import Claim, Grant, as_listed, attach, detach

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def naming(assignor: Assignor, doing: str) -> "Generator[None]":
    """Whatever is raised inside is one AssignmentError that names the assignor and the cause."""
    try:
        yield
    except AssignmentError:
        raise
    except (Exception, SystemExit) as wrong:
        said = f"{doing} raised {type(wrong).__name__}: {wrong}"
        raise AssignmentError(assignor.name, [said]) from wrong


class Member:
    """What a consumer's adapter keeps between rebalances.

    ``gives_up``: the client is eager, so that the consumer owns nothing any more when it joins.
    """

    def __init__(
        self, assignor: Assignor, *, rack: str | None, instance_id: str | None, gives_up: bool
    ) -> None:
        self.assignor = assignor
        self._rack, self._instance_id, self._gives_up = rack, instance_id, gives_up
        self._owned, self._generation = NO_PARTITIONS, NO_GENERATION
        self._member_id: str | None = None

    def subscription(self, topics: Iterable[str]) -> Subscription:
        """What the consumer says when it joins; equal state gives equal bytes. Raises AssignmentError."""
        listed = tuple(java_order(topics))
        with naming(self.assignor, "subscription_user_data"):
            own = self.assignor.subscription_user_data(listed)
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
        """The consumer got these, in a generation or, where the client does not tell, in the leader's count.

        Raises AssignmentError.
        """
        _, grant = detach(user_data, Grant)
        if generation is None:
            generation = max(self._generation, 0) + 1 if grant is None else grant.generation
        self._owned, self._generation = Partitions.of(sorted(partitions)), generation
        self._member_id = None if grant is None else grant.member_id
        with naming(self.assignor, "on_assignment"):
            self.assignor.on_assignment(self._owned, generation)


MakeMember = Callable[[], Member]
"""What makes the member of another consumer."""
