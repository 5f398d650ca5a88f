"""A process at rest: what it sends again and again, and how much of that is left out.

A member of a group at rest sends heartbeats, commits offsets and refreshes metadata. The times of these
messages follow from the last of each kind, whatever their latencies: a heartbeat is due an interval and its
lateness after the one before; an application that keeps up with its records polls, and commits, when the
commit is due; metadata are due some time after they were received. Such messages are counted and not sent.
The last ones before a cause are sent, so that what is under way at the cause is real.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coordinator_core.client.facade import Client
from coordinator_core.client.periodic import Heartbeats, Periodic
from coordinator_core.coordinator.shard import Group
from coordinator_core.protocol.messages import (
    HeartbeatResponse,
    MetadataResponse,
    OffsetCommitResponse,
    Request,
    Response,
)
from coordinator_core.simulation.dice import Spread
from coordinator_core.simulation.network import Connection, Network

HEARTBEAT, COMMIT, METADATA = "Heartbeat", "OffsetCommit", "Metadata"
"""The kinds of periodic messages."""

LATENCIES = 4
"""A message is under way for less than this many times the largest latency."""


def is_success(response: Response) -> bool:
    """Return whether the response to a periodic request changes nothing at its receiver."""
    if isinstance(response, HeartbeatResponse):
        return not response.error
    if isinstance(response, OffsetCommitResponse):
        return not [partition for partition in response.partitions if partition.error]
    return isinstance(response, MetadataResponse)


class Peers(Protocol):
    """The brokers, as a process at rest sees them."""

    def metadata(self) -> MetadataResponse:
        """Return the description of all topics."""
        ...

    def keep_alive(self, node: int, request: Request, *, client: str, at_ms: int) -> None:
        """Take note of a heartbeat that is left out."""
        ...

    def leave_out_commits(self, node: int, client: str, count: int) -> None:
        """Count commits of a client that are left out."""
        ...


class Loop(Protocol):
    """The application of the process."""

    @property
    def keeps_up(self) -> bool:
        """Whether it has no backlog, and none builds up at the present rates."""
        ...


class Rest:
    """The periodic messages of one process. ``poll_every_ms``: the time between polls without another reason.

    ``connect`` returns the connection to a broker for requests of the group, or for others. ``messages`` has
    the number of requests of all processes by kind, ``left_out`` that of those that were not sent.
    """

    def __init__(
        self,
        client: Client,
        application: Loop,
        lateness: Spread,
        name: str,
        poll_every_ms: int,
        *,
        network: Network,
        brokers: Peers,
        messages: dict[str, int],
        left_out: dict[str, int],
        connect: Callable[[int, bool], Connection],
        connections: Mapping[tuple[int, bool], Connection],
    ) -> None:
        self._client, self._application, self._lateness = client, application, lateness
        self._name, self._poll_every_ms = name, poll_every_ms
        self._network, self._brokers = network, brokers
        self._messages, self._left_out = messages, left_out
        self._connect, self._connections = connect, connections
        self._done: tuple[int, bool] | None = None
        self._kept: tuple[int, int, Request] | None = None
        self._commits_before = -1

    @property
    def margin_ms(self) -> int:
        """The time in which every message under way has arrived."""
        return LATENCIES * self._network.most_latency_ms

    def is_quiet(self, group: Group, *, works: bool, connected_ms: int, now_ms: int) -> bool:
        """Return whether the client, a member of ``group``, sends nothing but periodic messages from now on.

        ``works``: whether the application works on a partition. ``connected_ms``: the time at which the
        process was last connected to the brokers again, after a cut.
        """
        work, generation = self._client.periodic(), self._client.generation
        if work is None or generation.number != group.generation:
            return False
        if generation.member_id not in group.members or bool(self._client.partitions) is not works:
            return False
        since_ms = self._client.waits_since_ms
        if since_ms is not None and (now_ms - since_ms > self.margin_ms or since_ms <= connected_ms):
            return False
        shortest_ms = min(work.heartbeats.interval_ms, work.commit_interval_ms, work.metadata_age_ms)
        return shortest_ms > self.margin_ms and self._client.agrees_with(self._brokers.metadata())

    def next_fault_ms(self, until_ms: int, now_ms: int) -> int:
        """Return a time before which no message is lost or delivered twice, ``until_ms`` at most."""
        if not self._network.has_faults:
            return until_ms
        work = self._client.periodic()
        if work is None or self._is_under_way:
            return now_ms
        if work.commits and work.commit_due_ms is not None and not self._application.keeps_up:
            return now_ms
        connection = self._connect(work.node, True)
        times = {HEARTBEAT: self._beats(work.heartbeats, until_ms)}
        if work.commits and work.commit_due_ms is not None:
            times[COMMIT] = np.arange(work.commit_due_ms, until_ms, work.commit_interval_ms)
        first_ms = min(until_ms, work.metadata_due_ms)
        for kind, sent_ms in times.items():
            for way in (connection.there, connection.back):
                first = way.sent.get(kind, 0)
                faulty = self._network.faulty(way.dice(kind), first, first + len(sent_ms))
                if faulty.any():
                    first_ms = min(first_ms, int(sent_ms[faulty.argmax()]))
        return max(first_ms, now_ms)

    def leave_out(self, until_ms: int, last_poll_ms: int, *, now_ms: int) -> int | None:
        """Leave out messages before ``until_ms``, if none is under way, and return the time of the last poll.

        Return None if nothing is left out.
        """
        self._keep_alive(now_ms)
        keeps_up = self._application.keeps_up
        if self._done == (until_ms, keeps_up) or self._is_under_way:
            return None
        work = self._client.periodic()
        if work is None:
            return None
        self._done = until_ms, keeps_up
        last_ms = until_ms - 1 - self.margin_ms
        beats = self._beats(work.heartbeats, last_ms)
        if not len(beats):
            return None
        from_ms, interval_ms = int(beats[-1]), work.commit_interval_ms
        due_ms = work.commit_due_ms if work.commits else None
        if keeps_up and due_ms is not None and due_ms <= last_ms:
            from_ms = min(from_ms, last_ms - (last_ms - due_ms) % interval_ms)
        from_ms -= self.margin_ms
        skipped = int(np.searchsorted(beats, from_ms))
        commits = 0
        if keeps_up and due_ms is not None:
            commits = max(0, -(-(from_ms - due_ms) // interval_ms))
        if not (skipped or commits):
            return None
        self._count(work.node, HEARTBEAT, skipped)
        self._kept = int(beats[skipped]), work.node, work.heartbeats.request
        self._commits_before = -1
        self._keep_alive(now_ms)
        self._leave_out_metadata(work.metadata_due_ms, from_ms)
        poll_ms = None
        if keeps_up:
            poll_ms = self._last_poll(last_poll_ms, due_ms, interval_ms, commits, from_ms)
        if due_ms is not None:
            self._count_commits(work.node, commits)
            due_ms += commits * interval_ms
        if not work.commits:
            due_ms = self._due_without_commits(work, last_poll_ms, from_ms)
        self._client.continue_periodic(skipped, int(beats[skipped]), due_ms, poll_ms, now_ms=now_ms)
        return last_poll_ms if poll_ms is None else poll_ms

    # --- inside

    @property
    def _is_under_way(self) -> bool:
        """Whether a request has no response yet, or a message has not arrived."""
        return self._client.waits_since_ms is not None or any(c.under_way for c in self._connections.values())

    def _keep_alive(self, now_ms: int) -> None:
        """Let the session last while heartbeats are left out. A commit that was sent has shortened it."""
        if self._kept is None or now_ms >= self._kept[0]:
            return
        at_ms, node, request = self._kept
        connection = self._connect(node, True)
        commits = connection.there.sent.get(COMMIT, 0)
        if connection.under_way or commits == self._commits_before:
            return
        self._brokers.keep_alive(node, request, client=self._name, at_ms=at_ms)
        self._commits_before = -1 if self._is_under_way else commits

    def _beats(self, heartbeats: Heartbeats, last_ms: int) -> NDArray[np.int64]:
        """Return the times of the heartbeats up to and including ``last_ms``."""
        due_ms, interval_ms, number = heartbeats.due_ms, heartbeats.interval_ms, heartbeats.number
        count = max(0, (last_ms - due_ms) // interval_ms + 1)
        times = np.full(count, due_ms, dtype=np.int64)
        if count:
            late_ms = self._lateness.between(number + 1, number + count)
            times[1:] += np.cumsum(interval_ms + late_ms)
        return times[: np.searchsorted(times, last_ms, side="right")]

    def _leave_out_metadata(self, due_ms: int, from_ms: int) -> None:
        while due_ms < from_ms:
            connection = self._connect(self._client.node_for_metadata(), False)
            self._messages[METADATA] += 1
            self._left_out[METADATA] = self._left_out.get(METADATA, 0) + 1
            received_ms = due_ms
            for way in (connection.there, connection.back):
                received_ms += way.leave_out(METADATA)
            self._client.continue_metadata(received_ms)
            due_ms = self._client.metadata_due_ms

    def _due_without_commits(self, work: Periodic, poll_ms: int, from_ms: int) -> int | None:
        """Return when the next commit is due, after polls that had nothing to commit."""
        due_ms, every_ms = work.commit_due_ms, self._poll_every_ms
        while due_ms is not None:
            poll_ms += max(1, -(-(due_ms - poll_ms) // every_ms)) * every_ms
            if poll_ms >= from_ms:
                break
            due_ms = poll_ms + work.commit_interval_ms
        return due_ms

    def _count_commits(self, node: int, count: int) -> None:
        self._count(node, COMMIT, count)
        self._brokers.leave_out_commits(node, self._name, count)

    def _count(self, node: int, kind: str, count: int) -> None:
        if count:
            self._messages[kind] = self._messages.get(kind, 0) + count
            self._left_out[kind] = self._left_out.get(kind, 0) + count
            connection = self._connect(node, True)
            for way in (connection.there, connection.back):
                way.sent[kind] = way.sent.get(kind, 0) + count

    def _last_poll(
        self, before_ms: int, due_ms: int | None, interval_ms: int, commits: int, now_ms: int
    ) -> int:
        """Return the time of the last poll before now, after commits that were polls."""
        last_ms = before_ms if due_ms is None or not commits else due_ms + (commits - 1) * interval_ms
        return last_ms + max(0, now_ms - 1 - last_ms) // self._poll_every_ms * self._poll_every_ms
