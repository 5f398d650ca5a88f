"""The embedded broker on a thread of its own, for programs and tests that are not asynchronous."""

import asyncio
from collections.abc import Callable, Mapping
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from coordinator_core.errors import InputError
from coordinator_core.traces.trace import Trace
from rebalance_kafka.broker.embedded import EmbeddedBroker

_T = TypeVar("_T")
ANSWER_SECONDS = 30.0


class BackgroundBroker:
    """`EmbeddedBroker` with the same arguments, running from `start` to `stop`, or as a context manager.

    with BackgroundBroker(topics={"orders": 12}) as broker:
        consumer = KafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")
    """

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._broker = EmbeddedBroker(topics, **options)
        self._thread = Thread(target=self._loop.run_forever, name="kafka-broker", daemon=True)

    def start(self) -> None:
        """Listen. Raises what `EmbeddedBroker.start` raises."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._broker.start(), self._loop).result(ANSWER_SECONDS)
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Answer what is under way, close; nothing happens the second time."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._broker.stop(), self._loop).result(ANSWER_SECONDS)
        finally:
            self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """host:port, for ``bootstrap.servers``."""
        return self._asked(lambda: self._broker.address)

    @property
    def topics(self) -> dict[str, int]:
        """Every topic with the number of its partitions."""
        return self._asked(lambda: self._broker.topics)

    @property
    def groups(self) -> list[str]:
        """The groups that there are."""
        return self._asked(lambda: self._broker.groups)

    def trace(self, group_id: str) -> Trace:
        """What has happened to a consumer group. Raises InputError for one that nobody joined."""
        return self._asked(lambda: self._broker.trace(group_id))

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Make topics, or give them more partitions. Raises InputError for what cannot be."""
        self._asked(lambda: self._broker.create_topics(topics))

    def _asked(self, question: Callable[[], _T]) -> _T:
        """The answer, from the broker's own thread."""
        if not self._thread.is_alive():
            found = "one that was stopped" if self._loop.is_closed() else "one that was not started"
            raise InputError("broker", found, "a broker that runs")

        async def answer() -> _T:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(ANSWER_SECONDS)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
