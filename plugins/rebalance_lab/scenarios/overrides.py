"""The settings and assignors of a single member, in place of those of the scenario and of the strategy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.client.classic.rebalance_protocol import rebalance_protocol
from coordinator_core.client.config import ClientConfig
from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside
from coordinator_core.reading.schemas import TEXT, described, listed
from coordinator_core.reading.settings import configured, settings_of
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.settings import parse_settings

ASSIGNORS = listed(TEXT)
OVERRIDE_FIELDS = {
    "config": described(
        "Settings of this consumer in place of the scenario's.", {"$ref": "#/$defs/consumer_settings"}
    ),
    "assignors": described("The assignors of this consumer, the preferred one first.", ASSIGNORS),
}


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of a consumer by their dotted names, and the texts of its assignors.

    The first assignor is the preferred one, as in partition.assignment.strategy. Without assignors a member
    has that of the strategy.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    assignors: tuple[str, ...] = ()


NO_OVERRIDES = Overrides()


def parse_overrides(fields: Mapping[str, Any], where: str) -> Overrides:
    """Return the settings and assignors in the entry of a member.

    Raises:
        InputError: if a setting is unknown or not one of consumers, or a value is wrong.
    """
    if not fields.keys() & set(OVERRIDE_FIELDS):
        return NO_OVERRIDES
    config = parse_settings(fields.get("config"), inside(where, "config"), settings_of(ClientConfig))
    return Overrides(config, parse_assignors(fields.get("assignors", []), inside(where, "assignors")))


def parse_assignors(value: Any, where: str) -> tuple[str, ...]:
    """Return the texts of a list of assignors."""
    listed = doc.sequence(value, where, "assignors, the preferred one first")
    return tuple(doc.text(text, inside(where, i), "an assignor") for i, text in enumerate(listed))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The settings of the scenario and the installed assignors, with which overrides must go together."""

    config: Mapping[str, Any]
    registry: Registry

    def check(self, overrides: Overrides, where: str) -> None:
        """Check the overrides of a member.

        Raises:
            InputError: if settings contradict each other, an assignor is unknown, or a consumer could not
                list the assignors together.
        """
        if overrides.config:
            try:
                configured(ClientConfig, {**self.config, **overrides.config}, group_id="checked")
            except InputError as error:
                at = inside(inside(where, "config"), error.where)
                raise InputError(at, error.found, error.expected) from None
        self.check_assignors(overrides.assignors, inside(where, "assignors"))

    def check_assignors(self, texts: Iterable[str], where: str) -> None:
        """Check assignors that a consumer lists together."""
        assignors = []
        for i, text in enumerate(texts):
            try:
                strategy = self.registry.strategy(text, what="assignor")
            except InputError as error:
                raise InputError(inside(where, i), error.found, error.expected) from None
            if strategy.static or strategy.settings or strategy.protocol != DEFAULT_PROTOCOL:
                found = f"{text!r}, which is more than an assignor"
                raise InputError(inside(where, i), found, "an assignor: the group has one protocol")
            known = self.registry.assignors().get(strategy.assignor)
            if known is not None and known.protocols and DEFAULT_PROTOCOL not in known.protocols:
                found = f"{text!r}, an assignor of the protocol {' or '.join(known.protocols)}"
                raise InputError(inside(where, i), found, f"one of the protocol {DEFAULT_PROTOCOL}")
            assignors.append(self.registry.build(strategy))
        if assignors:
            try:
                rebalance_protocol(assignors)
            except InputError as error:
                raise InputError(where, error.found, error.expected) from None
