"""What a plugin may contribute: one hook a kind, each returns records. The built-ins use the same hooks.

A plugin is any module or object with some of these functions, marked with `hookimpl` and named in the
entry-point group ``rebalance_lab``:

    from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl

    @hookimpl
    def assignors():
        return [AssignorSpec("mine", MyAssignor)]
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pluggy

from coordinator_core.assigning.assignor import AnyAssignor
from coordinator_core.registry.host import Host, Provider

PROJECT = "rebalance_lab"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


MakeAssignor: TypeAlias = Callable[[str], AnyAssignor]
"""What makes a fresh assignor of a name: the registry, for combinators that need a second one."""


@dataclass(frozen=True, slots=True)
class AssignorSpec:
    """A named assignor. ``factory`` makes a fresh object for each consumer; ``doc`` is one line.

    ``options`` maps the keyword arguments of the factory that a strategy may set
    (``optimal+max_moves=5%``) to what reads their text, which raises ValueError with what it expected; an
    option without a value is read from "". ``provider`` names who tells the assignor what it needs beyond
    the group, where the strategy does not say.
    """

    name: str
    factory: Callable[..., AnyAssignor]
    options: Mapping[str, Callable[[str], Any]] = field(default_factory=dict, kw_only=True)
    provider: str = field(default="", kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a group rebalances: an assignor, and what the modifiers made of the rest.

    ``name`` is as written (``range+static``); ``static``: members have a group.instance.id;
    ``arguments``: what the assignor's factory is called with; ``wrappers``: combinators around the
    assignor, the innermost first; ``provider``: who informs it, "" for nobody; ``options``: whatever
    further modifiers left for those who read it.
    """

    name: str
    assignor: str
    static: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Callable[[AnyAssignor, MakeAssignor], AnyAssignor], ...] = ()
    provider: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_changes(self, **changes: Any) -> "Strategy":
        """A copy with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class ModifierSpec:
    """``+name`` or ``+name=value`` behind an assignor: ``apply(strategy, value)`` gives the changed strategy.

    ``apply`` raises ValueError, with what was expected, for a value it cannot use.
    """

    name: str
    apply: Callable[[Strategy, str | None], Strategy]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """Who tells an assignor what it needs beyond the group: weights, capacities, racks.

    ``factory(host)`` makes one for each consumer; the host is who runs the consumer: the simulator, or a
    driver of real brokers.
    """

    name: str
    factory: Callable[[Host], Provider]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One figure of a run. ``compute`` takes a `scoring.history.History`; ``better``: 'lower' or 'higher'.

    ``planned``: it can also be told from a trace without messages (`simulation.plan`); ``optional``: many
    scenarios have no such figure, and tables leave it out where no run has.
    """

    name: str
    unit: str
    compute: Callable[[Any], float]
    better: str = "lower"
    planned: bool = field(default=False, kw_only=True)
    optional: bool = field(default=False, kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A generator of scenarios: ``generate(seed, row)`` returns a scenario document.

    A row must depend on its arguments alone: rows are made in any order, by many processes. ``options``
    maps further keyword arguments to what reads their text, which raises ValueError with what it expected;
    ``required`` names those that have no default.
    """

    name: str
    generate: Callable[..., Mapping[str, Any]]
    options: Mapping[str, Callable[[str], Any]] = field(default_factory=dict, kw_only=True)
    required: tuple[str, ...] = field(default=(), kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioEventSpec:
    """A kind of scenario event: the key it is written under, its arguments, and what it does to a run.

    ``parse(value, extra, where)`` checks the document and returns the arguments (InputError when wrong);
    ``apply(run, arguments)`` carries it out on a `simulation.run.Run`.
    """

    name: str
    parse: Callable[[Any, Mapping[str, Any], str], Any]
    apply: Callable[[Any, Any], None]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A subcommand of ``rebalance-lab``: a function with typer's annotations, whose docstring is its help.

    Its module is imported whatever command is called, so that what takes long to import belongs into the
    function.
    """

    name: str
    function: Callable[..., None]
    doc: str = ""


class Hooks:
    """The hooks. Every one may be left out; results of all plugins are put together."""

    @hookspec
    def assignors(self) -> Iterable[AssignorSpec]:  # type: ignore[empty-body]
        """Assignors, by name."""

    @hookspec
    def modifiers(self) -> Iterable[ModifierSpec]:  # type: ignore[empty-body]
        """Modifiers of strategies: the parts behind a plus sign."""

    @hookspec
    def providers(self) -> Iterable[ProviderSpec]:  # type: ignore[empty-body]
        """Providers of weights, capacities and racks."""

    @hookspec
    def metrics(self) -> Iterable[MetricSpec]:  # type: ignore[empty-body]
        """Figures that a comparison shows."""

    @hookspec
    def workloads(self) -> Iterable[WorkloadSpec]:  # type: ignore[empty-body]
        """Generators of scenarios."""

    @hookspec
    def scenario_events(self) -> Iterable[ScenarioEventSpec]:  # type: ignore[empty-body]
        """Kinds of events that a scenario may contain."""

    @hookspec
    def commands(self) -> Iterable[CommandSpec]:  # type: ignore[empty-body]
        """Subcommands of the command line."""
