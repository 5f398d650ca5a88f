"""Where scripts wait for the restart of both brokers, which all of them share."""

import asyncio
from collections.abc import Awaitable, Callable


class Gate:
    """Opens when all scripts that still run have come to it, after ``work``. Then it can be used again."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._running = self._waiting = 0
        self._open = asyncio.Event()

    def enter(self) -> None:
        """Count a script that runs."""
        self._running += 1

    async def leave(self) -> None:
        """Count a script that has ended."""
        self._running -= 1
        await self._work_if_all_wait()

    async def passed(self) -> None:
        """Wait until the work was done."""
        is_open = self._open
        self._waiting += 1
        await self._work_if_all_wait()
        await is_open.wait()

    async def _work_if_all_wait(self) -> None:
        if self._waiting and self._waiting == self._running:
            is_open, self._open, self._waiting = self._open, asyncio.Event(), 0
            await self._work()
            is_open.set()
