"""How plugins are found, checked and named.

Entry points of the group ``rebalance_lab`` are loaded one by one, this distribution's own first and the
others sorted by distribution and name, so that one that fails takes nothing else down and the order does
not depend on the file system. A name that is taken belongs to who came first; the second is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

import pluggy

from coordinator_core.assigning.assignor import AnyAssignor
from coordinator_core.assigning.loading import load_reference, reference_in
from coordinator_core.errors import InputError, PluginError, RebalanceLabError
from coordinator_core.registry.hookspecs import (
    PROJECT,
    AssignorSpec,
    CommandSpec,
    Hooks,
    MetricSpec,
    ModifierSpec,
    ProviderSpec,
    ScenarioEventSpec,
    Strategy,
    WorkloadSpec,
)
from coordinator_core.registry.host import Host
from coordinator_core.registry.providers.informed import Informed

DISTRIBUTION = "rebalance-lab"

_RECORD_TYPES: dict[str, type] = {
    "assignors": AssignorSpec,
    "modifiers": ModifierSpec,
    "providers": ProviderSpec,
    "metrics": MetricSpec,
    "workloads": WorkloadSpec,
    "scenario_events": ScenarioEventSpec,
    "commands": CommandSpec,
}
_PLAIN_READERS: Mapping[Any, str] = {int: "a whole number", float: "a number"}
"""What these expect, which they do not say themselves."""

Generate: TypeAlias = Callable[[int, int], Mapping[str, Any]]
"""What makes the scenario document of a seed and a row."""

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin that works: where it is from, and the names it contributes by kind."""

    name: str
    distribution: str
    version: str
    module: str
    contributes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FailedPlugin:
    """A plugin that does not, and why."""

    name: str
    distribution: str
    version: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Origin:
    name: str
    distribution: str
    version: str
    module: str


