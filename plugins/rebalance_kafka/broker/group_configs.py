"""Configurations of single groups of the consumer protocol (KIP-848), in place of the broker's."""

from collections.abc import Mapping
from typing import Any

import msgspec

from coordinator_core.coordinator.reconcile.settings import OF_GROUP, ReconcileSettings
from coordinator_core.errors import InputError
from rebalance_kafka.broker.store import Store


class GroupConfigs:
    """The configurations of groups, and the settings that follow from them.

    ``settings`` are those of all groups, with the limits of the others.
    """

    def __init__(self, store: Store, settings: ReconcileSettings) -> None:
        self._store, self._settings = store, settings
        self._configs: dict[str, dict[str, str]] = {}
        self._own: dict[str, dict[str, int]] = {}
        self._read()

    def __getitem__(self, group: str) -> Mapping[str, str]:
        """The configurations of a group."""
        return self._configs.get(group, {})

    @property
    def defaults(self) -> dict[str, str]:
        """The values of groups without a configuration."""
        settings: dict[str, Any] = msgspec.to_builtins(self._settings)
        has = self._settings.has_setting
        return {name: str(settings[of_all]) for name, of_all in OF_GROUP.items() if has(name)}

    def own_settings(self, group: str) -> Mapping[str, int]:
        """Return the settings that a group has for itself, as far as the limits allow them now."""
        return self._own.get(group, {})

    def invalid(self, configs: Mapping[str, str | None]) -> str | None:
        """Return what is wrong with the first invalid configuration, None if all are valid."""
        try:
            self._numbers(configs)
        except InputError as error:
            return str(error)
        return None

    def configure(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the configurations of groups by valid ones."""
        self._store.save_group_configs(configs)
        self._read()

    def _read(self) -> None:
        self._configs = self._store.group_configs()
        self._own = {
            group: self._numbers(own) for group, own in self._configs.items() if self.invalid(own) is None
        }

    def _numbers(self, configs: Mapping[str, str | None]) -> dict[str, int]:
        own = {}
        for name, value in configs.items():
            if name not in OF_GROUP:
                expected = " or ".join(OF_GROUP)
                raise InputError(name[:100], "no configuration of groups", expected)
            if value is None or not value.isdecimal() or len(value) > 18:
                raise InputError(name, repr(value)[:100], "a number of milliseconds")
            own[name] = int(value)
        self._settings.of_group(own)
        return own
