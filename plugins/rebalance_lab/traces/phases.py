"""The members that come and go while a round waits, and those that it waited for."""

import re
from collections.abc import Mapping, Sequence

_MOST_UNDER_WAY_MS = 1_000
"""A wait that goes on for longer than this after the last join was ended by something else."""

_OF_STATE = re.compile(r" is [\w-]+$")
"""The cause of a round that the state of a member has begun."""


class Phase:
    """The members that join and leave between two generations."""

    def __init__(self) -> None:
        self.arrived_ms: dict[str, int] = {}
        self.gave_up: set[str] = set()
        self.joined: dict[str, None] = {}
        self.left: dict[str, str] = {}
        self.left_ms: dict[str, int] = {}

    def left_at(self, at_ms: int) -> dict[str, str]:
        """Return the members that left at a time, with the reasons."""
        return {name: why for name, why in self.left.items() if self.left_ms[name] == at_ms}

    def waited_for(self, began_ms: int, until_ms: int, members: Sequence[str]) -> dict[str, str]:
        """Return the last of the members to join in this time, or the last to be removed.

        A member that gives up partitions to join may run a callback first.
        """
        last_ms = max((self.arrived_ms.get(name, 0) for name in members), default=0)
        removed_ms = max(self.left_ms.values(), default=0)
        if removed_ms > max(last_ms, began_ms):
            return self.left_at(removed_ms)
        unexplained_ms = until_ms - last_ms
        if last_ms < began_ms or unexplained_ms > max((until_ms - began_ms) // 2, _MOST_UNDER_WAY_MS):
            gave_up, did = [name for name in members if name in self.gave_up], "to give up partitions"
            return self._last_of(gave_up, did, f"the only one {did}")
        return self._last_of(members, "to join", "the only member")

    def _last_of(self, members: Sequence[str], did: str, only: str) -> dict[str, str]:
        last_ms = max((self.arrived_ms.get(name, 0) for name in members), default=0)
        how = f"the last of {len(members)} {did}" if len(members) > 1 else only
        return {name: how for name in members if self.arrived_ms.get(name) == last_ms}


def seen_first(cause: str, left: Mapping[str, str]) -> str:
    """Return that members have left, if a member had seen a part of it before the last server did."""
    if not _OF_STATE.search(cause):
        return cause
    return "; ".join(f"{name}: {why}" for name, why in left.items())
