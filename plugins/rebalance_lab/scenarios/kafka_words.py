"""The settings of Kafka's consumer that choose a protocol and assignors, which are parts of a strategy here.

``group.protocol``, ``group.remote.assignor`` and ``partition.assignment.strategy`` in the ``config`` of a
scenario choose its strategy, and in that of a member what this one speaks and lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.families.migration import PROTOCOLS
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.suggestions import close_to
from coordinator_core.registry.kafka_names import CLASSIC, CONSUMER, strategy_of

PROTOCOL, REMOTE, LISTED = "group.protocol", "group.remote.assignor", "partition.assignment.strategy"
WORDS = (PROTOCOL, REMOTE, LISTED)

_OTHERS = "an assignor of your own is a strategy: -s file.py:Name, or `assignors` of members"


@dataclass(frozen=True, slots=True)
class Words:
    """A ``group.protocol``, "" for Kafka's default, and assignors by their names here.

    ``given`` are the settings that say so.
    """

    protocol: str = ""
    assignors: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def strategy(self) -> str:
        """The strategy that they choose; "" if there are none."""
        return strategy_of(self.protocol, self.assignors) if self.given else ""


NO_WORDS = Words()


def without_words(config: Any, where: str) -> tuple[Words, Any]:
    """Return the words of a ``config``, and the config without them. ``where`` is its place.

    Raises:
        InputError: if a value is wrong, or Kafka's consumer refuses the settings together.
    """
    if not isinstance(config, Mapping) or not any(word in config for word in WORDS):
        return NO_WORDS, config
    given = tuple(word for word in WORDS if config.get(word) is not None)
    protocol = ""
    if PROTOCOL in given:
        protocol = doc.text(config[PROTOCOL], inside(where, PROTOCOL)).lower()
        if protocol not in PROTOCOLS:
            raise unexpected(inside(where, PROTOCOL), config[PROTOCOL], "classic or consumer")
    refused, instead = (LISTED, "classic") if protocol == "consumer" else (REMOTE, "consumer")
    if refused in given:
        found = f"a setting that Kafka's consumer refuses with {PROTOCOL}={protocol or 'classic'}"
        raise InputError(inside(where, refused), found, f"{PROTOCOL}: {instead} beside it")
    assignors: tuple[str, ...] = ()
    if REMOTE in given:
        assignors = (_named(config[REMOTE], inside(where, REMOTE), CONSUMER),)
    if LISTED in given:
        value, at = config[LISTED], inside(where, LISTED)
        listed = value.split(",") if isinstance(value, str) else doc.sequence(value, at, "assignors")
        assignors = tuple(_named(each, at, CLASSIC) for each in listed)
    rest = {name: value for name, value in config.items() if name not in WORDS}
    return Words(protocol, assignors, given), rest


def _named(value: Any, where: str, known: Mapping[str, str]) -> str:
    """Return the name here of an assignor of Kafka's."""
    name = doc.text(value, where).strip()
    if name not in known:
        listed = ", ".join(dict.fromkeys(known.values()) if known is CLASSIC else ("uniform", "range"))
        raise InputError(where, repr(name), f"one of Kafka's ({listed}){close_to(name, known)}; {_OTHERS}")
    return known[name]
