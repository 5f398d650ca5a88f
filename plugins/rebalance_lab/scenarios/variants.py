"""Sweeps: strategies with several values of their options, and with several values of settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.families import check_settings, reads
from rebalance_lab.scenarios.settings import grid


@dataclass(frozen=True, slots=True)
class Variant:
    """A strategy with one combination of values of settings, as texts, and the configuration with them.

    A setting with several values that the strategy does not read is left out of ``settings``.
    """

    strategy: str
    settings: Mapping[str, str]
    config: Mapping[str, Any]


def expanded(texts: Iterable[str], where: str = "strategy") -> list[str]:
    """Return each text once for each combination of the alternatives in its braces, without repetitions.

    ``optimal+tolerance={1%,2%}`` is ``optimal+tolerance=1%`` and ``optimal+tolerance=2%``.

    Raises:
        InputError: if a brace has no counterpart, or if an alternative is empty.
    """
    return list(dict.fromkeys(each for text in texts for each in _alternatives(text, where)))


def _alternatives(text: str, where: str) -> list[str]:
    parts: list[list[str]] = []
    rest = text
    while rest:
        plain, opened, rest = rest.partition("{")
        listed, closed, rest = rest.partition("}") if opened else ("", "", "")
        values = [value.strip() for value in listed.split(",")]
        if "}" in plain or bool(opened) != bool(closed) or "{" in listed or (opened and not all(values)):
            raise InputError(where, repr(text), "alternatives in braces, such as +tolerance={1%,2%,5%}")
        parts += [[plain], values] if opened else [[plain]]
    return ["".join(chosen) for chosen in product(*parts)] if parts else [text]


def variants(
    strategies: Sequence[str],
    settings: Iterable[str],
    config: Mapping[str, Any],
    registry: Registry,
    *,
    migrates: bool = False,
) -> list[Variant]:
    """Return each strategy with each combination of the values in texts ``NAME=VALUE,VALUE``.

    ``config`` are the settings of the scenario. ``migrates``: members have one of Kafka's protocols each.

    Raises:
        InputError: if a text or a value is wrong, if no strategy reads a setting of a protocol, or if a
            strategy sets it itself.
    """
    combinations = grid(settings, config, "--set", registry)
    given = combinations[0][0]
    check_settings(given, strategies, "--set: ", registry, migrates=migrates)
    varied = {name for labels, _ in combinations for name in labels if labels[name] != given[name]}
    found: list[Variant] = []
    for text in strategies:
        strategy = registry.strategy(text)
        for setting in given:
            if setting in strategy.settings:
                expected = "a setting that the strategy leaves to the scenario"
                raise InputError(f"--set: {setting}", f"a setting of the strategy {text!r}", expected)
        unread = {setting for setting in varied if not reads(strategy, setting, registry, migrates=migrates)}
        different: dict[tuple[str, ...], Variant] = {}
        for labels, combined in combinations:
            read = {setting: value for setting, value in labels.items() if setting not in unread}
            different.setdefault(tuple(read.values()), Variant(text, read, combined))
        found += different.values()
    return found
