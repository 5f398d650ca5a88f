"""When a member reads what has arrived, and acts upon it."""

from collections.abc import Callable

from coordinator_core.client.facade import Client
from coordinator_core.protocol.messages import JoinGroupResponse, Response
from rebalance_lab.scenarios.application import NONE, Span
from rebalance_lab.simulation.process.application import Application
from rebalance_lab.simulation.process.clients import ClientFacts
from rebalance_lab.simulation.process.connections import is_read_between_waits, next_read_ms
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.dice import Dice

LOOKS = 0.5
"""The share of the polls of a client that looks in turns which look."""
WAITED_MS = 50
"""A JoinGroup that takes longer has waited for other members."""


class Lateness:
    """The waits of one process. Each follows from its time, whatever was drawn before.

    ``of_run`` is drawn for the run, see `ClientFacts.join_late_ms`. ``backoff_ms`` is retry.backoff.ms.
    ``in_rounds``: members join in rounds.
    """

    __slots__ = (
        *("_began_ms", "_clock", "_dice", "_every_ms", "_facts", "_idle_ms"),
        *("_looks_in_turns", "_news_ms", "_of_run", "_poll_ms"),
    )

    def __init__(
        self,
        facts: ClientFacts,
        of_run: float,
        dice: Dice,
        clock: VirtualClock,
        *,
        backoff_ms: int,
        in_rounds: bool,
    ) -> None:
        self._facts, self._of_run, self._dice, self._clock = facts, of_run, dice, clock
        self._every_ms = backoff_ms * (facts.reads_between_waits and in_rounds)
        self._idle_ms = NONE if in_rounds else facts.idle_poll_ms
        self._looks_in_turns = facts.looks_in_turns and not in_rounds
        self._poll_ms = -1
        self._began_ms: int | None = None
        self._news_ms: int | None = None

    def read_ms(self, response: Response, sent_ms: int, is_busy: Callable[[], bool]) -> int | None:
        """Return when a response is read whose request was sent at a time; None: at once, or in a poll."""
        now_ms = self._clock.now_ms
        if self._every_ms and is_read_between_waits(response) and is_busy():
            return next_read_ms(sent_ms, now_ms, self._every_ms)
        if not isinstance(response, JoinGroupResponse) or response.error or now_ms - sent_ms <= WAITED_MS:
            return None
        late = self._facts.join_late_ms(self._of_run, leads=response.leader == response.member_id)
        return None if late[1] == 0 or is_busy() else now_ms + self._drawn(late)

    def next_poll_ms(self, application: Application, client: Client, last_poll_ms: int) -> int:
        """Return when the poll without records ends that an application is in when it is to poll again.

        It began at ``last_poll_ms``, and its end is drawn when it is first asked for. -1 if it has records,
        if its client does not wait for that, or if that poll commits now.
        """
        due_ms = client.periodic.offsets.due_ms if client.is_at_rest else None
        commits = due_ms is not None and due_ms <= self._clock.now_ms
        if self._idle_ms is NONE or commits or not application.keeps_up:
            return -1
        if last_poll_ms != self._began_ms:
            self._began_ms, self._poll_ms = last_poll_ms, self._clock.now_ms + self._drawn(self._idle_ms)
        return self._poll_ms

    def overlooks(self, application: Application, client: Client, last_poll_ms: int) -> bool:
        """Note a poll. Return whether it does not look at what the coordinator has assigned: one of two.

        ``last_poll_ms``: the time of the poll before.
        """
        has_news = client.calls_listener and not client.generation.is_lost
        is_first = has_news and self._news_ms != last_poll_ms
        if has_news:
            self._news_ms = self._clock.now_ms
        if not (is_first and self._looks_in_turns) or application.keeps_up:
            return False
        return self._dice.at(self._clock.now_ms) >= LOOKS

    def _drawn(self, span: Span) -> int:
        low, high = span
        return low + int(self._dice.at(self._clock.now_ms) * (high - low))
