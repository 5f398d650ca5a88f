"""The timers of a script's group, so that no request comes where a millisecond decides."""

from collections.abc import Mapping, Sequence

from tests.beside_kafka import steps as s

MARGIN = 0.4
"""Seconds before and after the end of a timer in which nothing is sent. Both brokers may be that late.

A regular expression is resolved beside the requests: its timer ends at once.
"""

REFRESH = 10.0
"""After how many seconds the coordinator may resolve the regular expressions of a group again."""


class Clocks:
    """The times at which timers of the group may end, from what its members sent and received.

    Not every one is a timer of the broker: a request that is refused restarts none. So each member has two
    times for its session, since its last request and since the last one that was answered without an error.
    """

    def __init__(self, consumer_session: float) -> None:
        self._consumer_session = consumer_session
        self._session: dict[str, float] = {}
        self._rebalance: dict[str, float] = {}
        self._ends: dict[tuple[str, str], float] = {}

    def sent(self, step: s.AnyStep, now: float) -> None:
        """Take a request into account."""
        member = step.member
        if isinstance(step, s.JoinGroup):
            self._session[member], self._rebalance[member] = (
                step.session_ms / 1_000,
                step.rebalance_ms / 1_000,
            )
            self._begin(member, "JoinGroup", now, self._rebalance[member])
        elif isinstance(step, s.ConsumerHeartbeat):
            self._session[member] = self._consumer_session
            if step.rebalance_ms > 0:
                self._rebalance[member] = step.rebalance_ms / 1_000
            if step.regex:
                self._begin("", "resolving", now, 0.0)
            if step.regex and ("", "regex") not in self._ends:
                self._begin("", "regex", now, REFRESH)
        elif isinstance(step, s.LeaveGroup):
            self._begin(member, "LeaveGroup", now, max(self._rebalance.values(), default=0.0))
        self._begin(member, "session since a request", now, self._session.get(member))

    def answered(self, step: s.AnyStep, body: Mapping[str, object], arrivals: Sequence[float]) -> None:
        """Take a response into account, which came from the two brokers at these times."""
        member, error = step.member, body.get("error_code")
        for nth, now in enumerate(arrivals):
            if error == "none":
                self._begin(member, f"session since a response {nth}", now, self._session.get(member))
                if isinstance(step, s.JoinGroup) or body.get("assignment"):
                    self._begin(member, f"{type(step).__name__} {nth}", now, self._rebalance.get(member))
            elif error == "rebalance_in_progress" and self._ends.get((member, f"told {nth}"), 0.0) < now:
                self._begin(member, f"told {nth}", now, self._rebalance.get(member))

    def _begin(self, member: str, timer: str, now: float, seconds: float | None) -> None:
        if seconds is not None:
            self._ends[member, timer] = now + seconds

    def wait(self, now: float) -> float:
        """Return for how many seconds nothing may be sent.

        A member that is removed when a timer ends begins a rebalance, which has a timer, too.
        """
        free, rebalance = now, max(self._rebalance.values(), default=0.0)
        ends = self._ends.values()
        for end in sorted({*ends, *(end + rebalance for end in ends)}):
            if end - MARGIN < free < end + MARGIN:
                free = end + MARGIN
        return free - now
