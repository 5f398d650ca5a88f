"""What differs between client libraries, as facts.

The facts of `java` follow from the source of Kafka's consumer, its calls also from runs of 4.3. Those of
`franz-go` follow from runs of 1.21. The others were measured with the libraries.
"""

from dataclasses import dataclass
from enum import Enum

from coordinator_core.client.config import ClientConfig
from coordinator_core.client.core import Library
from rebalance_lab.scenarios.application import NONE, Span
from rebalance_lab.simulation.process.turns import RECORD_BYTES, Turns
from rebalance_lab.simulation.world.dice import Dice


class Joins(Enum):
    """Where a member joins, takes over assignments, and calls the listener.

    As long as a call in a poll is due, heartbeats do not begin another round (`UNLESS_CALLED`).
    """

    IN_POLL = "in polls of the application"
    UNLESS_CALLED = "in the background, but in polls where the listener must be called"
    IN_BACKGROUND = "in the background, while the application handles a batch"


class Commits(Enum):
    """What auto-commit commits, and when.

    All commit before partitions are given up, and at intervals: `HANDLED` in polls, from the first assignment
    on, the others from the start of the consumer on.
    """

    HANDLED = "the records that are handled"
    HANDED_OUT = "the records that polls have returned, handled or not"
    BEFORE_BATCH = "the records that were handled when the batch in hand was polled"


