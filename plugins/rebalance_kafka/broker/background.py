"""The embedded broker in a thread, for programs and tests that are not asynchronous."""

import asyncio
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, Self, TypeVar

from coordinator_core.errors import InputError
from rebalance_kafka.broker.embedded import EmbeddedBroker
from rebalance_lab.traces.trace import Trace

_T = TypeVar("_T")
CALL_SECONDS = 30.0


class BackgroundBroker:
    """An `EmbeddedBroker`, with the same arguments, that runs from `start` to `stop` or as a context manager.

    with BackgroundBroker(topics={"orders": 12}) as broker:
        consumer = KafkaConsumer("orders", bootstrap_servers=broker.address, group_id="g")
    """

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._broker = EmbeddedBroker(topics, **options)
        self._thread = Thread(target=self._loop.run_forever, name="kafka-broker", daemon=True)

    def start(self) -> None:
        """Listen. Raises the errors of `EmbeddedBroker.start`."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._broker.start(), self._loop).result(CALL_SECONDS)
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Answer the requests in progress and close. Do nothing the second time."""
        if not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._broker.stop(), self._loop).result(CALL_SECONDS)
        finally:
            self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """The host:port that the broker listens on, for ``bootstrap.servers``."""
        return self._call(lambda: self._broker.address)

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the settings that a client needs beside ``bootstrap.servers``, by Kafka's names.

        They are for confluent-kafka, librdkafka and `Consumer`. ``user`` None: the first user.

        Raises:
            InputError: if there is no such user.
        """
        return self._call(lambda: self._broker.client_settings(user))

    def client_arguments(self, user: str | None = None) -> dict[str, Any]:
        """Return the same as `client_settings`, as arguments of kafka-python and aiokafka."""
        return self._call(lambda: self._broker.client_arguments(user))

    @property
    def topics(self) -> dict[str, int]:
        """The topics, each with the number of its partitions."""
        return self._call(lambda: self._broker.topics)

    @property
    def groups(self) -> list[str]:
        """The ids of the groups."""
        return self._call(lambda: self._broker.groups)

    def trace(self, group_id: str) -> Trace:
        """Return the history of a consumer group.

        Raises:
            InputError: if no member has joined the group.
        """
        return self._call(lambda: self._broker.trace(group_id))

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create topics, or give them more partitions.

        Raises:
            InputError: if a name or a number of partitions is not allowed.
        """
        self._call(lambda: self._broker.create_topics(topics))

    def _call(self, function: Callable[[], _T]) -> _T:
        """Return the result of the function, which is called in the broker's thread."""
        if not self._thread.is_alive():
            found = "one that was stopped" if self._loop.is_closed() else "one that was not started"
            raise InputError("broker", found, "a broker that runs")

        async def call() -> _T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(CALL_SECONDS)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
