"""The assignors that the broker runs for groups of the consumer protocol (KIP-848)."""

from collections.abc import Callable

import msgspec

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.errors import InputError
from coordinator_core.registry.kafka_names import REMOTE
from coordinator_core.registry.registry import default_registry


class GroupAssignors(msgspec.Struct, frozen=True, kw_only=True):
    """Names or references of assignors, with commas between them. Members that name none have the first."""

    listed: str = msgspec.field(default="uniform,range", name="group.consumer.assignors")

    def factories(self) -> dict[str, Callable[[], Assignor]]:
        """Return the factory of each assignor, by the name that members use.

        Raises:
            InputError: if there is none, or if one is unknown.
            PluginError: if one cannot be made.
        """
        found: dict[str, Callable[[], Assignor]] = {}
        for text in filter(None, (part.strip() for part in self.listed.split(","))):
            make = _factory(REMOTE.get(text, text))
            found[text if text in REMOTE else make().name] = make
        if not found:
            raise InputError("group.consumer.assignors", repr(self.listed), "one assignor at least")
        return found


def _factory(text: str) -> Callable[[], Assignor]:
    return lambda: default_registry().assignor(text)
