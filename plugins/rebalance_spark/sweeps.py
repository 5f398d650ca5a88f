"""Strategies with settings and parameters, which are in their names.

``sticky session.timeout.ms=6s`` is the strategy ``sticky`` with a setting in place of the scenario's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from rebalance_lab.scenarios.variants import Variant

_PARAMETER = re.compile(r"[+ ]([A-Za-z][\w.-]*)=([^+ ]*)")
_SETTINGS = re.compile(r"(?: [a-z][\w.]*=[^ ]+)+$")


def label_of(variant: Variant) -> str:
    """Return the name of a strategy with its settings."""
    return " ".join([variant.strategy, *(f"{name}={text}" for name, text in variant.settings.items())])


def parted(label: str) -> tuple[str, list[str]]:
    """Return the strategy of a name, and its settings as texts ``NAME=VALUE``."""
    found = _SETTINGS.search(label)
    return (label, []) if found is None else (label[: found.start()], found[0].split())


def swept(strategies: Iterable[str]) -> tuple[list[str], Mapping[str, Sequence[str]]]:
    """Return the parameters that have different values under one assignor, and the cells of each strategy.

    The cells are the rest of the name, and the values of these parameters ("-" for none).
    """
    strategies = list(strategies)
    read = {strategy: dict(_PARAMETER.findall(strategy)) for strategy in strategies}
    values: dict[tuple[str, str], set[str]] = {}
    for strategy, parameters in read.items():
        for name, value in parameters.items():
            values.setdefault((_PARAMETER.sub("", strategy), name), set()).add(value)
    names = list(dict.fromkeys(name for (_, name), found in values.items() if len(found) > 1))
    return names, {
        strategy: [_without(strategy, names), *(read[strategy].get(name, "-") for name in names)]
        for strategy in strategies
    }


def _without(strategy: str, names: Sequence[str]) -> str:
    return _PARAMETER.sub(lambda found: "" if found[1] in names else found[0], strategy)
