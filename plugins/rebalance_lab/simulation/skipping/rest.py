"""A process at rest: what it sends again and again, and how much of that is left out.

A member of a group at rest sends heartbeats, commits offsets and refreshes metadata. A heartbeat is due an
interval and its lateness after the one before; metadata are due some time after they were received. Commits
are sent in polls: at the time when they are due if the application keeps up with its records, otherwise when
the batch under way ends. A member without a coordinator sends heartbeats to one or several servers, and may
look for changes at regular times. All messages that have certainly been answered before the next cause are
counted and not sent:

- The heartbeats, at once. The times of the last one set the session of the member and that of its client.
- The looks, at once. A look just before the last heartbeat may delay it, so that the one before is the last.
- The polls of an application that keeps up, up to the last commit, at once. Other polls happen at their time,
  one by one, as the ends of batches are drawn, but their commits are not sent either.
- The offsets of the commit that may be the last one are stored when its poll happens.

A commit whose response may delay that to the last heartbeat is sent, and so is the heartbeat.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.client.beats import Beats, Heartbeats, Looks
from coordinator_core.client.facade import Client
from coordinator_core.client.requests import MOST_IN_FLIGHT
from coordinator_core.protocol.messages import Request
from rebalance_lab.simulation.process.application import Application
from rebalance_lab.simulation.process.connections import Connections
from rebalance_lab.simulation.world.dice import Dice, Spread
from rebalance_lab.simulation.world.kinds import kind_of
from rebalance_lab.simulation.world.world import World

COMMIT, METADATA = "OffsetCommit", "Metadata"
"""The kinds of periodic messages, besides heartbeats and looks."""

AT_ONCE = MOST_IN_FLIGHT - 3
"""The requests of a look in flight to one node, besides a heartbeat, a commit and one that waits."""

NEVER_MS = 2**62
"""A time after all others."""

FEW = 16
"""The number of times below which a list is faster than an array."""


def _api(request: Request) -> str:
    return kind_of(type(request)).api


def _follows(looks: Looks, at_ms: int, by_ms: int) -> bool:
    """Return whether a time is less than ``by_ms`` after a look, or at that of a look."""
    return at_ms >= looks.due_ms and (at_ms - looks.due_ms) % looks.interval_ms < max(1, by_ms)


class _Beat(NamedTuple):
    """A heartbeat that was left out: its times, and what was not sent.

    ``heard_ms``: the time of the response to the one before it, 0 if that was sent.
    """

    node: int
    request: Request
    sent_ms: int
    arrived_ms: int
    heard_ms: int


class Rest:
    """The periodic messages of one process.

    ``lateness`` is that of heartbeats, ``choices`` has the random numbers by which looks choose their nodes,
    and ``poll_every_ms`` is the time between polls without another reason.

    ``commit_interval_ms`` is the interval of commits, ``longest_batch_ms`` the longest time from the time at
    which a commit is due to the poll that sends it.
    """

    def __init__(
        self,
        world: World,
        client: Client,
        application: Application,
        lateness: Spread,
        choices: Dice,
        name: str,
        poll_every_ms: int,
        *,
        commit_interval_ms: int,
        longest_batch_ms: float,
        connections: Connections,
    ) -> None:
        self._client, self._application, self._lateness = client, application, lateness
        self._periodic, self._metadata = client.periodic, client.periodic.metadata
        self._choices, self._name, self._poll_every_ms = choices, name, poll_every_ms
        self._commit_interval_ms, self._longest_batch_ms = commit_interval_ms, ceil(longest_batch_ms) + 1
        self._network, self._brokers = world.network, world.brokers
        self._messages, self._left_out = world.messages, world.left_out
        self._margin_ms = world.network.margin_ms
        self._connections = connections
        self._done_ms = self._limit_ms = -1
        self._kept_up = False
        self._beat: _Beat | None = None
        """The last heartbeat that was left out and that a commit may delay."""
        self._beats_together: list[_Beat] = []
        """The heartbeats of that time, to each node."""

    def _margin_of(self, looks: Looks | None) -> int:
        """Return the time in which every message under way has arrived, all those of a look too.

        Of these, some wait until others are answered.
        """
        return self._margin_ms * (1 if looks is None else -(-looks.count // AT_ONCE))

    def is_quiet(self, *, works: bool, connected_ms: int, now_ms: int) -> bool:
        """Return whether the client, a member of the group, sends nothing but periodic messages from now on.

        ``works``: whether the application works on a partition. ``connected_ms``: the time at which the
        process was last connected to the brokers again, after a cut.
        """
        heartbeats = self._periodic.heartbeats()
        if heartbeats is None or self._periodic.node != self._brokers.coordinator_node():
            return False
        if bool(self._client.partitions) is not works or not self._is_expected(heartbeats):
            return False
        since_ms = self._periodic.waits_since_ms
        if since_ms is not None and (now_ms - since_ms > self._margin_ms or since_ms <= connected_ms):
            return False
        looks, beat_ms = heartbeats.looks, heartbeats.beats.interval_ms
        look_ms = beat_ms if looks is None else looks.interval_ms
        shortest_ms = min(beat_ms, look_ms, self._commit_interval_ms, self._metadata.age_ms)
        return shortest_ms > 2 * self._margin_of(looks) and self._metadata.agrees_with(
            self._brokers.metadata()
        )

    def _is_expected(self, heartbeats: Heartbeats) -> bool:
        """Return whether the responses to heartbeats and looks change nothing, as long as nothing happens."""
        expects, name = heartbeats.expects, self._name
        if expects is None:
            generation = self._client.generation
            return self._brokers.has_member(generation.number, generation.member_id)
        requests = [(node, heartbeats.request) for node in heartbeats.nodes]
        if heartbeats.looks is not None:
            requests += [(node, heartbeats.looks.request) for node in heartbeats.looks.nodes]
        for node, request in requests:
            response = self._brokers.answer(node, request, name)
            if response is None or not expects(node, response):
                return False
        return True

    def alive_ms(self, now_ms: int) -> int:
        """Return the time by which the coordinator receives the next heartbeat. It may be under way.

        If it may be lost, it is not known when the next one is sent.
        """
        heartbeats = self._periodic.heartbeats()
        if heartbeats is None:
            return now_ms
        beats = heartbeats.beats
        if beats.is_waiting and (self._network.has_lost or not self._has_messages):
            return NEVER_MS
        return (now_ms if beats.is_waiting else beats.due_ms) + self._margin_ms

    def next_cause_ms(self, until_ms: int, now_ms: int) -> int:
        """Return a time before which no message changes anything, ``until_ms`` at most.

        A message does so if it is lost or delivered twice, or if it is the first request for other metadata.
        """
        if not self._metadata.repeats_request:
            until_ms = min(until_ms, self._metadata.due_ms)
        heartbeats = self._periodic.heartbeats()
        if heartbeats is None:
            return now_ms
        until_ms = min(until_ms, heartbeats.until_ms)
        if not self._network.has_faults:
            return until_ms
        if self._is_under_way:
            return now_ms
        if self._periodic.commits and not self._application.keeps_up:
            return now_ms
        first_ms = min(until_ms, self._metadata.due_ms)
        for node, kind, sent_ms in self._sends(heartbeats, until_ms):
            connection = self._connections.expected(node, True)
            for way in (connection.there, connection.back):
                first = way.sent.get(kind, 0)
                faulty = self._network.faulty(way.dice(kind), first, first + len(sent_ms))
                if faulty.any():
                    first_ms = min(first_ms, int(sent_ms[faulty.argmax()]))
        return max(first_ms, now_ms)

    def _sends(self, heartbeats: Heartbeats, until_ms: int) -> Iterator[tuple[int, str, NDArray[np.int64]]]:
        """Yield nodes, kinds of requests, and the times before ``until_ms`` at which these are sent."""
        looks, coordinator = heartbeats.looks, self._periodic.node
        beats = np.asarray(self._beats(heartbeats.beats, until_ms)[:-1])
        for node in heartbeats.nodes or (coordinator,):
            yield node, _api(heartbeats.request), beats
        due_ms = self._periodic.offsets.due_ms
        if due_ms is not None and self._periodic.commits:
            yield coordinator, COMMIT, np.arange(due_ms, until_ms, self._commit_interval_ms)
        if looks is not None:
            times = np.arange(looks.due_ms, until_ms, looks.interval_ms)
            places = self._places(looks, len(times))
            for place, node in enumerate(looks.nodes):
                yield node, _api(looks.request), times[np.nonzero(places == place)[0]]

    def _places(self, looks: Looks, count: int) -> NDArray[np.int64]:
        """Return the places among the nodes to which the requests of looks are sent: (looks, requests)."""
        unit = self._choices.between(looks.number, looks.number + count * looks.count)
        return (unit * len(looks.nodes)).astype(np.int64).reshape(count, looks.count)

    def leave_out(self, until_ms: int, last_poll_ms: int, *, now_ms: int) -> int | None:
        """Leave out messages before ``until_ms``. Return the time of the last poll.

        Return None if nothing is left out, as a message is under way.
        """
        if self._done_ms == until_ms or self._is_under_way:
            return None
        heartbeats = self._periodic.heartbeats()
        if heartbeats is None:
            return None
        self._done_ms = until_ms
        looks = heartbeats.looks
        margin_ms = self._margin_of(looks)
        last_ms = until_ms - 1 - margin_ms
        beats = self._beats(heartbeats.beats, last_ms)
        if looks is not None:
            while len(beats) > 1 and _follows(looks, int(beats[-2]), margin_ms):
                beats = beats[:-1]
        skipped = len(beats) - 1
        limit_ms = self._limit_ms = min(last_ms, int(beats[-1]) - margin_ms - 1)
        if skipped:
            self._leave_out_beats(heartbeats, beats)
        if looks is not None:
            self._leave_out_looks(looks, limit_ms)
        self._leave_out_metadata(limit_ms)
        commit_ms = self._periodic.offsets.due_ms
        waits = commit_ms is not None and commit_ms < now_ms
        self._kept_up = not waits and self._application.keeps_up
        if self._kept_up:
            last_poll_ms = self._leave_out_polls(last_poll_ms, limit_ms)
        self._client.look_ahead(now_ms=now_ms)
        return last_poll_ms

    # --- between now and a cause

    def is_silent(self, at_ms: int) -> bool:
        """Return whether a poll at a time is left out."""
        return at_ms <= self._limit_ms

    def allows_poll(self, at_ms: int, now_ms: int) -> bool:
        """Return whether a poll at a time, now or later, is left out with its commit, if one is due.

        If a commit is not left out, all messages from now on are sent.
        """
        if at_ms > self._limit_ms:
            return False
        beat = self._beat
        if beat is None or not self._commits(now_ms) or not self._delays(at_ms, beat.sent_ms):
            return True
        self._take_back(beat.heard_ms, now_ms)
        return False

    def polled(self, now_ms: int) -> int:
        """Take note of a poll that is left out, and of its commit. Return the time of the next commit."""
        due_ms, sends = None, bool(self._client.partitions)
        if self._commits(now_ms):
            due_ms = now_ms + self._commit_interval_ms
            if sends:
                self._commit(now_ms)
        self._leave_out_until(now_ms, due_ms)
        if due_ms is not None and sends and due_ms <= self._limit_ms:
            return due_ms
        self._client.look_ahead(now_ms=now_ms)
        return self._client.poll_ms

    def poll_ahead(self, poll_ms: int, next_ms: int) -> tuple[int, int]:
        """Leave out the polls after one at ``poll_ms`` that end batches, and their commits; not the last.

        Return the times of the last one that is left out and of the next one, by default those given.
        """
        every_ms, beat = self._commit_interval_ms, self._beat
        if next_ms != poll_ms + every_ms or every_ms > self._poll_every_ms:
            return poll_ms, next_ms
        before_ms = self._limit_ms
        if beat is not None:
            before_ms = min(before_ms, beat.sent_ms - self._margin_ms)
        count, last_ms = self._application.poll_ahead(every_ms, before_ms)
        if count:
            self._leave_out_commits(count)
            self._leave_out_until(last_ms, last_ms + every_ms)
        return last_ms, last_ms + every_ms

    def look_again(self) -> bool:
        """Return whether more can be left out before the same cause: the application keeps up by now."""
        if self._kept_up or not self._application.keeps_up:
            return False
        self._done_ms = -1
        return True

    # --- inside

    @property
    def _is_under_way(self) -> bool:
        """Whether a request, or a copy of one, has no response yet, or a message has not arrived."""
        return self._periodic.waits_since_ms is not None or self._has_messages

    @property
    def _has_messages(self) -> bool:
        """Whether a message has not arrived, or a broker has not answered yet."""
        is_sent = any(connection.under_way for connection in self._connections.open.values())
        return is_sent or self._brokers.owes(self._name)

    def _commits(self, now_ms: int) -> bool:
        """Return whether a poll commits now."""
        due_ms = self._periodic.offsets.due_ms
        return due_ms is not None and now_ms >= due_ms

    def _delays(self, commit_ms: int, beat_ms: int) -> bool:
        """Return whether the response to a commit may delay that to a heartbeat."""
        return beat_ms - self._margin_ms < commit_ms <= beat_ms

    def _beats(self, beats: Beats, last_ms: int) -> Sequence[int] | NDArray[np.int64]:
        """Return the times of the heartbeats up to and including ``last_ms``, and that of the next one."""
        due_ms, interval_ms, number = beats.due_ms, beats.interval_ms, beats.number
        count = max(0, (last_ms - due_ms) // interval_ms + 1)
        if not beats.drifts:
            return range(due_ms, due_ms + count * interval_ms + 1, interval_ms)
        if count < FEW:
            times = [due_ms]
            while times[-1] <= last_ms:
                times.append(times[-1] + interval_ms + self._lateness.at(number + len(times)))
            return times
        listed = np.full(count + 1, due_ms, dtype=np.int64)
        listed[1:] += np.cumsum(interval_ms + self._lateness.between(number + 1, number + count + 1))
        return listed[: np.searchsorted(listed, last_ms, side="right") + 1]

    def _leave_out_beats(self, heartbeats: Heartbeats, beats: Sequence[int] | NDArray[np.int64]) -> None:
        """Leave out heartbeats, all but the last one. Nothing is under way when one is sent."""
        count, last_ms, next_ms = len(beats) - 1, int(beats[-2]), int(beats[-1])
        request, received_ms, coordinator = heartbeats.request, last_ms, self._periodic.node
        kind = _api(request)
        self._beat, self._beats_together = None, []
        for node in heartbeats.nodes or (coordinator,):
            connection, heard_ms = self._connections.to(node, True), 0
            if count > 1:
                heard_ms = int(beats[-3]) + connection.there.leave_out(kind, count - 1)
                heard_ms += connection.back.leave_out(kind, count - 1)
            arrived_ms = last_ms + connection.there.leave_out(kind)
            received_ms = arrived_ms + connection.back.leave_out(kind)
            connection.there.last_ms, connection.back.last_ms = arrived_ms, received_ms
            self._count(kind, count)
            beat = _Beat(node, request, last_ms, arrived_ms, heard_ms)
            self._beats_together.append(beat)
            if node == coordinator:
                self._beat = beat
            self._keep_alive(beat)
        heartbeats.beats.leave_out(count, next_ms, received_ms)

    def _take_back(self, heard_ms: int, now_ms: int) -> None:
        """Send the last heartbeats after all, and what follows them."""
        for beat in self._beats_together:
            connection, kind = self._connections.to(beat.node, True), _api(beat.request)
            for way in (connection.there, connection.back):
                way.sent[kind] -= 1
                way.last_ms = now_ms
            self._count(kind, -1)
        self._periodic.beats.leave_out(-1, self._beats_together[0].sent_ms, max(heard_ms, now_ms))
        self._client.look_ahead(now_ms=now_ms)
        self._limit_ms, self._beat, self._beats_together = -1, None, []

    def _leave_out_looks(self, looks: Looks, limit_ms: int) -> None:
        """Leave out looks. Note when the requests of the last one arrive."""
        count = max(0, (limit_ms - looks.due_ms) // looks.interval_ms + 1)
        if not count:
            return
        places, kind = self._places(looks, count), _api(looks.request)
        next_ms = looks.due_ms + count * looks.interval_ms
        for place, number in enumerate(np.bincount(places.ravel(), minlength=len(looks.nodes)).tolist()):
            if not number:
                continue
            connection, at_ms = self._connections.to(looks.nodes[place], True), next_ms - looks.interval_ms
            is_last = place in places[-1]
            for way in (connection.there, connection.back):
                at_ms += way.leave_out(kind, number)
                if is_last:
                    way.last_ms = max(way.last_ms, at_ms)
        self._count(kind, count * looks.count)
        looks.leave_out(count, next_ms)

    def _keep_alive(self, beat: "_Beat") -> None:
        self._brokers.keep_alive(beat.node, beat.request, client=self._name, at_ms=beat.arrived_ms)

    def _leave_out_metadata(self, limit_ms: int) -> None:
        due_ms, age_ms, count = self._metadata.due_ms, self._metadata.age_ms, 0
        while due_ms <= limit_ms:
            connection = self._connections.to(self._metadata.any_node(), False)
            due_ms += connection.there.leave_out(METADATA) + connection.back.leave_out(METADATA) + age_ms
            count += 1
        if count:
            self._count(METADATA, count)
            self._metadata.leave_out(due_ms - age_ms)

    def _leave_out_polls(self, last_poll_ms: int, limit_ms: int) -> int:
        """Leave out all polls before the last one that commits, and before one that may delay a heartbeat.

        Return the time of the last one that is left out.
        """
        due_ms, interval_ms = self._periodic.offsets.due_ms, self._commit_interval_ms
        before_ms, every_ms = limit_ms + 1, self._poll_every_ms
        if due_ms is not None and not self._periodic.commits:
            due_ms = self._due_without_commits(due_ms, last_poll_ms, before_ms)
        elif due_ms is not None and due_ms <= limit_ms:
            count = (limit_ms - due_ms) // interval_ms
            beat = self._beat
            if beat is not None:
                before = max(0, (beat.sent_ms - self._margin_ms - due_ms) // interval_ms + 1)
                if self._delays(due_ms + before * interval_ms, beat.sent_ms):
                    count = min(count, before)
            if count:
                due_ms += count * interval_ms
                last_poll_ms = due_ms - interval_ms
                self._leave_out_commits(count)
            before_ms = due_ms
        last_poll_ms += max(0, before_ms - 1 - last_poll_ms) // every_ms * every_ms
        self._leave_out_until(last_poll_ms, due_ms)
        return last_poll_ms

    def _leave_out_until(self, last_poll_ms: int, commit_due_ms: int | None) -> None:
        """Let the client continue as if it had been polled, the last time at ``last_poll_ms``."""
        self._periodic.beats.polled(now_ms=last_poll_ms)
        self._periodic.offsets.leave_out(commit_due_ms)

    def _due_without_commits(self, due_ms: int, poll_ms: int, from_ms: int) -> int:
        """Return when the next commit is due, after polls that had nothing to commit."""
        every_ms = self._poll_every_ms
        while True:
            poll_ms += max(1, -(-(due_ms - poll_ms) // every_ms)) * every_ms
            if poll_ms >= from_ms:
                return due_ms
            due_ms = poll_ms + self._commit_interval_ms

    def _commit(self, now_ms: int) -> None:
        """Leave out a commit. If it may be the last one, its offsets are stored."""
        node, beat = self._periodic.node, self._beat
        self._leave_out_commits(1)
        next_ms = self._application.following_ms
        if next_ms is None:
            next_ms = now_ms + self._commit_interval_ms + self._longest_batch_ms
        if next_ms < self._limit_ms:
            self._application.hand_out()
            return
        arrived_ms = now_ms + self._connections.to(node, True).there.last_latency_ms(COMMIT)
        if beat is not None and beat.sent_ms < now_ms:
            arrived_ms = max(arrived_ms, beat.arrived_ms)
        request = self._periodic.offsets.auto_commit_request(now_ms=now_ms)
        self._brokers.commit(node, request, client=self._name, at_ms=arrived_ms)
        if beat is not None and beat.arrived_ms > arrived_ms:
            self._keep_alive(beat)

    def _leave_out_commits(self, count: int) -> None:
        node = self._periodic.node
        connection = self._connections.to(node, True)
        connection.there.count(COMMIT, count)
        connection.back.count(COMMIT, count)
        self._count(COMMIT, count)
        self._brokers.leave_out_commits(node, self._name, count)

    def _count(self, kind: str, count: int) -> None:
        self._messages[kind] = self._messages.get(kind, 0) + count
        self._left_out[kind] = self._left_out.get(kind, 0) + count
