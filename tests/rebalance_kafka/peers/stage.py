"""A broker in this process and its peers, which all end with the stage."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rebalance_kafka import BackgroundBroker
from tests.rebalance_kafka.peers.process import Peer
from tests.rebalance_kafka.peers.waiting import Described, Owned, described, stable

GROUP = "workers"
DESCRIBING = "confluent"
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500}


class Stage:
    """A broker with topics, members of one group, and tools."""

    def __init__(self, folder: Path, topics: Mapping[str, int], **settings: Any) -> None:
        self.folder = folder
        self.topics = dict(topics)
        self.everything = frozenset((t, p) for t, count in topics.items() for p in range(count))
        self._settings = SETTINGS | settings
        self._peers: list[Peer] = []
        self._tools: dict[str, Peer] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.broker = self._stack.enter_context(BackgroundBroker(self.topics, settings=self._settings))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        for peer in self._peers:  # pytest shows it when the test has failed
            print(f"--- {peer!r}\n{peer.last_words()}")  # noqa: T201

    def member(self, kind: str, strategy: str, *, name: str | None = None, **options: Any) -> Peer:
        """Start a member of the group, without waiting for its JoinGroup."""
        options = {
            "group": GROUP,
            "topics": sorted(self.topics),
            "strategy": strategy,
            "session_timeout_ms": 10_000,
            "heartbeat_interval_ms": 300,
            **options,
        }
        return self._start(kind, name or f"{kind}-{len(self._peers)}", options)

    def tool(self, kind: str) -> Peer:
        """Return the client of this kind outside of the group."""
        if kind not in self._tools:
            self._tools[kind] = self._start(f"{kind}-tool", f"{kind}-tool", {})
        return self._tools[kind]

    def described(self) -> Described:
        """Return the broker's view of the group."""
        return described(self.tool(DESCRIBING), GROUP)

    def stable(self, members: Sequence[Peer]) -> Owned:
        """Return the partitions of each member as soon as they do not change any more."""
        return stable(members, self.everything, self.described)

    def _start(self, kind: str, name: str, options: Mapping[str, Any]) -> Peer:
        settings = {"bootstrap": self.broker.address, **options}
        if not kind.endswith("-tool"):
            settings["client_id"] = name
        peer = self._stack.enter_context(Peer(kind, name, self.folder, settings))
        self._peers.append(peer)
        return peer
