"""The assignors of consumers: every consumer has an assignor of its own."""

import logging
from collections.abc import Callable
from typing import Any

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.loading import Factory, factory_of
from coordinator_core.errors import InputError, PluginError, RebalanceLabError
from coordinator_core.model import RebalanceProtocol
from coordinator_core.reading.raised import raised
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, AssignorSpec, Strategy
from coordinator_core.registry.host import Host
from coordinator_core.registry.registry import default_registry
from coordinator_core.registry.strategies import informed

LOG = logging.getLogger(__name__)


class Assignors:
    """Makes an assignor for each consumer. ``name`` and ``protocols`` are those of all of them."""

    def __init__(self, assignor: Any, *, host: Callable[[], Host] | None = None) -> None:
        """Make the first assignor.

        Raises:
            InputError: if the name or the host is invalid, if an assignor alone cannot do what a
                strategy's text says (``range+static``), or if only coordinators run the assignor.
            PluginError: if `assignor` is not an assignor.
        """
        self._make = _maker(assignor, host)
        self._first: Assignor | None = self._make()
        self.name = self._first.name
        _check_family(default_registry().assignors().get(self.name))
        self.protocols = frozenset(self._first.supported_protocols)

    def fresh(self) -> Assignor:
        """Return an assignor that no other consumer has."""
        made, self._first = self._first, None
        return self._make() if made is None else made

    def check_protocol(self, protocol: RebalanceProtocol, client: str) -> None:
        """Check that the assignor supports the protocol.

        Raises:
            InputError: if it does not.
        """
        if protocol not in self.protocols:
            found = ", ".join(sorted(p.value for p in self.protocols)) or "none"
            raise InputError(
                f"assignor {self.name!r} in {client}", f"the protocols {found}", f"{protocol.value}"
            )


def _maker(assignor: Any, host: Callable[[], Host] | None) -> Callable[[], Assignor]:
    if isinstance(assignor, str):
        return _by_name(assignor, host)
    name = str(getattr(assignor, "__qualname__", type(assignor).__qualname__))
    declared = ""
    if isinstance(assignor, AssignorSpec):
        _check_family(assignor)
        declared, assignor, name = assignor.provider, assignor.factory, f"assignor {assignor.name!r}"
    factory = factory_of(assignor, name, makers=True)
    provider = declared or factory.provider
    _check_host(name, provider, host)
    make = _once(factory) if factory.shared else _calling(factory)
    if host is None or not provider:
        return make
    registry = default_registry()
    return lambda: informed(make(), provider, registry, host())


def _by_name(text: str, host: Callable[[], Host] | None) -> Callable[[], Assignor]:
    registry = default_registry()
    strategy = registry.strategy(text, what="assignor")
    _check_family(registry.assignors().get(strategy.assignor))
    _check_parts(strategy, host is not None)
    _check_host(repr(text), strategy.provider, host)
    return lambda: registry.build(strategy, None if host is None else host())


def _check_family(spec: AssignorSpec | None) -> None:
    """Check that an assignor works with the protocol of the clients. Others run in coordinators only.

    Raises:
        InputError: if it does not.
    """
    if spec is not None and spec.protocols and DEFAULT_PROTOCOL not in spec.protocols:
        found = f"an assignor of the protocol {' or '.join(spec.protocols)}"
        expected = f"one that works with the protocol {DEFAULT_PROTOCOL!r}, which the client speaks"
        raise InputError(f"assignor {spec.name!r} in a client", found, expected)


def _check_host(name: str, provider: str, host: Callable[[], Host] | None) -> None:
    """Check that a host has a provider. Warn of an assignor that wants weights and gets none.

    Raises:
        InputError: if the assignor has no provider that would use the host.
    """
    if host is not None and not provider:
        expected = "an assignor with a provider: the attribute provider of its class, or +weights=PROVIDER"
        raise InputError("host", f"one for {name}, which has no provider", expected)
    if host is None and provider:
        LOG.warning(
            "assignor %s gets no weights: its provider %r needs a host (host=lambda: MeasuredLoads())",
            name,
            provider,
        )


def _check_parts(strategy: Strategy, hosted: bool) -> None:
    """Check that an assignor alone can do what a strategy's text says.

    Raises:
        InputError: if the text has a part that a setting of the consumer, its client or a host decides.
    """
    where = f"assignor {strategy.name!r} in a client"
    if strategy.static:
        expected = "an assignor without it: set group_instance_id (aiokafka, kafka-python) of each consumer"
        raise InputError(where, "the modifier static, a setting of the consumer", expected)
    if strategy.protocol != DEFAULT_PROTOCOL:
        expected = f"{DEFAULT_PROTOCOL}, which the client speaks"
        raise InputError(where, f"the protocol {strategy.protocol!r}", expected)
    if strategy.delay_ms is not None:
        expected = "an assignor without it: the client does not join again when a delay is over"
        raise InputError(where, "the modifier delay", expected)
    if strategy.settings:
        found = f"settings of the protocol ({', '.join(sorted(strategy.settings))})"
        raise InputError(where, found, "an assignor alone: these are settings of broker and consumer")
    if "+weights=" in strategy.name and strategy.provider and not hosted:
        found = f"the provider {strategy.provider!r} without a host"
        raise InputError(where, found, "the argument host, which knows the loads of the consumer")


def _calling(factory: Factory) -> Callable[[], Assignor]:
    def make() -> Assignor:
        try:
            return factory()
        except RebalanceLabError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(factory.origin, "assignor", raised(error)) from error

    return make


def _once(factory: Factory) -> Callable[[], Assignor]:
    handed = False

    def make() -> Assignor:
        nonlocal handed
        if handed:
            found = f"one object of {type(factory.source).__name__} for several consumers"
            expected = "its class or a function that makes it, for each to have its own"
            raise InputError(f"assignor {factory().name!r}", found, expected)
        handed = True
        return factory()

    return make
