"""The text of a strategy, ``assignor+protocol+modifiers``, and the assignor that it describes.

The assignor comes first: an installed name, ``distribution:name``, ``path/to/file.py:Name``, ``module:Name``,
or the name of an assignor of the program that runs, such as a class of a notebook's cell. It is looked up
each time that an assignor is made. The parts after it come in any order: options of the assignor, modifiers,
and the protocol (``classic`` unless it is named).

An alias stands for the beginning of a text: ``eager`` is an alias of ``range+classic``, thus ``eager+static``
means ``range+classic+static``. A strategy keeps the name that was written.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.delaying import DEFAULT_DELAY_MS, with_delay
from coordinator_core.assigning.loading import (
    Factory,
    assignor_from,
    factory_of,
    fresh,
    load_reference,
    names_of_program,
    of_program,
    reference_in,
    reference_to,
)
from coordinator_core.errors import InputError, PluginError
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.catalog import Catalog
from coordinator_core.registry.hookspecs import DELAY_OF_SETTINGS, AssignorSpec, Strategy
from coordinator_core.registry.host import Host
from coordinator_core.registry.kafka_names import MEANT, OF_PROTOCOL, SHORT, STRATEGIES
from coordinator_core.registry.options import read_option
from coordinator_core.registry.providers.informed import Informed

ASSIGNOR = "assignor"
"""The kind of a text of which only the assignor is used."""

_DEFAULT = next(iter(SHORT.values())).partition("+")[0]


def strategy_of(anything: Any, catalog: Catalog, *, what: str = "strategy") -> Strategy:
    """Return a strategy given in any form: its text, itself, or an assignor.

    An assignor is a class, a function of (cluster, group), or an object. Each consumer gets a copy of an
    object. An assignor that the program or a module has under a name is known by that name.

    Raises:
        InputError, PluginError: as those of `parse_strategy`; if `anything` is not an assignor.
    """
    if isinstance(anything, Strategy):
        return anything
    text = anything if isinstance(anything, str) else reference_to(anything)
    if text is not None and (isinstance(anything, str) or text not in _names(catalog)):
        return parse_strategy(text, catalog, what=what)
    spec = _spec_of(factory_of(anything, repr(anything)))
    with catalog.blaming("assignors", spec.name):
        name = spec.factory().name
    return Strategy(name=name, assignor=name, provider=spec.provider, factory=spec.factory)


def parse_strategy(text: str, catalog: Catalog, *, what: str = "strategy") -> Strategy:
    """Return the strategy of a text. ``what`` names the kind of text in errors.

    An "assignor" is not for a group: it may be one that works with other protocols only.

    Raises:
        InputError: if a name is unknown, a value is wrong, or parts do not go together.
        PluginError: if the code of an option or a modifier fails.
    """
    assignor, parts = _split(text, catalog, what)
    if not assignor:
        raise InputError(what, repr(text), f"an assignor in front of it: range{text}")
    spec = _assignor_spec(assignor, catalog, what)
    strategy = Strategy(name=text, assignor=assignor, provider=spec.provider)
    chosen: list[str] = []
    modifiers: list[str] = []
    for part in parts:
        name = part.partition("=")[0]
        if name in spec.options:
            strategy = _with_option(strategy, part, spec, catalog)
        elif name in catalog.protocols():
            chosen.append(name)
            strategy = _with_protocol(strategy, part, chosen)
        else:
            modifiers.append(name)
            strategy = _modified(strategy, part, spec, catalog)
    if what != ASSIGNOR:
        _check_protocol(strategy, spec)
    _check_modifiers(strategy, modifiers, catalog)
    if strategy.delay_ms is not None:
        _check_delay(strategy, catalog)
    if strategy.provider and strategy.provider not in catalog.providers():
        raise unknown_name(f"provider of strategy {text!r}", strategy.provider, catalog.providers())
    return strategy


def build_assignor(
    strategy: Strategy,
    catalog: Catalog,
    host: Host | None = None,
    *,
    now_ms: Callable[[], int] | None = None,
) -> Assignor:
    """Return a fresh assignor for one consumer. With a host, the strategy's provider informs it.

    ``now_ms`` returns the time by which a delay passes; the host's by default. Without both no time passes.

    Raises:
        PluginError: if the code of the assignor, a combinator or the provider fails.
    """
    name, factory = strategy.assignor, strategy.factory
    factory = factory or _assignor_spec(name, catalog, "strategy").factory
    with catalog.blaming("assignors", name, passing=()):
        made = factory(**strategy.arguments)
        if not isinstance(getattr(made, "name", None), str):
            raise TypeError("the object that it returns has no name")
    made = assignor_from(made)
    for wrap in strategy.wrappers:
        with catalog.blaming("modifiers", strategy.name):
            made = assignor_from(
                wrap(
                    made,
                    lambda name: build_assignor(parse_strategy(name, catalog, what=ASSIGNOR), catalog),
                )
            )
    if strategy.delay_ms is not None:
        delay_ms = DEFAULT_DELAY_MS if strategy.delay_ms == DELAY_OF_SETTINGS else strategy.delay_ms
        clock = now_ms or (host.now_ms if host is not None else lambda: 0)
        made = with_delay(made, delay_ms, clock)
    return made if host is None or not strategy.provider else informed(made, strategy.provider, catalog, host)


def informed(assignor: Assignor, provider: str, catalog: Catalog, host: Host) -> Assignor:
    """Return an assignor that a provider informs, which has this host.

    Raises:
        InputError: if there is no provider of that name.
        PluginError: if the code of the provider fails.
    """
    if provider not in catalog.providers():
        raise unknown_name(f"provider of {assignor.name!r}", provider, catalog.providers())
    with catalog.blaming("providers", provider):
        return Informed(assignor, catalog.providers()[provider].factory(host), provider)


def _split(text: str, catalog: Catalog, what: str) -> tuple[str, list[str]]:
    """Return the assignor of a text, and the parts after it."""
    first = text.partition("+")[0]
    if first in catalog.aliases():
        text = catalog.aliases()[first] + text[len(first) :]
        first = text.partition("+")[0]
    elif first in STRATEGIES and first not in catalog.assignors() and of_program(first) is None:
        alias = STRATEGIES[first] if what != ASSIGNOR else STRATEGIES[first].partition("+")[0]
        rest = text[len(first) :]
        if alias.endswith(OF_PROTOCOL):  # uniform+reconcile says it twice
            rest = rest.replace(OF_PROTOCOL, "", 1)
        text = alias + rest
        first = text.partition("+")[0]
    installed = catalog.assignor_name(first, what=what)
    if installed in catalog.assignors():
        return installed, text[len(first) :].split("+")[1:]
    assignor = reference_in(text) or first
    return assignor, text[len(assignor) :].split("+")[1:]


def _assignor_spec(name: str, catalog: Catalog, what: str) -> AssignorSpec:
    """Return the record of an installed assignor, or one for a reference to a file or a module."""
    spec = catalog.assignors().get(name)
    if spec is not None:
        return spec
    if name in catalog.protocols():
        expected = f"an assignor in front of it: range+{name}"
        raise InputError(what, f"{name!r}, a protocol without an assignor", expected)
    factory = load_reference(name) if name == reference_in(name) else of_program(name)
    if factory is None and (meant := MEANT.get(name.lower())):
        raise InputError(what, repr(name), f"the name of a strategy (did you mean {meant!r}?)")
    if factory is None:
        short = SHORT if what != ASSIGNOR and _DEFAULT in catalog.assignors() else ()
        raise unknown_name(what, name, [*_names(catalog), *short, *names_of_program()])
    return _spec_of(factory)


def _spec_of(factory: Factory) -> AssignorSpec:
    return AssignorSpec(factory.origin, fresh(factory), options=factory.options, provider=factory.provider)


def _names(catalog: Catalog) -> list[str]:
    return [*catalog.assignors(), *catalog.aliases()]


def _with_option(strategy: Strategy, part: str, spec: AssignorSpec, catalog: Catalog) -> Strategy:
    name, _, text = part.partition("=")
    with catalog.blaming("assignors", spec.name):
        value = read_option(spec.options[name], text, where=f"strategy {strategy.name!r}", found=repr(part))
    return strategy.with_changes(arguments={**strategy.arguments, name: value})


def _with_protocol(strategy: Strategy, part: str, chosen: list[str]) -> Strategy:
    where = f"strategy {strategy.name!r}"
    if part != chosen[-1]:
        raise InputError(where, repr(part), f"{chosen[-1]} without a value")
    if len(chosen) > 1:
        found = f"the protocols {' and '.join(map(repr, chosen))}"
        found = found if chosen[0] != part else f"the protocol {part!r} twice"
        raise InputError(where, found, "one protocol")
    return strategy.with_changes(protocol=part)


def _modified(strategy: Strategy, part: str, spec: AssignorSpec, catalog: Catalog) -> Strategy:
    name, equals, value = part.partition("=")
    modifier = catalog.modifiers().get(name)
    if modifier is None:
        known = {*spec.options, *catalog.modifiers(), *catalog.protocols()}
        raise unknown_name(f"modifier of strategy {strategy.name!r}", name, known)
    with catalog.blaming("modifiers", name):
        try:
            changed = modifier.apply(strategy, value if equals else None)
        except ValueError as error:
            raise InputError(f"strategy {strategy.name!r}", repr(part), str(error)) from None
    if changed is strategy or (changed == strategy and not equals):
        expected = "a modifier that changes something: without it the strategy is the same"
        raise InputError(f"strategy {strategy.name!r}", repr(part), expected)
    return changed


def _check_protocol(strategy: Strategy, spec: AssignorSpec) -> None:
    """Check that the assignor works with the protocol."""
    if spec.protocols and strategy.protocol not in spec.protocols:
        found = f"the protocol {strategy.protocol!r}"
        texts = " or ".join(f"{spec.name}+{name}" for name in spec.protocols)
        expected = f"one that the assignor {spec.name!r} works with: {texts}"
        raise InputError(f"strategy {strategy.name!r}", found, expected)


def _check_modifiers(strategy: Strategy, modifiers: list[str], catalog: Catalog) -> None:
    """Check that the protocol supports the modifiers."""
    where, protocol = f"strategy {strategy.name!r}", catalog.protocols().get(strategy.protocol)
    if protocol is None:
        return
    of_protocols = {name for name, modifier in catalog.modifiers().items() if modifier.of_protocol}
    for name in modifiers:
        if name in of_protocols - protocol.modifiers:
            supported = ", ".join(sorted(of_protocols & protocol.modifiers)) or "none of its own"
            expected = f"a modifier that the protocol {protocol.name!r} supports ({supported})"
            reason = protocol.meaningless.get(name, catalog.modifiers()[name].elsewhere)
            raise InputError(where, f"{name!r} ({reason})" if reason else repr(name), expected)


def _check_delay(strategy: Strategy, catalog: Catalog) -> None:
    """Check that the assignor is cooperative. One that cannot be made fails where it is needed."""
    try:
        with suppress(PluginError):
            build_assignor(strategy, catalog)
    except InputError as error:
        where = f"strategy {strategy.name!r}: {error.where}"
        raise InputError(where, error.found, error.expected) from None
