"""The choice between eager and cooperative rebalancing (PROTOCOL 9.8)."""

from collections.abc import Sequence

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.errors import InputError
from coordinator_core.model import RebalanceProtocol


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """Return the highest protocol that all assignors support (PITFALLS C-58).

    Raises:
        InputError: if there is no assignor, if two have one name, or if no protocol is common to all.
    """
    names = [a.name for a in assignors]
    if not names:
        raise InputError("partition.assignment.strategy", "no assignor", "at least one")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("partition.assignment.strategy", f"{twice!r} twice", "each assignor once")
    for protocol in (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER):
        if all(protocol in a.supported_protocols for a in assignors):
            return protocol
    found = ", ".join(f"{a.name}: {'/'.join(p.value for p in a.supported_protocols)}" for a in assignors)
    raise InputError("partition.assignment.strategy", found, "assignors with a rebalance protocol in common")
