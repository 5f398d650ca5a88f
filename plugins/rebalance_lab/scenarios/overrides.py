"""The settings and assignors of a single member, in place of those of the scenario and of the strategy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.client.classic.rebalance_protocol import rebalance_protocol
from coordinator_core.client.config import ClientConfig
from coordinator_core.errors import InputError
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.reading.checks import inside
from coordinator_core.reading.settings import configured, settings_of
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.kafka_words import without_words
from rebalance_lab.scenarios.settings import parse_settings


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of a consumer by their dotted names, and the texts of its assignors.

    The first assignor is the preferred one, as in partition.assignment.strategy. Without assignors a member
    has that of the strategy. ``protocol``: "classic" or "consumer", "" for that of the strategy.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    assignors: tuple[str, ...] = ()
    protocol: str = ""


NO_OVERRIDES = Overrides()

_WITH_ASSIGNORS = frozenset({DEFAULT_PROTOCOL, RECONCILE.name})
"""The protocols under which members have assignors of their own."""


def parse_overrides(config: Any, assignors: Iterable[str], where: str) -> Overrides:
    """Return the settings and assignors in the entry of a member at ``where``.

    Raises:
        InputError: if a setting is unknown or not one of consumers, or a value is wrong.
    """
    if config is None and not assignors:
        return NO_OVERRIDES
    at = inside(where, "config")
    words, rest = without_words(config, at)
    settings = parse_settings(rest, at, settings_of(ClientConfig))
    listed = tuple(assignors)
    if listed and words.assignors:
        raise InputError(inside(where, "assignors"), f"assignors beside {words.given[-1]}", "one of the two")
    protocol = words.protocol or ("classic" if words.assignors else "")
    return Overrides(settings, listed or words.assignors, protocol)


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
            if known is not None and known.protocols and not _WITH_ASSIGNORS.intersection(known.protocols):
                found = f"{text!r}, an assignor of the protocol {' or '.join(known.protocols)}"
                raise InputError(inside(where, i), found, f"one of the protocol {DEFAULT_PROTOCOL}")
            assignors.append(self.registry.build(strategy))
        if assignors:
            try:
                rebalance_protocol(assignors)
            except InputError as error:
                raise InputError(where, error.found, error.expected) from None
