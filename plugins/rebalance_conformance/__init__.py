"""The conformance suite: checks that every assignor must pass.

    from rebalance_conformance import AssignorConformance, check_assignor

`check_assignor` is for programs, `AssignorConformance` and `parametrize_with_checks` are for tests, and
``rebalance-lab check`` is for the shell. A name is imported from its module when it is first used, because
pytest loads the plugin of this package in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_conformance.pytest_plugin import AssignorConformance as AssignorConformance
    from rebalance_conformance.pytest_plugin import parametrize_with_checks as parametrize_with_checks
    from rebalance_conformance.report import Report as Report
    from rebalance_conformance.results import Outcome as Outcome
    from rebalance_conformance.results import Result as Result
    from rebalance_conformance.suite import check_assignor as check_assignor

_NAMES = {
    "pytest_plugin": ("AssignorConformance", "parametrize_with_checks"),
    "report": ("Report",),
    "results": ("Outcome", "Result"),
    "suite": ("check_assignor",),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
