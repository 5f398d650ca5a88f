"""Fetch sessions (KIP-227): the broker remembers what a client fetches, and reports changes only.

A request with epoch `WITHOUT_SESSION` has no session, and ends the one that it names. A request with epoch
`NEW` lists all partitions and gets a session, if there is a place for one. Every later one has the next
epoch, and lists the partitions that are new, have another offset or are forgotten.
"""

from collections.abc import Iterable
from random import Random
from time import monotonic
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

WITHOUT_SESSION, NEW = -1, 0
"""Epochs of a request."""

NO_SESSION = 0
"""The session id of a request or a response without a session."""

MOST_EPOCH = 2**31 - 1
MOST_SESSIONS = 1_000
"""Kafka's max.incremental.fetch.session.cache.slots."""

MOST_PARTITIONS = 200_000
"""Partitions of all sessions."""

EVICTED_AFTER_SECONDS = 120.0
"""A session that is not used for this time may lose its place to a new one, as in Kafka."""


class Key(NamedTuple):
    """The partition of a session. A topic has a name or, from version 13 of Fetch on, an id."""

    topic: str | None
    topic_id: UUID | None
    partition: int


class Wanted(NamedTuple):
    """What a client wants of a partition, and the leader epochs that it knows, -1 for none (KIP-320).

    ``fetched_epoch``: that of the record before the offset.
    """

    offset: int
    most_bytes: int
    leader_epoch: int = -1
    fetched_epoch: int = -1


class _Reported:
    """The state of a partition that a client has been told."""

    __slots__ = ("end", "start")

    def __init__(self) -> None:
        self.start = self.end = -1


class Session:
    """The partitions that one client fetches, those without new records first."""

    def __init__(self, number: int, wanted: dict[Key, Wanted], *, has_ids: bool) -> None:
        self.number, self.epoch, self.has_ids = number, 1, has_ids
        self.wanted = wanted
        self.used_at = 0.0
        self._reported: dict[Key, _Reported] = {key: _Reported() for key in wanted}

    def change(self, wanted: dict[Key, Wanted], forgotten: Iterable[Key]) -> None:
        """Take over an incremental request, and expect the next epoch."""
        for key, value in wanted.items():
            self.wanted[key] = value
            self._reported.setdefault(key, _Reported())
        for key in forgotten:
            self.wanted.pop(key, None)
            self._reported.pop(key, None)
        self.epoch = self.epoch % MOST_EPOCH + 1

    def report(self, rows: dict[Key, dict[str, Any]], *, is_full: bool) -> dict[Key, dict[str, Any]]:
        """Return the rows of a response that the client does not know, and note that it knows them."""
        changed: dict[Key, dict[str, Any]] = {}
        for key, row in rows.items():
            known = self._reported.get(key)
            if known is None:  # a later request has forgotten it
                continue
            state = row.get("log_start_offset", -1), row["high_watermark"]
            is_error = row["error_code"] is not Wire.none or "diverging_epoch" in row
            if is_full or row["records"] or is_error or state != (known.start, known.end):
                changed[key] = row
            known.start, known.end = (-1, -1) if is_error else state
            if row["records"]:  # the others come first the next time
                self.wanted[key] = self.wanted.pop(key)
        return changed


class Sessions:
    """The fetch sessions of all clients."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or Random()
        self._sessions: dict[int, Session] = {}
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, wanted: dict[Key, Wanted], *, has_ids: bool, now: float | None = None) -> Session | None:
        """Return a new session, None if there is no place for one."""
        now = monotonic() if now is None else now
        if not wanted or not self._has_place(len(wanted), now):
            return None
        number = self._random.randint(1, 2**31 - 1)
        while number in self._sessions:
            number = self._random.randint(1, 2**31 - 1)
        session = self._sessions[number] = Session(number, wanted, has_ids=has_ids)
        session.used_at = now
        self._partitions += len(wanted)
        return session

    def used(
        self,
        number: int,
        epoch: int,
        wanted: dict[Key, Wanted],
        forgotten: Iterable[Key],
        *,
        has_ids: bool,
        now: float | None = None,
    ) -> Session | Wire:
        """Return a session after an incremental request, or the error of the response."""
        session = self._sessions.get(number)
        if session is None:
            return Wire.fetch_session_id_not_found
        if session.epoch != epoch:
            return Wire.invalid_fetch_session_epoch
        if session.has_ids != has_ids:
            return Wire.fetch_session_topic_id_error
        before = len(session.wanted)
        if self._partitions + len(wanted) > MOST_PARTITIONS:
            self.close(number)
            return Wire.fetch_session_id_not_found
        session.change(wanted, forgotten)
        self._partitions += len(session.wanted) - before
        session.used_at = monotonic() if now is None else now
        self._sessions[number] = self._sessions.pop(number)  # the most recent last
        if not session.wanted:
            self.close(number)
        return session

    def close(self, number: int) -> None:
        """Forget a session, if there is one."""
        session = self._sessions.pop(number, None)
        if session is not None:
            self._partitions -= len(session.wanted)

    def has(self, session: Session) -> bool:
        """Return whether the session is still remembered."""
        return self._sessions.get(session.number) is session

    def _has_place(self, partitions: int, now: float) -> bool:
        """Return whether there is a place, perhaps that of the session that was not used for longest."""
        while len(self._sessions) >= MOST_SESSIONS or self._partitions + partitions > MOST_PARTITIONS:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.used_at < EVICTED_AFTER_SECONDS:
                return False
            self.close(oldest.number)
        return True
