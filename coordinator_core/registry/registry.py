"""The registry: plugins are found, checked and loaded here, and their records are kept by name.

Entry points of the group ``rebalance_lab`` are loaded one by one, those of this distribution first and the
others sorted by distribution and name. The order does not depend on the file system, and a plugin that fails
does not affect the others. The first plugin that contributes a name keeps it; a second one is refused.

Two distributions may contribute an assignor of the same name. Neither gets the name, and the text
``distribution:name`` chooses. A name of this distribution stays its own.
"""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pluggy

from coordinator_core.errors import InputError, PluginError, RebalanceLabError
from coordinator_core.reading.raised import raised, traceback_of
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import (
    PROJECT,
    AssignorSpec,
    CommandSpec,
    Hooks,
    MetricSpec,
    ModifierSpec,
    ProtocolSpec,
    ProviderSpec,
    ScenarioEventSpec,
    Strategy,
    WorkloadSpec,
)
from coordinator_core.registry.options import read_option

if TYPE_CHECKING:
    from coordinator_core.assigning.assignor import Assignor
    from coordinator_core.registry.host import Host

DISTRIBUTION = "rebalance-lab"
NO_PLUGIN = "REBALANCE_LAB_NO_PLUGIN"
"""The environment variable with the names of plugins that are switched off. Worker processes inherit it."""

LOG = logging.getLogger(PROJECT)

_RECORD_TYPES: dict[str, type] = {
    "assignors": AssignorSpec,
    "protocols": ProtocolSpec,
    "modifiers": ModifierSpec,
    "providers": ProviderSpec,
    "metrics": MetricSpec,
    "workloads": WorkloadSpec,
    "scenario_events": ScenarioEventSpec,
    "commands": CommandSpec,
}
_OF_EVERY_RUN = ("protocols", "modifiers", "providers", "metrics", "scenario_events")
"""Kinds whose records may run in a simulation, whatever its strategy is."""
_SHARED_NAMES = {"modifiers": "protocols", "protocols": "modifiers"}
"""Kinds whose names must differ: both are parts of a strategy."""

