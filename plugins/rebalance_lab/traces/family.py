"""The protocol family of a trace."""

from coordinator_core.protocol.events import RunStarted
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, ProtocolSpec
from coordinator_core.registry.registry import Registry, default_registry


def family_of(started: RunStarted, registry: Registry | None = None) -> ProtocolSpec:
    """Return the protocol family of a run, from the installed ones unless a registry is given.

    Raises:
        InputError: if the family is not registered.
    """
    return (registry or default_registry()).protocol(started.protocol or DEFAULT_PROTOCOL)
