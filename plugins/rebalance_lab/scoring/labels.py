"""Strategies with settings, which are in their names.

``sticky session.timeout.ms=6s`` is the strategy ``sticky`` with a setting in place of the scenario's.
"""

import re

from rebalance_lab.scenarios.variants import Variant

_SETTINGS = re.compile(r"(?: [a-z][\w.]*=[^ ]+)+$")


def label_of(variant: Variant) -> str:
    """Return the name of a strategy with its settings."""
    return " ".join([variant.strategy, *(f"{name}={text}" for name, text in variant.settings.items())])


def parted(label: str) -> tuple[str, list[str]]:
    """Return the strategy of a name, and its settings as texts ``NAME=VALUE``."""
    found = _SETTINGS.search(label)
    return (label, []) if found is None else (label[: found.start()], found[0].split())
