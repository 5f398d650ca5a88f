"""The order in which connections handle their requests, so that none keeps the others waiting."""

from asyncio import AbstractEventLoop
from collections import deque
from typing import Protocol

FIRST_SECONDS = 0.0001
"""How long a connection handles requests that have just arrived. Those of many may have arrived at once."""

TURN_SECONDS = 0.00025
"""How long a connection with more requests handles them before the next one has its turn."""

ROUND_SECONDS = 0.001
"""How long connections handle requests before new bytes and new connections are received."""


class Served(Protocol):
    """A connection with requests to handle."""

    def take_turn(self, until: float) -> bool:
        """Handle requests until a time of the event loop. Return whether there are more."""
        ...


class Turns:
    """Gives turns to the connections that have requests.

    Connections whose requests have just arrived come before those that have had a turn and have more
    requests. Each round gives one of the latter a turn, too.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._new: deque[Served] = deque()
        self._busy: deque[Served] = deque()
        self._is_scheduled = False

    def add(self, connection: Served) -> None:
        """Give a connection a turn, soon. It must not wait for one already."""
        self._new.append(connection)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._round)

    def _round(self) -> None:
        self._is_scheduled = False
        now = self._loop.time()
        end = now + ROUND_SECONDS
        try:
            while self._new and now < end:
                now = self._give_turn(self._new, now + FIRST_SECONDS)
            while self._busy:
                now = self._give_turn(self._busy, now + TURN_SECONDS)
                if now >= end:
                    break
        finally:
            if self._new or self._busy:
                self._schedule()

    def _give_turn(self, queue: deque[Served], until: float) -> float:
        """Give the first connection a turn. Return the time."""
        connection = queue.popleft()
        if connection.take_turn(until):
            self._busy.append(connection)
        return self._loop.time()
