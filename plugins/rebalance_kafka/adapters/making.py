"""Where a consumer's assignor comes from: every consumer has one of its own."""

from collections.abc import Callable
from inspect import isclass, isroutine, signature
from typing import Any

from coordinator_core.assigning.assignor import AnyAssignor, supported_protocols
from coordinator_core.assigning.loading import as_factory
from coordinator_core.errors import InputError, PluginError, RebalanceLabError
from coordinator_core.model import RebalanceProtocol
from coordinator_core.registry.hookspecs import AssignorSpec
from coordinator_core.registry.host import Host
from coordinator_core.registry.registry import default_registry


class Assignors:
    """Makes a fresh assignor for each consumer. ``name`` and ``protocols`` are those of all of them."""

    def __init__(self, assignor: Any, *, host: Callable[[], Host] | None = None) -> None:
        """Raises InputError or PluginError where nothing can be made of it."""
        self._make = _maker(assignor, host)
        self._first: AnyAssignor | None = self._make()
        self.name = self._first.name
        self.protocols = frozenset(supported_protocols(self._first))

    def fresh(self) -> AnyAssignor:
        """An assignor that no other consumer has."""
        made, self._first = self._first, None
        return self._make() if made is None else made

    def check_protocol(self, protocol: RebalanceProtocol, client: str) -> None:
        """Raises InputError for a protocol that the assignor does not support."""
        if protocol not in self.protocols:
            found = ", ".join(sorted(p.value for p in self.protocols)) or "none"
            raise InputError(
                f"assignor {self.name!r} in {client}", f"the protocols {found}", f"{protocol.value}"
            )


def _maker(assignor: Any, host: Callable[[], Host] | None) -> Callable[[], AnyAssignor]:
    if isinstance(assignor, str):
        return _by_name(assignor, host)
    if host is not None:
        raise InputError("host", f"one for {_called(assignor)}", "a strategy's name, which has a provider")
    if isinstance(assignor, AssignorSpec):
        return _calling(assignor.factory, f"assignor {assignor.name!r}")
    if not isclass(assignor) and _assigns(assignor):
        return _once(as_factory(assignor, _called(assignor)), assignor)
    if not isclass(assignor) and callable(assignor) and _takes_nothing(assignor):
        return _calling(assignor, _called(assignor))
    return _calling(as_factory(assignor, _called(assignor)), _called(assignor))


def _by_name(text: str, host: Callable[[], Host] | None) -> Callable[[], AnyAssignor]:
    registry = default_registry()
    strategy = registry.strategy(text, what="assignor")
    return lambda: registry.build(strategy, None if host is None else host())


def _calling(factory: Callable[[], Any], what: str) -> Callable[[], AnyAssignor]:
    def make() -> AnyAssignor:
        try:
            made = factory()
        except RebalanceLabError:
            raise
        except (Exception, SystemExit) as wrong:
            raise PluginError(what, "assignor", f"{type(wrong).__name__}: {wrong}") from wrong
        if isclass(made) or not _assigns(made):
            raise PluginError(what, "assignor", f"makes {type(made).__name__}, which is no assignor")
        named: AnyAssignor = as_factory(made, what)()
        return named

    return make


def _once(named: Callable[[], AnyAssignor], assignor: Any) -> Callable[[], AnyAssignor]:
    handed = False

    def make() -> AnyAssignor:
        nonlocal handed
        if handed:
            found = f"one object of {type(assignor).__name__} for several consumers"
            expected = "its class or a function that makes it, for each to have its own"
            raise InputError(f"assignor {named().name!r}", found, expected)
        handed = True
        return named()

    return make


def _assigns(thing: Any) -> bool:
    if isroutine(thing):
        return False
    return callable(getattr(thing, "assign", None)) or callable(getattr(thing, "solve", None))


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True


def _called(assignor: Any) -> str:
    return str(getattr(assignor, "__qualname__", type(assignor).__qualname__))
