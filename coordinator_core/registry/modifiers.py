"""The built-in modifiers of strategies. An entry point of the plugin group ``rebalance_lab``."""

from collections.abc import Callable, Iterable
from contextlib import suppress

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.combinators import Pairs, with_budget, with_cooperative
from coordinator_core.errors import InputError
from coordinator_core.reading.durations import parse_duration
from coordinator_core.registry.hookspecs import (
    DELAY_OF_SETTINGS,
    MakeAssignor,
    ModifierSpec,
    Strategy,
    hookimpl,
)

NO_PROVIDER = "none"
DEFAULT_FALLBACK = "sticky"


def _static(strategy: Strategy, value: str | None) -> Strategy:
    if value is not None:
        raise ValueError("static without a value")
    return strategy.with_changes(static=True)


def _cooperative(strategy: Strategy, value: str | None) -> Strategy:
    if value is not None:
        raise ValueError("cooperative without a value")
    return _wrapped(strategy, lambda inner, make: with_cooperative(inner))  # noqa: ARG005


def _delay(strategy: Strategy, value: str | None) -> Strategy:
    if strategy.delay_ms is not None:
        raise ValueError("one delay")
    if value is None:
        return strategy.with_changes(delay_ms=DELAY_OF_SETTINGS)
    return strategy.with_changes(
        delay_ms=_milliseconds(value, "delay=300s: a duration above 0 with its unit")
    )


def _budget(strategy: Strategy, value: str | None) -> Strategy:
    text, _, fallback = (value or "").partition(":")
    limit = _limit(text)
    fallback = fallback or DEFAULT_FALLBACK

    def wrap(inner: Assignor, make: MakeAssignor) -> Assignor:
        return with_budget(inner, limit, make(fallback))

    return _wrapped(strategy, wrap)


def _limit(text: str) -> float | Pairs:
    expected = "budget=500ms, budget=2s:range or budget=10000pairs, with the fallback behind a colon"
    if text.endswith("pairs"):
        count = text.removesuffix("pairs")
        if not count.isdecimal() or not int(count):
            raise ValueError(expected)
        return Pairs(int(count))
    if text.isdecimal():
        raise ValueError(f"a budget with its unit: {text}s, {text}ms or {text}pairs")
    return _milliseconds(text, expected) / 1_000


def _milliseconds(text: str, expected: str) -> int:
    """Return the milliseconds of a duration above 0 with its unit.

    Raises:
        ValueError: with the expected text, for any other text.
    """
    with suppress(InputError):
        if not text.strip().isdecimal() and (milliseconds := parse_duration(text, "")):
            return milliseconds
    raise ValueError(expected)


def _weights(strategy: Strategy, value: str | None) -> Strategy:
    if not value:
        raise ValueError(f"weights=PROVIDER, or weights={NO_PROVIDER}")
    if value == NO_PROVIDER and not strategy.provider:
        raise ValueError(f"no weights={NO_PROVIDER}: the assignor has no provider")
    return strategy.with_changes(provider="" if value == NO_PROVIDER else value)


def _wrapped(strategy: Strategy, wrap: Callable[[Assignor, MakeAssignor], Assignor]) -> Strategy:
    return strategy.with_changes(wrappers=(*strategy.wrappers, wrap))


@hookimpl
def modifiers() -> Iterable[ModifierSpec]:
    """Return the strategy modifiers of this package."""
    return [
        ModifierSpec(
            "static",
            _static,
            of_protocol=True,
            doc="Static membership: a member's group.instance.id is its name unless it has one (KIP-345).",
        ),
        ModifierSpec(
            "cooperative",
            _cooperative,
            of_protocol=True,
            doc="Makes any assignor cooperative: what changes hands waits until its owner has given it up.",
        ),
        ModifierSpec(
            "delay",
            _delay,
            of_protocol=True,
            doc="delay=300s: partitions of a lost member wait for it, with cooperative assignors (KIP-415).",
        ),
        ModifierSpec(
            "budget",
            _budget,
            "budget=2s:range falls back to range after two seconds, budget=10000pairs above a size; to sticky"
            " where no name is given.",
        ),
        ModifierSpec(
            "weights",
            _weights,
            "weights=PROVIDER informs the assignor; weights=none leaves it to count partitions.",
        ),
    ]
