"""Real groups from their logs: what happened, what caused it, what it cost.

    from rebalance_logs import diagnose

    (found,) = diagnose("logs/")
    found.causes[0].cause, found.causes[0].members
    found.trace  # for views and metrics

A name is imported from its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_logs.causes import diagnose as diagnose
    from rebalance_logs.facts import Kind as Kind
    from rebalance_logs.formats import NAME as NAME
    from rebalance_logs.formats import LogFormat as LogFormat
    from rebalance_logs.formats import wording as wording
    from rebalance_logs.incident import as_yaml as as_yaml
    from rebalance_logs.on_spark import incidents_from_logs as incidents_from_logs
    from rebalance_logs.on_spark import rounds_from_logs as rounds_from_logs

_NAMES = {
    "causes": ("diagnose",),
    "facts": ("Kind",),
    "formats": ("NAME", "LogFormat", "wording"),
    "incident": ("as_yaml",),
    "on_spark": ("incidents_from_logs", "rounds_from_logs"),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
