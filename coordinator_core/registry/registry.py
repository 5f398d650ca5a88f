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
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import TYPE_CHECKING, Any

import pluggy

from coordinator_core.errors import PluginError
from coordinator_core.reading.raised import raised, traceback_of
from coordinator_core.registry.catalog import DISTRIBUTION as DISTRIBUTION
from coordinator_core.registry.catalog import RECORD_TYPES, Catalog, Origin
from coordinator_core.registry.catalog import Generate as Generate
from coordinator_core.registry.hookspecs import PROJECT, Hooks, Strategy

if TYPE_CHECKING:
    from coordinator_core.assigning.assignor import Assignor
    from coordinator_core.registry.host import Host

NO_PLUGIN = "REBALANCE_LAB_NO_PLUGIN"
"""The environment variable with the names of plugins that are switched off. Worker processes inherit it."""

LOG = logging.getLogger(PROJECT)

_SHARED_NAMES = {"modifiers": "protocols", "protocols": "modifiers"}
"""Kinds whose names must differ: both are parts of a strategy."""

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LoadedPlugin(Origin):
    """A plugin that was loaded, and the names that it contributes, by kind."""

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


@dataclass
class Registry(Catalog):
    """The records of all plugins, by kind and name, and how they are loaded.

    A plugin is loaded as a whole: if one of its records is unusable, none of its records is kept. An assignor
    whose name another distribution has contributed is kept as ``distribution:name``.
    """

    plugins: tuple[LoadedPlugin, ...] = ()
    failures: tuple[FailedPlugin, ...] = ()
    switched_off: tuple[str, ...] = ()
    _manager: pluggy.PluginManager = field(default_factory=lambda: _new_manager())

    def register(
        self,
        plugin: object,
        *,
        name: str = "local",
        distribution: str = "-",
        version: str = "-",
        kinds: Collection[str] = tuple(RECORD_TYPES),
    ) -> None:
        """Load a plugin object: a module, or another object with functions marked by `hookimpl`.

        ``kinds`` are the hooks that are called.

        Raises:
            PluginError: if a hook is unknown, a hook fails, or a record is unusable.
        """
        origin = Origin(name, distribution, version, getattr(plugin, "__name__", type(plugin).__name__))
        self._check_hooks(plugin, origin)
        try:
            self._manager.register(plugin, name=f"{distribution}:{name}")
        except (ValueError, pluggy.PluginValidationError) as error:
            raise PluginError(name, "registration", str(error)) from error
        try:
            found = {
                kind: self._collect(kind, plugin, origin) if kind in kinds else [] for kind in RECORD_TYPES
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

    def _keep(self, kind: str, record: Any, origin: Origin) -> None:
        name = record.name
        if kind == "assignors" and self._is_taken(name):
            name = self._qualify(name, origin)
        self._records[kind][name] = record
        self._owners[kind, name] = origin

    def _is_taken(self, assignor: str) -> bool:
        return assignor in self._ambiguous or ("assignors", assignor) in self._owners

    def _qualify(self, name: str, origin: Origin) -> str:
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
        by = " and ".join(map(str, others)) or DISTRIBUTION
        reason = f"assignors: {name!r} is also contributed by {by}; {origin.qualified(name)!r} chooses it"
        failed = FailedPlugin(origin.name, origin.distribution, origin.version, reason, partial=True)
        self.failures += (failed,)
        return origin.qualified(name)

    def _check_hooks(self, plugin: object, origin: Origin) -> None:
        marked = [n for n in dir(plugin) if self._manager.parse_hookimpl_opts(plugin, n) is not None]
        unknown = [n for n in marked if n not in RECORD_TYPES]
        if unknown:
            reason = f"no such hook; the hooks are {', '.join(RECORD_TYPES)}"
            raise PluginError(origin.name, unknown[0], reason)
        if not marked:
            raise PluginError(origin.name, "registration", "no function in it is marked with hookimpl")

    def _collect(self, kind: str, plugin: object, origin: Origin) -> list[Any]:
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

    def _check_aliases(self, found: Mapping[str, list[Any]], origin: Origin) -> None:
        """Check that each new assignor and each new alias is the only one of its name."""
        new = [("assignors", r.name) for r in found["assignors"] if not self._is_taken(r.name)]
        new += [(kind, alias) for kind in found for r in found[kind] for alias in getattr(r, "aliases", ())]
        names = [*self._records["assignors"], *self._ambiguous, *self._aliases, *(name for _, name in new)]
        for kind, name in new:
            if names.count(name) > 1:
                raise PluginError(origin.name, kind, f"{name!r} is already an assignor or an alias")

    def _check_record(self, kind: str, record: Any, seen: set[str], origin: Origin) -> None:
        reason = self._reason_against(kind, record, seen, origin)
        if reason:
            raise PluginError(origin.name, kind, reason)

    def _reason_against(self, kind: str, record: Any, seen: set[str], origin: Origin) -> str:
        """Return why a record cannot be kept, or ""."""
        expected: Any = RECORD_TYPES[kind]
        if not isinstance(record, expected):
            return f"found {record!r}, expected {expected.__name__} records"
        name = record.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return f"the name {name!r} is not lower-case words joined by - or _"
        if kind == "assignors" and not isinstance(record.options, Mapping):
            return f"the options of {name!r} are not a mapping"
        own = getattr(record.factory, "name", None) if kind == "assignors" else None
        if isinstance(own, str) and own not in ("", name):
            return f"the AssignorSpec {name!r} has the assignor {own!r}, expected one name for both"
        if name in seen:
            return f"contributes {name!r} twice"
        taken = self._owner_of(kind, name, origin)
        if taken is None:
            return ""
        by = f"{taken.distribution} (plugin {taken.name!r})"
        return f"{name!r} of {origin.distribution} is already contributed by {by}"

    def _owner_of(self, kind: str, name: str, origin: Origin) -> Origin | None:
        """Return the plugin that keeps a plugin of ``origin`` from a name."""
        taken = self._owners.get((kind, name))
        if kind == "assignors":  # the names of other distributions are qualified
            others = [*self._ambiguous.get(name, ()), *([taken] if taken else [])]
            taken = next((o for o in others if o.qualified("") == origin.qualified("")), None)
        return taken or self._owners.get((_SHARED_NAMES.get(kind, ""), name))

    def load(
        self,
        points: Iterable[EntryPoint],
        *,
        without: Collection[str] = (),
        kinds: Collection[str] = tuple(RECORD_TYPES),
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
                if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps it in __set_name__
                    raise error.__cause__ from None
                reason = f"cannot be imported from {point.value!r}: {raised(error)}"
                if isinstance(error, PluginError):
                    reason = f"{error.hook}: {error.reason}"
                failed = FailedPlugin(point.name, distribution, version, reason, traceback_of(error))
                self.failures += (failed,)

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
