"""Kafka's consumer group protocol, without sockets, threads or clocks: the public names of the core.

    from coordinator_core import Assignor, AssignorSpec, GroupAssignment, hookimpl

They are what an assignor, and what a plugin, is written with. `rebalance_lab` has them too, and what runs,
measures and compares scenarios.

Importing the package imports nothing else. A name is imported from its module when it is first used. The
modules of the core import each other directly, not through this file.
"""

TYPE_CHECKING = False  # without an import of typing, during which Ctrl-C would print a traceback
if TYPE_CHECKING:
    from typing import Any

    from coordinator_core.assigning.assignor import Assignor as Assignor
    from coordinator_core.assigning.combinators import with_budget as with_budget
    from coordinator_core.assigning.combinators import with_cooperative as with_cooperative
    from coordinator_core.assigning.computing import compute_assignment as compute_assignment
    from coordinator_core.assigning.memory import Memory as Memory
    from coordinator_core.assigning.memory import recalled as recalled
    from coordinator_core.errors import AssignmentError as AssignmentError
    from coordinator_core.errors import InputError as InputError
    from coordinator_core.errors import PluginError as PluginError
    from coordinator_core.errors import ProtocolError as ProtocolError
    from coordinator_core.errors import RebalanceLabError as RebalanceLabError
    from coordinator_core.model import Cluster as Cluster
    from coordinator_core.model import GroupAssignment as GroupAssignment
    from coordinator_core.model import GroupSubscription as GroupSubscription
    from coordinator_core.model import Partitions as Partitions
    from coordinator_core.model import RebalanceProtocol as RebalanceProtocol
    from coordinator_core.model import Subscription as Subscription
    from coordinator_core.model import TopicInfo as TopicInfo
    from coordinator_core.model import TopicPartition as TopicPartition
    from coordinator_core.registry.hookspecs import AssignorSpec as AssignorSpec
    from coordinator_core.registry.hookspecs import CommandSpec as CommandSpec
    from coordinator_core.registry.hookspecs import LogFormatSpec as LogFormatSpec
    from coordinator_core.registry.hookspecs import MetricSpec as MetricSpec
    from coordinator_core.registry.hookspecs import ModifierSpec as ModifierSpec
    from coordinator_core.registry.hookspecs import ProtocolSpec as ProtocolSpec
    from coordinator_core.registry.hookspecs import ProviderSpec as ProviderSpec
    from coordinator_core.registry.hookspecs import ScenarioEventSpec as ScenarioEventSpec
    from coordinator_core.registry.hookspecs import WorkloadSpec as WorkloadSpec
    from coordinator_core.registry.hookspecs import hookimpl as hookimpl
    from coordinator_core.registry.registry import Registry as Registry
    from coordinator_core.registry.registry import default_registry as default_registry

_NAMES = {
    "coordinator_core.assigning.assignor": ("Assignor",),
    "coordinator_core.assigning.combinators": ("with_budget", "with_cooperative"),
    "coordinator_core.assigning.computing": ("compute_assignment",),
    "coordinator_core.assigning.memory": ("Memory", "recalled"),
    "coordinator_core.errors": (
        "AssignmentError",
        "InputError",
        "PluginError",
        "ProtocolError",
        "RebalanceLabError",
    ),
    "coordinator_core.model": (
        "Cluster",
        "GroupAssignment",
        "GroupSubscription",
        "Partitions",
        "RebalanceProtocol",
        "Subscription",
        "TopicInfo",
        "TopicPartition",
    ),
    "coordinator_core.registry.hookspecs": (
        "AssignorSpec",
        "CommandSpec",
        "LogFormatSpec",
        "MetricSpec",
        "ModifierSpec",
        "ProtocolSpec",
        "ProviderSpec",
        "ScenarioEventSpec",
        "WorkloadSpec",
        "hookimpl",
    ),
    "coordinator_core.registry.registry": ("Registry", "default_registry"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> "Any":
    """Import a public name from its module."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
