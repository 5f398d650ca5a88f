"""The timers of a member, and its heartbeats as values: a simulator may leave such messages out."""

from collections.abc import Callable

import msgspec

from coordinator_core.client.core import Core
from coordinator_core.client.requests import NEVER
from coordinator_core.protocol.messages import Request, Response


class Beats:
    """When the next heartbeat is due, and when the member gives up (PROTOCOL 9.9).

    ``due_ms``: the time of the next heartbeat. ``is_waiting``: one has no response yet. ``number``: the
    number of times at which a heartbeat was due so far, the next one included.
    ``expires_ms``: the time at which the session ends without a response, of members that have one.
    ``missed_ms``: the time by which the application has to poll.

    The next heartbeat is due ``interval_ms`` and the lateness of its number later; without ``drifts`` after
    the interval.
    """

    __slots__ = (
        "_backoff_ms",
        "_lateness",
        "_poll_interval_ms",
        "_session_ms",
        "drifts",
        "due_ms",
        "expires_ms",
        "interval_ms",
        "is_waiting",
        "missed_ms",
        "number",
    )

    def __init__(self, core: Core, interval_ms: int, *, drifts: bool = True) -> None:
        config = core.config
        self.interval_ms, self.drifts = interval_ms, drifts
        self._lateness = core.lateness if drifts else None
        self._session_ms, self._poll_interval_ms = config.session_timeout_ms, config.max_poll_interval_ms
        self._backoff_ms = config.retry_backoff_ms
        self.due_ms, self.expires_ms, self.missed_ms = 0, self._session_ms, self._poll_interval_ms
        self.is_waiting = False
        self.number = 0

    def polled(self, *, now_ms: int) -> None:
        """Restart the timer of polls."""
        self.missed_ms = now_ms + self._poll_interval_ms

    def received(self, *, now_ms: int) -> None:
        """Restart the session: the coordinator is present."""
        self.expires_ms = now_ms + self._session_ms

    def joined(self, *, now_ms: int) -> None:
        """Restart all timers."""
        self.received(now_ms=now_ms)
        self.polled(now_ms=now_ms)
        self.begin_interval(now_ms)

    def begin_interval(self, at_ms: int) -> None:
        """Let a heartbeat be due after the interval that begins at a time."""
        self.number += 1
        late_ms = 0 if self._lateness is None else self._lateness(self.number)
        self.due_ms = at_ms + self.interval_ms + late_ms

    def hasten(self, by_ms: int) -> None:
        """Let the next heartbeat be due by a time."""
        self.due_ms = min(self.due_ms, by_ms)

    def back_off(self, *, now_ms: int) -> None:
        """Let the next heartbeat be due after retry.backoff.ms."""
        self.due_ms = now_ms + self._backoff_ms

    def leave_out(self, count: int, due_ms: int, received_ms: int) -> None:
        """Continue as if ``count`` heartbeats had been answered, the last one at ``received_ms``.

        The next is due at ``due_ms``. A negative ``count`` takes back heartbeats.
        """
        self.number += count
        self.due_ms = due_ms
        self.received(now_ms=received_ms)


class Looks(msgspec.Struct, frozen=True):
    """The looks of a member at rest for changes: ``count`` equal requests each, the next at ``due_ms``.

    Each request goes to one of ``nodes``, chosen by a random number: ``number`` is that of the next one, see
    `chosen`. ``leave_out`` is called with the number of looks that are left out and the time of the next.
    """

    request: Request
    due_ms: int
    number: int
    count: int
    interval_ms: int
    nodes: tuple[int, ...]
    leave_out: Callable[[int, int], None]


def chosen(unit: float, count: int) -> int:
    """Return the place that a random number in [0, 1) chooses among ``count``."""
    return int(unit * count)


class Heartbeats(msgspec.Struct, frozen=True):
    """The heartbeats of a member at rest: ``request`` is the next one, ``beats`` has its time.

    ``nodes`` receive them; if there are none, the coordinator does. ``until_ms``: the time from which the
    member does something else.

    ``expects``: returns whether the response of a node to a heartbeat or a look changes nothing. None: a
    coordinator that has the member in its generation answers without an error.
    """

    request: Request
    beats: Beats
    nodes: tuple[int, ...] = ()
    until_ms: int = NEVER
    expects: Callable[[int, Response], bool] | None = None
    looks: Looks | None = None
