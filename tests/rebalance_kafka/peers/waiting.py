"""Waiting for conditions of a group of peers."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from tests.rebalance_kafka.peers.process import Membership, Partition, Peer, partitions

SECONDS = 120.0
BETWEEN = 0.05
A_MOMENT = 0.7
"""Longer than two heartbeats: members that must join again have been notified by then."""

Found = TypeVar("Found")
Owned: TypeAlias = Mapping[Peer, frozenset[Partition]]


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def wait_until(
    condition: Callable[[], Found], seconds: float = SECONDS, what: str = "the condition"
) -> Found:
    """Return the result of the condition as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} does not come true in {seconds} s; it is {found!r}"
        pause(BETWEEN)
    return found


class Described(NamedTuple):
    """The broker's view of a group."""

    state: str
    protocol: str
    owned: Mapping[str, frozenset[Partition]]
    """By member id."""


def described(tool: Peer, group: str) -> Described:
    reported = tool.ask("describe", group=group)
    owned = {each["member_id"]: partitions(each["assignment"]) for each in reported["members"]}
    return Described(reported["state"].upper(), reported["protocol"], owned)


def is_whole(members: Iterable[Membership], wanted: frozenset[Partition]) -> bool:
    """Return whether all members are in one generation and every partition has exactly one owner."""
    reported = list(members)
    generations = {member.generation for member in reported}
    everything = [partition for member in reported for partition in member.owned]
    joined = len(generations) == 1 and (generations.pop() or 0) > 0
    return joined and len(everything) == len(wanted) and frozenset(everything) == wanted


def stable(
    peers: Sequence[Peer],
    wanted: Iterable[Partition],
    describe: Callable[[], Described],
    seconds: float = SECONDS,
) -> Owned:
    """Return the partitions of each member as soon as clients and broker agree for a moment.

    Without the broker's view, a rebalance in which all members wait for one would look like a stable group.
    """
    expected = frozenset(wanted)
    end = time.monotonic() + seconds
    seen, since = (memberships(peers), describe()), time.monotonic()
    while True:
        pause(BETWEEN)
        now = members, group = memberships(peers), describe()
        agreed = group.state == "STABLE" and group.owned == {m.member_id: m.owned for m in members.values()}
        if now != seen or not agreed or not is_whole(members.values(), expected):
            assert time.monotonic() < end, f"not settled in {seconds} s: {now}"
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > A_MOMENT:
            return {peer: member.owned for peer, member in members.items()}


def memberships(peers: Iterable[Peer]) -> dict[Peer, Membership]:
    return {peer: peer.membership() for peer in peers}
