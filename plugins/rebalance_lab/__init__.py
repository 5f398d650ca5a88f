"""The workbench: scenarios are run under strategies, and their traces are measured, compared and explained.

    from rebalance_lab import default_registry, load_scenario, measure, simulate

    registry = default_registry()
    trace = simulate(load_scenario("scenario.yaml"), "sticky", registry)
    print(measure(trace, registry)["moved_partitions"])

All public names of `coordinator_core` are here, too. Importing the package imports nothing else. A name is
imported from its module when it is first used. The modules of the lab import each other directly, not through
this file.
"""

from coordinator_core import _MODULES as _OF_CORE

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
    from rebalance_lab.scenarios.files import load_scenario as load_scenario
    from rebalance_lab.scenarios.scenario import Scenario as Scenario
    from rebalance_lab.simulation.run import simulate as simulate
    from rebalance_lab.traces.entries import Round as Round
    from rebalance_lab.traces.rounds import rounds as rounds
    from rebalance_lab.traces.trace import Trace as Trace
    from rebalance_lab.traces.trace import read_trace as read_trace
    from rebalance_lab.verdicts.measuring import measure as measure

_NAMES = {
    "rebalance_lab.scenarios.files": ("load_scenario",),
    "rebalance_lab.scenarios.scenario": ("Scenario",),
    "rebalance_lab.simulation.run": ("simulate",),
    "rebalance_lab.traces.entries": ("Round",),
    "rebalance_lab.traces.rounds": ("rounds",),
    "rebalance_lab.traces.trace": ("Trace", "read_trace"),
    "rebalance_lab.verdicts.measuring": ("measure",),
}
_MODULES = {**_OF_CORE, **{name: module for module, names in _NAMES.items() for name in names}}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> "Any":
    """Import a public name from its module."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
