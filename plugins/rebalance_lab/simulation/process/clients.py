"""What differs between client libraries, as facts.

The facts of `java` follow from the source of Kafka's consumer, its heartbeats in calls also from runs of 4.3.
The others were measured with the libraries.
"""

from dataclasses import dataclass
from enum import Enum

from coordinator_core.client.config import ClientConfig
from rebalance_lab.scenarios.application import NONE, Span


class Joins(Enum):
    """Where a member joins, takes over assignments, and calls the listener.

    As long as a call in a poll is due, heartbeats do not begin another round (`UNLESS_CALLED`).
    """

    IN_POLL = "in polls of the application"
    UNLESS_CALLED = "in the background, but in polls where the listener must be called"
    IN_BACKGROUND = "in the background, while the application handles a batch"


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """How a client library goes through a round.

    - ``joins``: where the member joins, takes over assignments, and calls the listener.
    - ``reads_in_poll``: the response to a JoinGroup is read in a poll. Otherwise the library reads it, and
      sends the SyncGroup, in the background.
    - ``records_in_round``: polls return records of the partitions that the member keeps while a round is
      under way. Otherwise they return nothing until the round is over.
    - ``rejoins_at_once``: a member that gave up partitions at the end of a round joins again in the same
      poll. Otherwise it does so in the next one, and handles a batch before.
    - ``commits_handed_out``: auto-commit commits what polls have returned, handled or not, at intervals from
      the start of the consumer. Otherwise it commits in polls what earlier polls returned, at intervals from
      the first assignment.
    - ``fetches_every_ms``: after a round in which a member kept partitions and got no other ones, it fetches
      records at the end of an interval of this length. The intervals begin when it last got partitions. 0:
      it fetches at once.
    - ``heartbeat_late_ms``: how much later than after its interval a heartbeat is sent, drawn for each, so
      that the heartbeats of members that began together drift apart.
    - ``is_cooperative``: the library has cooperative assignors.
    - ``beats_in_revoked``, ``beats_in_assigned``: heartbeats are sent while the listener is called. Otherwise
      a call that takes longer than the session ends it.
    - ``waits_for_session``: the rebalance timeout is session.timeout.ms. Otherwise it is
      max.poll.interval.ms.
    """

    joins: Joins = Joins.IN_POLL
    reads_in_poll: bool = False
    records_in_round: bool = True
    rejoins_at_once: bool = True
    commits_handed_out: bool = False
    fetches_every_ms: int = 0
    heartbeat_late_ms: Span = NONE
    is_cooperative: bool = True
    beats_in_revoked: bool = True
    beats_in_assigned: bool = True
    waits_for_session: bool = False

    def rebalance_timeout_ms(self, config: ClientConfig) -> int:
        """Return how long rounds wait for a member."""
        return config.session_timeout_ms if self.waits_for_session else config.max_poll_interval_ms

    @property
    def gains_from_cooperation(self) -> bool:
        """Whether members work on the partitions that they keep while a cooperative round is under way."""
        return self.is_cooperative and self.records_in_round


CLIENTS = {
    "java": ClientFacts(reads_in_poll=True, heartbeat_late_ms=(2, 20)),
    "librdkafka": ClientFacts(
        joins=Joins.UNLESS_CALLED, commits_handed_out=True, fetches_every_ms=1_000, heartbeat_late_ms=(1, 5)
    ),
    "kafka-python": ClientFacts(
        records_in_round=False,
        rejoins_at_once=False,
        heartbeat_late_ms=(1, 4),
        beats_in_revoked=False,
        beats_in_assigned=False,
    ),
    "aiokafka": ClientFacts(
        joins=Joins.IN_BACKGROUND,
        commits_handed_out=True,
        heartbeat_late_ms=(0, 2),
        beats_in_assigned=False,
        is_cooperative=False,
        waits_for_session=True,
    ),
    "rebalance-lab": ClientFacts(heartbeat_late_ms=(0, 3), beats_in_revoked=False, beats_in_assigned=False),
}
"""The facts of each `scenarios.application.CLIENTS`."""