APART = 0.5
"""The lateness of a run from which on its members read responses apart: that of half of the runs.

It changes a join to a cooperative group in some of them. On Kafka it did so in two or three of fifteen joins
of Java 4.4."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """How a client library goes through a round.

    - ``joins``: where the member joins, takes over assignments, and calls the listener.
    - ``reads_in_poll``: the response to a JoinGroup is read in a poll. Otherwise the library reads it, and
      sends the SyncGroup, in the background.
    - ``reads_apart_ms``: at most how much later than they arrive members without a batch read the responses
      to JoinGroups that waited for others, in one run of two (`APART`). One that has read its own early, and
      gave up partitions, begins the next round before the others have sent their SyncGroups, which fail.
    - ``assigns_in_ms``: in the other runs, at most how long after the response to its JoinGroup a leader
      without a batch sends the assignment, in the run in which this takes longest.
    - ``idle_poll_ms``: how long a member of KIP-848 without records is in a poll, which does the next part of
      what heartbeats have brought: drawn for each.
    - ``reads_between_waits``: while the application handles a batch, responses to heartbeats and to
      FindCoordinator are read by a thread that waits ``retry.backoff.ms`` after it sent the request.
      Otherwise they are read at once.
    - ``takes_turns``: the requests of the group go over one connection, on which a broker answers one after
      the other. Otherwise those that wait for a round have their own.
    - ``reads_in_turns``: polls hand out what a fetch has returned of a partition before that of the next one.
      Otherwise a batch has records of all partitions.
    - ``records_in_round``: polls return records of the partitions that the member keeps while a round is
      under way. Otherwise they return nothing until the round is over.
    - ``rejoins_at_once``: a member that gave up partitions at the end of a round joins again in the same
      poll. Otherwise it does so in the next one, and handles a batch before.
    - ``calls_apart``: under KIP-848, a member commits in one poll, is told in the next one what it gives up,
      and in the one after what it owns. Otherwise one poll does all of it.
    - ``looks_in_turns``: under KIP-848, of the polls that find records of an earlier fetch every second one
      looks whether the coordinator has assigned other partitions. Otherwise all do.
    - ``commits_meanwhile``: under KIP-848, a member is told at once what it gives up, and commits meanwhile.
      Otherwise it is told when the commit is answered, and may handle a batch before.
    - ``commits``: what auto-commit commits, and when.
    - ``fetches_every_ms``: after a round in which a member kept partitions and got no other ones, it fetches
      records at the end of an interval of this length. The intervals begin when it last got partitions. 0:
      it fetches at once.
    - ``heartbeat_late_ms``: how much later than after its interval a heartbeat is sent, drawn for each, so
      that the heartbeats of members that began together drift apart.
    - ``is_cooperative``: the library has cooperative assignors.
    - ``beats_in_revoked``, ``beats_in_assigned``: heartbeats are sent while the listener is called. Otherwise
      a call that takes longer than the session ends it.
    - ``first_beat_ms``: how long after a cooperative round in which it gave up nothing a member sends its
      first heartbeat; 0: after the interval, as after other rounds.
    - ``beats_from_found``: a member that has found its coordinator again sends its next heartbeat after the
      interval. Otherwise it does so when it is due.
    - ``echoes_user_data``: a leader puts the user data of a subscription into the assignment, too, so that
      Kafka does not upgrade the group to the consumer protocol.
    - ``waits_for_session``: the rebalance timeout is session.timeout.ms. Otherwise it is ``rebalance_ms``, or
      max.poll.interval.ms if that is 0.
    """

    joins: Joins = Joins.IN_POLL
    reads_in_poll: bool = False
    assigns_in_ms: int = 0
    reads_apart_ms: int = 0
    idle_poll_ms: Span = NONE
    reads_between_waits: bool = False
    takes_turns: bool = True
    reads_in_turns: bool = False
    records_in_round: bool = True
    rejoins_at_once: bool = True
    calls_apart: bool = False
    looks_in_turns: bool = False
    commits_meanwhile: bool = False
    commits: Commits = Commits.HANDLED
    fetches_every_ms: int = 0
    heartbeat_late_ms: Span = NONE
    is_cooperative: bool = True
    beats_in_revoked: bool = True
    beats_in_assigned: bool = True
    first_beat_ms: int = 0
    beats_from_found: bool = False
    echoes_user_data: bool = False
    waits_for_session: bool = False
    rebalance_ms: int = 0

    def library(self, *, joins_with_calls: bool) -> Library:
        """Return what the client does as this library does it."""
        return Library(
            self.rejoins_at_once,
            joins_with_calls,
            self.calls_apart,
            self.first_beat_ms,
            self.commits_meanwhile,
            self.beats_from_found,
            self.echoes_user_data,
        )

    def join_late_ms(self, lateness: float, *, leads: bool) -> Span:
        """Return how much later than it arrives the response to a JoinGroup is acted upon.

        ``lateness`` is drawn for a run, from 0 to below 1.
        """
        if lateness >= APART:
            return 0, self.reads_apart_ms
        return 0, round(self.assigns_in_ms * lateness / APART) * leads

    def turns(self, config: ClientConfig, record_cv: float, dice: Dice) -> Turns | None:
        """Return how a consumer reads, None if it reads all partitions at once."""
        fetched = config.max_partition_fetch_bytes // RECORD_BYTES
        return Turns(max(config.max_poll_records, fetched), record_cv, dice) if self.reads_in_turns else None

    def rebalance_timeout_ms(self, config: ClientConfig) -> int:
        """Return how long rounds wait for a member."""
        if self.waits_for_session:
            return config.session_timeout_ms
        return self.rebalance_ms or config.max_poll_interval_ms

    @property
    def gains_from_cooperation(self) -> bool:
        """Whether members work on the partitions that they keep while a cooperative round is under way."""
        return self.is_cooperative and self.records_in_round


CLIENTS = {
    "java": ClientFacts(
        reads_in_poll=True,
        assigns_in_ms=300,
        reads_apart_ms=100,
        idle_poll_ms=(0, 100),
        reads_between_waits=True,
        reads_in_turns=True,
        calls_apart=True,
        looks_in_turns=True,
        heartbeat_late_ms=(2, 20),
    ),
    "librdkafka": ClientFacts(
        joins=Joins.UNLESS_CALLED,
        commits_meanwhile=True,
        commits=Commits.HANDED_OUT,
        fetches_every_ms=1_000,
        heartbeat_late_ms=(1, 5),
        echoes_user_data=True,
    ),
    "kafka-python": ClientFacts(
        records_in_round=False,
        rejoins_at_once=False,
        heartbeat_late_ms=(1, 4),
        beats_in_revoked=False,
        beats_in_assigned=False,
        beats_from_found=True,
    ),
    "aiokafka": ClientFacts(
        joins=Joins.IN_BACKGROUND,
        commits=Commits.HANDED_OUT,
        heartbeat_late_ms=(0, 2),
        beats_in_assigned=False,
        is_cooperative=False,
        waits_for_session=True,
    ),
    "franz-go": ClientFacts(
        joins=Joins.IN_BACKGROUND,
        takes_turns=False,
        reads_in_turns=True,
        commits=Commits.BEFORE_BATCH,
        heartbeat_late_ms=(0, 2),
        first_beat_ms=500,
        rebalance_ms=60_000,
    ),
    "rebalance-lab": ClientFacts(
        reads_in_turns=True, heartbeat_late_ms=(0, 3), beats_in_revoked=False, beats_in_assigned=False
    ),
}
"""The facts of each `scenarios.application.CLIENTS`."""