@dataclass
class Registry:
    """Everything that plugins contributed, by kind and name.

    A plugin is taken whole or not at all: one bad record, and none of its records count.
    """

    plugins: tuple[LoadedPlugin, ...] = ()
    failures: tuple[FailedPlugin, ...] = ()
    _records: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in _RECORD_TYPES})
    _owners: dict[tuple[str, str], _Origin] = field(default_factory=dict)
    _manager: pluggy.PluginManager = field(default_factory=lambda: _new_manager())

    def register(
        self, plugin: object, *, name: str = "local", distribution: str = "-", version: str = "-"
    ) -> None:
        """Take in a plugin object: a module, or anything with functions marked by `hookimpl`.

        Raises PluginError, and takes nothing in, when a hook is unknown or fails or a record is unusable.
        """
        origin = _Origin(name, distribution, version, getattr(plugin, "__name__", type(plugin).__name__))
        self._check_hooks(plugin, origin)
        try:
            self._manager.register(plugin, name=f"{distribution}:{name}")
        except (ValueError, pluggy.PluginValidationError) as wrong:
            raise PluginError(name, "registration", str(wrong)) from wrong
        try:
            found = {kind: self._collect(kind, plugin, origin) for kind in _RECORD_TYPES}
        except PluginError:
            self._manager.unregister(plugin)
            raise
        for kind, records in found.items():
            for record in records:
                self._records[kind][record.name] = record
                self._owners[kind, record.name] = origin
        contributes = {kind: tuple(r.name for r in records) for kind, records in found.items() if records}
        self.plugins += (LoadedPlugin(name, distribution, version, origin.module, contributes),)

    def _check_hooks(self, plugin: object, origin: _Origin) -> None:
        marked = [n for n in dir(plugin) if self._manager.parse_hookimpl_opts(plugin, n) is not None]
        unknown = [n for n in marked if n not in _RECORD_TYPES]
        if unknown:
            raise PluginError(origin.name, unknown[0], f"no such hook; there are {', '.join(_RECORD_TYPES)}")
        if not marked:
            raise PluginError(origin.name, "registration", "no function in it is marked with hookimpl")

    def _collect(self, kind: str, plugin: object, origin: _Origin) -> list[Any]:
        caller = getattr(self._manager.hook, kind)
        records: list[Any] = []
        for implementation in caller.get_hookimpls():
            if implementation.plugin is not plugin:
                continue
            try:
                records += list(implementation.function())
            except Exception as wrong:
                raise PluginError(origin.name, kind, f"{type(wrong).__name__}: {wrong}") from wrong
        seen: set[str] = set()
        for record in records:
            self._check_record(kind, record, seen, origin)
            seen.add(record.name)
        return records

    def _check_record(self, kind: str, record: Any, seen: set[str], origin: _Origin) -> None:
        expected: Any = _RECORD_TYPES[kind]
        if not isinstance(record, expected):
            raise PluginError(origin.name, kind, f"found {record!r}, expected {expected.__name__} records")
        if not isinstance(record.name, str) or not _NAME.fullmatch(record.name):
            raise PluginError(
                origin.name, kind, f"the name {record.name!r} is not lower-case words joined by - or _"
            )
        if isinstance(record, AssignorSpec) and not isinstance(record.options, Mapping):
            raise PluginError(origin.name, kind, f"the options of {record.name!r} are no mapping")
        taken = self._owners.get((kind, record.name))
        if record.name in seen:
            raise PluginError(origin.name, kind, f"contributes {record.name!r} twice")
        if taken is not None:
            raise PluginError(
                origin.name,
                kind,
                f"{record.name!r} of {origin.distribution} is already contributed by {taken.distribution}"
                f" (plugin {taken.name!r})",
            )

    def load(self, points: Iterable[EntryPoint]) -> None:
        """Load entry points; one that fails is put down in `failures`."""
        for point in sorted(points, key=_entry_point_order):
            distribution, version = _origin_of(point)
            try:
                self.register(point.load(), name=point.name, distribution=distribution, version=version)
            except PluginError as wrong:
                problem = f"{wrong.hook}: {wrong.problem}"
                self.failures += (FailedPlugin(point.name, distribution, version, problem),)
            except Exception as wrong:  # whatever a stranger's module raises while it is imported
                problem = f"cannot be imported from {point.value!r}: {type(wrong).__name__}: {wrong}"
                self.failures += (FailedPlugin(point.name, distribution, version, problem),)

    def assignors(self) -> Mapping[str, AssignorSpec]:
        """Assignors by name."""
        return self._records["assignors"]

    def modifiers(self) -> Mapping[str, ModifierSpec]:
        """Strategy modifiers by name."""
        return self._records["modifiers"]

    def providers(self) -> Mapping[str, ProviderSpec]:
        """Providers by name."""
        return self._records["providers"]

    def metrics(self) -> Mapping[str, MetricSpec]:
        """Metrics by name, the built-ins first and in the order of the contract."""
        return self._records["metrics"]

    def workloads(self) -> Mapping[str, WorkloadSpec]:
        """Workload generators by name."""
        return self._records["workloads"]

    def generator(self, profile: str, options: Mapping[str, str]) -> Generate:
        """The generator of a workload: a seed and the number of a row give a scenario document.

        Raises InputError for a profile or option that there is not; the generator raises PluginError for
        what the code behind it raises.
        """
        spec = self.workloads().get(profile)
        if spec is None:
            raise _unknown("profile", profile, self.workloads())
        read: dict[str, Any] = {}
        for name, value in options.items():
            if not spec.options:
                raise InputError(f"profile {profile!r}", f"the option {name!r}", "none, for it has none")
            if name not in spec.options:
                raise _unknown(f"option of profile {profile!r}", name, spec.options)
            try:
                read[name] = spec.options[name](value)
            except ValueError as wrong:
                expected = _PLAIN_READERS.get(spec.options[name], str(wrong))
                raise InputError(f"profile {profile!r}: {name}", repr(value), expected) from None
        for name in spec.required:
            if name not in read:
                raise InputError(f"profile {profile!r}", f"no option {name!r}", "one, as NAME=VALUE")

        def generate(seed: int, row: int) -> Mapping[str, Any]:
            try:
                return spec.generate(seed, row, **read)
            except RebalanceLabError:
                raise
            except Exception as wrong:
                raise self.failed("workloads", profile, wrong) from wrong

        return generate

    def scenario_events(self) -> Mapping[str, ScenarioEventSpec]:
        """Kinds of scenario events, by the key they are written under."""
        return self._records["scenario_events"]

    def commands(self) -> Mapping[str, CommandSpec]:
        """Subcommands that plugins add to the command line."""
        return self._records["commands"]

    def assignor(self, text: str) -> AnyAssignor:
        """A fresh assignor, by the name of a strategy: what it consists of, without a provider.

        Raises InputError, listing what there is, or PluginError if it cannot be made.
        """
        return self.build(self.strategy(text, what="assignor"))

    def build(self, strategy: Strategy, host: Host | None = None) -> AnyAssignor:
        """A fresh assignor of a strategy for one consumer; informed by its provider where there is a host.

        Raises PluginError for what an assignor, combinator or provider raises while it is made.
        """
        made = self._made(self._spec(strategy.assignor), strategy)
        for wrap in strategy.wrappers:
            try:
                made = wrap(made, self.assignor)
            except RebalanceLabError:
                raise
            except Exception as wrong:
                raise self.failed("modifiers", strategy.name, wrong) from wrong
        if host is None or not strategy.provider:
            return made
        try:
            provider = self.providers()[strategy.provider].factory(host)
            return Informed(made, provider, strategy.provider)
        except RebalanceLabError:
            raise
        except Exception as wrong:
            raise self.failed("providers", strategy.provider, wrong) from wrong

    def _made(self, spec: AssignorSpec, strategy: Strategy) -> AnyAssignor:
        try:
            made = spec.factory(**strategy.arguments)
        except (Exception, SystemExit) as wrong:
            raise self.failed("assignors", spec.name, wrong) from wrong
        if not isinstance(getattr(made, "name", None), str):
            raise self.failed("assignors", spec.name, TypeError("what it makes has no name"))
        return made

    def failed(self, kind: str, name: str, wrong: BaseException) -> PluginError:
        """What to raise for what the code of a record raised."""
        owner = self._owners.get((kind, name))
        what = f"{kind.removesuffix('s')} {name!r}"
        return PluginError(owner.name if owner else name, what, f"{type(wrong).__name__}: {wrong}")

    def _spec(self, name: str, what: str = "strategy") -> AssignorSpec:
        """The record of an installed assignor, or one made for a reference to a file or module."""
        spec = self.assignors().get(name)
        if spec is not None:
            return spec
        if name != reference_in(name):
            raise _unknown(what, name, self.assignors())
        factory = load_reference(name)
        return AssignorSpec(name, factory, options=getattr(factory, "options", {}))

    def strategy(self, text: str, *, what: str = "strategy") -> Strategy:
        """Parse ``assignor[+option or modifier[=value]]...``; the assignor's own options go first.

        The assignor is an installed name, or ``path/to/file.py:Name`` or ``module:Name``. Raises InputError
        for what there is not; ``what`` is what the text is called there. Raises PluginError for what the
        code behind an option or modifier raises.
        """
        first = text.partition("+")[0]
        assignor = first if first in self.assignors() else reference_in(text) or first
        spec = self._spec(assignor, what)
        strategy = Strategy(name=text, assignor=assignor, provider=spec.provider)
        for part in text[len(assignor) :].split("+")[1:]:
            name, equals, value = part.partition("=")
            try:
                if name in spec.options:
                    arguments = {**strategy.arguments, name: spec.options[name](value)}
                    strategy = strategy.with_changes(arguments=arguments)
                else:
                    strategy = self._modified(strategy, name, value if equals else None, spec)
            except ValueError as wrong:
                expected = _PLAIN_READERS.get(spec.options.get(name), str(wrong))
                raise InputError(f"strategy {text!r}", repr(part), expected) from None
            except RebalanceLabError:
                raise
            except Exception as wrong:
                kind, whose = ("assignors", assignor) if name in spec.options else ("modifiers", name)
                raise self.failed(kind, whose, wrong) from wrong
        if strategy.provider and strategy.provider not in self.providers():
            raise _unknown(f"provider of strategy {text!r}", strategy.provider, self.providers())
        return strategy

    def _modified(self, strategy: Strategy, name: str, value: str | None, spec: AssignorSpec) -> Strategy:
        modifier = self.modifiers().get(name)
        if modifier is None:
            known = {*spec.options, *self.modifiers()}
            raise _unknown(f"modifier of strategy {strategy.name!r}", name, known)
        return modifier.apply(strategy, value)


def _new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    return manager


def _origin_of(point: EntryPoint) -> tuple[str, str]:
    dist = point.dist
    return ("-", "-") if dist is None else (dist.name, dist.version)


def _entry_point_order(point: EntryPoint) -> tuple[bool, str, str]:
    distribution, _ = _origin_of(point)
    return distribution != DISTRIBUTION, distribution, point.name


def _unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return InputError(what, repr(name), f"one of {', '.join(names)}{hint}")


def installed_registry() -> Registry:
    """A new registry of everything installed, for whoever adds to it."""
    registry = Registry()
    registry.load(entry_points(group=PROJECT))
    return registry


@cache
def default_registry() -> Registry:
    """The registry of everything installed; loaded once a process."""
    return installed_registry()