Generate: TypeAlias = Callable[[int, int], Mapping[str, Any]]
"""Returns the scenario document of a seed and a row."""

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin that was loaded: its origin, and the names that it contributes, by kind."""

    name: str
    distribution: str
    version: str
    module: str
    contributes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FailedPlugin:
    """A plugin that was not loaded, and the reason. ``partial``: all but a name that it could not get was.

    ``traceback`` is that of the plugin's own exception, if it raised one.
    """

    name: str
    distribution: str
    version: str
    reason: str
    traceback: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class _Origin:
    name: str
    distribution: str
    version: str
    module: str

    def qualified(self, name: str) -> str:
        """Return ``distribution:name``, or ``plugin:name`` if the plugin is of no distribution."""
        return qualified(name, self.distribution, self.name)


def qualified(name: str, distribution: str, plugin: str) -> str:
    """Return the text that chooses a record among several of one name."""
    return f"{plugin if distribution == '-' else distribution}:{name}"


@dataclass
class Registry:
    """The records of all plugins, by kind and name.

    A plugin is loaded as a whole: if one of its records is unusable, none of its records is kept. An assignor
    whose name another distribution has contributed is kept as ``distribution:name``.
    """

    plugins: tuple[LoadedPlugin, ...] = ()
    failures: tuple[FailedPlugin, ...] = ()
    switched_off: tuple[str, ...] = ()
    _records: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in _RECORD_TYPES})
    _aliases: dict[str, str] = field(default_factory=dict)
    _owners: dict[tuple[str, str], _Origin] = field(default_factory=dict)
    _ambiguous: dict[str, tuple[_Origin, ...]] = field(default_factory=dict)
    _manager: pluggy.PluginManager = field(default_factory=lambda: _new_manager())

    def register(
        self,
        plugin: object,
        *,
        name: str = "local",
        distribution: str = "-",
        version: str = "-",
        kinds: Collection[str] = tuple(_RECORD_TYPES),
    ) -> None:
        """Load a plugin object: a module, or another object with functions marked by `hookimpl`.

        ``kinds`` are the hooks that are called.

        Raises:
            PluginError: if a hook is unknown, a hook fails, or a record is unusable.
        """
        origin = _Origin(name, distribution, version, getattr(plugin, "__name__", type(plugin).__name__))
        self._check_hooks(plugin, origin)
        try:
            self._manager.register(plugin, name=f"{distribution}:{name}")
        except (ValueError, pluggy.PluginValidationError) as error:
            raise PluginError(name, "registration", str(error)) from error
        try:
            found = {
                kind: self._collect(kind, plugin, origin) if kind in kinds else [] for kind in _RECORD_TYPES
            }
            self._check_aliases(found, origin)
        except PluginError:
            self._manager.unregister(plugin)
            raise
        for kind, records in found.items():
            for record in records:
                self._keep(kind, record, origin)
                self._aliases.update(getattr(record, "aliases", {}))
        contributes = {kind: tuple(r.name for r in records) for kind, records in found.items() if records}
        self.plugins += (LoadedPlugin(name, distribution, version, origin.module, contributes),)

    def _keep(self, kind: str, record: Any, origin: _Origin) -> None:
        name = record.name
        if kind == "assignors" and self._is_taken(name):
            name = self._qualify(name, origin)
        self._records[kind][name] = record
        self._owners[kind, name] = origin

    def _is_taken(self, assignor: str) -> bool:
        return assignor in self._ambiguous or ("assignors", assignor) in self._owners

    def _qualify(self, name: str, origin: _Origin) -> str:
        """Return the qualified name of an assignor whose name is taken, and report the conflict."""
        if name not in self._ambiguous:
            first = self._owners["assignors", name]
            if first.distribution != DISTRIBUTION:
                self._ambiguous[name] = (first,)
                del self._owners["assignors", name]
                self._records["assignors"][first.qualified(name)] = self._records["assignors"].pop(name)
                self._owners["assignors", first.qualified(name)] = first
        others = self._ambiguous.get(name, ())
        if others:
            self._ambiguous[name] = (*others, origin)
        by = " and ".join(_named(other) for other in others) or DISTRIBUTION
        reason = f"assignors: {name!r} is also contributed by {by}; {origin.qualified(name)!r} chooses it"
        failed = FailedPlugin(origin.name, origin.distribution, origin.version, reason, partial=True)
        self.failures += (failed,)
        return origin.qualified(name)

    def _check_hooks(self, plugin: object, origin: _Origin) -> None:
        marked = [n for n in dir(plugin) if self._manager.parse_hookimpl_opts(plugin, n) is not None]
        unknown = [n for n in marked if n not in _RECORD_TYPES]
        if unknown:
            reason = f"no such hook; the hooks are {', '.join(_RECORD_TYPES)}"
            raise PluginError(origin.name, unknown[0], reason)
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
            except (Exception, SystemExit) as error:
                raise PluginError(origin.name, kind, raised(error)) from error
        seen: set[str] = set()
        for record in records:
            self._check_record(kind, record, seen, origin)
            seen.add(record.name)
        return records

    def _check_aliases(self, found: Mapping[str, list[Any]], origin: _Origin) -> None:
        """Check that each new assignor and each new alias is the only one of its name."""
        new = [("assignors", r.name) for r in found["assignors"] if not self._is_taken(r.name)]
        new += [(kind, alias) for kind in found for r in found[kind] for alias in getattr(r, "aliases", ())]
        names = [*self._records["assignors"], *self._ambiguous, *self._aliases, *(name for _, name in new)]
        for kind, name in new:
            if names.count(name) > 1:
                raise PluginError(origin.name, kind, f"{name!r} is already an assignor or an alias")

    def _check_record(self, kind: str, record: Any, seen: set[str], origin: _Origin) -> None:
        expected: Any = _RECORD_TYPES[kind]
        if not isinstance(record, expected):
            raise PluginError(origin.name, kind, f"found {record!r}, expected {expected.__name__} records")
        if not isinstance(record.name, str) or not _NAME.fullmatch(record.name):
            raise PluginError(
                origin.name, kind, f"the name {record.name!r} is not lower-case words joined by - or _"
            )
        if isinstance(record, AssignorSpec) and not isinstance(record.options, Mapping):
            raise PluginError(origin.name, kind, f"the options of {record.name!r} are not a mapping")
        if isinstance(record, AssignorSpec):
            own = getattr(record.factory, "name", None)
            if isinstance(own, str) and own not in ("", record.name):
                reason = (
                    f"the AssignorSpec {record.name!r} has the assignor {own!r}, expected one name for both"
                )
                raise PluginError(origin.name, kind, reason)
        taken = self._owners.get((kind, record.name))
        if kind == "assignors":  # the names of other distributions are qualified
            others = [*self._ambiguous.get(record.name, ()), *([taken] if taken else [])]
            taken = next((o for o in others if o.qualified("") == origin.qualified("")), None)
        taken = taken or self._owners.get((_SHARED_NAMES.get(kind, ""), record.name))
        if record.name in seen:
            raise PluginError(origin.name, kind, f"contributes {record.name!r} twice")
        if taken is not None:
            raise PluginError(
                origin.name,
                kind,
                f"{record.name!r} of {origin.distribution} is already contributed by {taken.distribution}"
                f" (plugin {taken.name!r})",
            )

    def load(
        self,
        points: Iterable[EntryPoint],
        *,
        without: Collection[str] = (),
        kinds: Collection[str] = tuple(_RECORD_TYPES),
    ) -> None:
        """Load entry points except those named in ``without``. Those that fail are listed in `failures`.

        ``kinds`` are the hooks that are called.
        """
        for point in sorted(points, key=_entry_point_order):
            distribution, version = _origin_of(point)
            if point.name in without:
                self.switched_off += (point.name,)
                continue
            try:
                loaded = point.load()
                plugin = loaded() if isclass(loaded) else loaded
                self.register(
                    plugin, name=point.name, distribution=distribution, version=version, kinds=kinds
                )
                LOG.debug("plugin %s of %s %s", point.name, distribution, version)
            except (Exception, SystemExit) as error:  # a module may raise anything while it is imported
                reason = f"cannot be imported from {point.value!r}: {raised(error)}"
                if isinstance(error, PluginError):
                    reason = f"{error.hook}: {error.reason}"
                failed = FailedPlugin(point.name, distribution, version, reason, traceback_of(error))
                self.failures += (failed,)

    def assignors(self) -> Mapping[str, AssignorSpec]:
        """Return the assignors by name."""
        return self._records["assignors"]

    def assignor_name(self, name: str, *, what: str = "assignor") -> str:
        """Return the name of an assignor as `assignors` has it: ``distribution:name`` may be written for any.

        A name that is unknown is returned unchanged.

        Raises:
            InputError: if several distributions contribute the name. ``what`` names the kind of text.
        """
        if name in self._ambiguous:
            origins = self._ambiguous[name]
            found = f"{name!r}, which {' and '.join(map(_named, origins))} contribute"
            raise InputError(what, found, " or ".join(origin.qualified(name) for origin in origins))
        _, colon, short = name.rpartition(":")
        owner = self._owners.get(("assignors", short)) if colon else None
        return short if owner is not None and owner.qualified(short) == name else name

    def protocols(self) -> Mapping[str, ProtocolSpec]:
        """Return the families of rebalance protocols by name."""
        return self._records["protocols"]

    def protocol(self, name: str) -> ProtocolSpec:
        """Return the record of a protocol.

        Raises:
            InputError: if there is no protocol of that name.
        """
        if name not in self.protocols():
            raise unknown_name("protocol", name, self.protocols())
        return self.protocols()[name]

    def aliases(self) -> Mapping[str, str]:
        """Return the other names of strategies, and the texts that they stand for."""
        return self._aliases

    def modifiers(self) -> Mapping[str, ModifierSpec]:
        """Return the strategy modifiers by name."""
        return self._records["modifiers"]

    def providers(self) -> Mapping[str, ProviderSpec]:
        """Return the providers by name."""
        return self._records["providers"]

    def metrics(self) -> Mapping[str, MetricSpec]:
        """Return the metrics by name, the built-ins first and in the order of the contract."""
        return self._records["metrics"]

    def workloads(self) -> Mapping[str, WorkloadSpec]:
        """Return the workload generators by name."""
        return self._records["workloads"]

    def generator(self, profile: str, options: Mapping[str, str]) -> Generate:
        """Return the generator of a workload. It makes a scenario document from a seed and a row number.

        Raises:
            InputError: if the profile or an option is unknown, or a required option is missing.
        """
        spec = self.workloads().get(profile)
        if spec is None:
            raise unknown_name("profile", profile, self.workloads())
        read: dict[str, Any] = {}
        for name, value in options.items():
            if not spec.options:
                raise InputError(f"profile {profile!r}", f"the option {name!r}", "no options")
            if name not in spec.options:
                raise unknown_name(f"option of profile {profile!r}", name, spec.options)
            where = f"profile {profile!r}: {name}"
            read[name] = read_option(spec.options[name], value, where=where, found=repr(value))
        for name in spec.required:
            if name not in read:
                raise InputError(f"profile {profile!r}", f"no option {name!r}", "one, as NAME=VALUE")

        def generate(seed: int, row: int) -> Mapping[str, Any]:
            with self.blaming("workloads", profile):
                return spec.generate(seed, row, **read)

        return generate

    def scenario_events(self) -> Mapping[str, ScenarioEventSpec]:
        """Return the kinds of scenario events by their keys in a document."""
        return self._records["scenario_events"]

    def commands(self) -> Mapping[str, CommandSpec]:
        """Return the subcommands that plugins add to the command line."""
        return self._records["commands"]

    def strategy(self, anything: Any, *, what: str = "strategy") -> Strategy:
        """Return the strategy of a text, or of an assignor in any form. See `strategies.strategy_of`."""
        from coordinator_core.registry.strategies import strategy_of

        return strategy_of(anything, self, what=what)

    def build(
        self,
        strategy: Strategy,
        host: "Host | None" = None,
        *,
        now_ms: Callable[[], int] | None = None,
    ) -> "Assignor":
        """Return a fresh assignor for one consumer. See `strategies.build_assignor`."""
        from coordinator_core.registry.strategies import build_assignor

        return build_assignor(strategy, self, host, now_ms=now_ms)

    def assignor(self, text: str) -> "Assignor":
        """Return a fresh assignor from the text of a strategy, without its provider.

        Raises:
            InputError: if a name is unknown.
            PluginError: if the assignor cannot be made.
        """
        return self.build(self.strategy(text, what="assignor"))

    def is_ours(self, strategy: Strategy) -> bool:
        """Whether a run under a strategy executes code of this distribution alone."""
        if strategy.factory is not None:
            return False
        assignor = "assignors", strategy.assignor
        of_runs = {assignor, *(key for key in self._owners if key[0] in _OF_EVERY_RUN)}
        owners = (self._owners.get(key) for key in of_runs)
        others = any(owner is None or owner.distribution != DISTRIBUTION for owner in owners)
        return not others and ":" not in strategy.name  # a file, or the fallback of a budget

    @contextmanager
    def blaming(
        self, kind: str, name: str, *, passing: tuple[type[Exception], ...] = (RebalanceLabError,)
    ) -> Iterator[None]:
        """Name the plugin of a record in the errors of the record's code. Errors in ``passing`` are kept.

        Raises:
            PluginError: for any other exception.
        """
        try:
            yield
        except passing:
            raise
        except (Exception, SystemExit) as error:
            owner = self._owners.get((kind, name))
            what = f"{kind.removesuffix('s')} {name!r}"
            raise PluginError(owner.name if owner else name, what, raised(error)) from error


def _named(origin: _Origin) -> str:
    return f"plugin {origin.name!r}" if origin.distribution == "-" else origin.distribution


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


def installed_registry() -> Registry:
    """Return a new registry of all installed plugins, to which others can be added.

    Plugins that the environment variable ``REBALANCE_LAB_NO_PLUGIN`` names, with commas, are not loaded.
    """
    registry = Registry()
    registry.load(entry_points(group=PROJECT), without=_switched_off())
    return registry


def registry_of_commands(without: Collection[str]) -> Registry:
    """Return a new registry with the subcommands of all plugins alone, for the list of commands.

    The packages ``without`` of this program contribute no subcommands and are not loaded.
    """
    registry = Registry()
    points = [point for point in entry_points(group=PROJECT) if not _is_ours(point, without)]
    registry.load(points, without=_switched_off(), kinds=("commands",))
    return registry


def _is_ours(point: EntryPoint, packages: Collection[str]) -> bool:
    return _origin_of(point)[0] == DISTRIBUTION and point.module.partition(".")[0] in packages


def _switched_off() -> list[str]:
    return [name.strip() for name in os.environ.get(NO_PLUGIN, "").split(",")]


@cache
def default_registry() -> Registry:
    """Return the registry of all installed plugins. It is loaded once per process."""
    return installed_registry()
