"""The built-in modifiers of strategies. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Iterable

from coordinator_core.hookspecs import ModifierSpec, Strategy, hookimpl


def _static(strategy: Strategy, value: str | None) -> Strategy:
    if value is not None:
        raise ValueError("static without a value")
    return strategy.with_changes(static=True)


@hookimpl
def modifiers() -> Iterable[ModifierSpec]:
    """Strategy modifiers of this package."""
    return [
        ModifierSpec(
            "static",
            _static,
            "Static membership: every member has a group.instance.id, its name unless it has one (KIP-345).",
        )
    ]
