"""The checks of the suite in the order of their display."""

from rebalance_conformance import (
    faults,
    ownership,
    purity,
    rounds,
    running,
    sameness,
    speed,
    unusual,
    validity,
)
from rebalance_conformance.search import Check

_MODULES = (validity, sameness, purity, unusual, rounds, ownership, running, faults, speed)

CHECKS = tuple(thing for module in _MODULES for thing in vars(module).values() if isinstance(thing, Check))
"""All checks, in the order of their definition. Their names are unique."""
