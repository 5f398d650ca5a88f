"""The records of plugins, by kind and name."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from coordinator_core.errors import InputError, PluginError, RebalanceLabError
from coordinator_core.reading.raised import raised
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import (
    AssignorSpec,
    CommandSpec,
    LogFormatSpec,
    MetricSpec,
    ModifierSpec,
    ProtocolSpec,
    ProviderSpec,
    ScenarioEventSpec,
    Strategy,
    WorkloadSpec,
)
from coordinator_core.registry.options import read_option

DISTRIBUTION = "rebalance-lab"

RECORD_TYPES: Mapping[str, type] = {
    "assignors": AssignorSpec,
    "protocols": ProtocolSpec,
    "modifiers": ModifierSpec,
    "providers": ProviderSpec,
    "metrics": MetricSpec,
    "workloads": WorkloadSpec,
    "scenario_events": ScenarioEventSpec,
    "commands": CommandSpec,
    "log_formats": LogFormatSpec,
}
_OF_EVERY_RUN = ("protocols", "modifiers", "providers", "metrics", "scenario_events")
"""Kinds whose records may run in a simulation, whatever its strategy is."""

Generate: TypeAlias = Callable[[int, int], Mapping[str, Any]]
"""Returns the scenario document of a seed and a row."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The plugin that contributed a record."""

    name: str
    distribution: str
    version: str
    module: str

    def __str__(self) -> str:
        return f"plugin {self.name!r}" if self.distribution == "-" else self.distribution

    def qualified(self, name: str) -> str:
        """Return ``distribution:name``, or ``plugin:name`` if the plugin is of no distribution.

        The text chooses a record among several of one name.
        """
        return f"{self.name if self.distribution == '-' else self.distribution}:{name}"


@dataclass
class Catalog:
    """The records of plugins, which is all that texts of strategies need of a `Registry`."""

    _records: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in RECORD_TYPES})
    _aliases: dict[str, str] = field(default_factory=dict)
    _owners: dict[tuple[str, str], Origin] = field(default_factory=dict)
    _ambiguous: dict[str, tuple[Origin, ...]] = field(default_factory=dict)

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
            found = f"{name!r}, which {' and '.join(map(str, origins))} contribute"
            raise InputError(what, found, " or ".join(origin.qualified(name) for origin in origins))
        _, colon, short = name.rpartition(":")
        owner = self._owners.get(("assignors", short)) if colon else None
        return short if owner is not None and owner.qualified(short) == name else name

    def protocols(self) -> Mapping[str, ProtocolSpec]:
        """Return the families of rebalance protocols that a strategy can name, by name."""
        known: Mapping[str, ProtocolSpec] = self._records["protocols"]
        return {name: spec for name, spec in known.items() if not spec.of_scenarios}

    def protocol(self, name: str) -> ProtocolSpec:
        """Return the record of a protocol, also of one that no strategy names.

        Raises:
            InputError: if there is no protocol of that name.
        """
        known: Mapping[str, ProtocolSpec] = self._records["protocols"]
        if name not in known:
            raise unknown_name("protocol", name, self.protocols())
        return known[name]

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

    def log_formats(self) -> Mapping[str, LogFormatSpec]:
        """Return the programs whose logs tell about groups, by name."""
        return self._records["log_formats"]

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
