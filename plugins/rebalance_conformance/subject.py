"""The assignor under test, however it was named: by text, class, function, factory or object."""

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import isclass, isroutine, signature
from pathlib import Path
from typing import Any

from coordinator_core.assigning.assignor import AnyAssignor, capabilities, supported_protocols
from coordinator_core.assigning.loading import as_factory
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.model import RebalanceProtocol
from coordinator_core.registry.registry import default_registry

COOPERATIVE = "cooperative"
EXPECTED = (
    "an installed name, a reference, a class, a function of (cluster, group), a factory, or an assignor"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """How to make the assignor afresh; pickles where what it was made from does.

    ``name`` is what to call it: a text that ``rebalance-lab assign`` understands, where there is one.
    ``traits``: its capabilities, and ``cooperative``.
    """

    name: str
    make: Callable[[], AnyAssignor]
    traits: frozenset[str]

    @property
    def cooperative(self) -> bool:
        """Whether it may hold back what is still claimed by another member."""
        return COOPERATIVE in self.traits


def subject_of(assignor: Any) -> Subject:
    """The subject of whatever names an assignor.

    Raises InputError for what is none, or cannot be made without arguments; what the registry raises for a
    name; AssignmentError for an unknown capability.
    """
    if isinstance(assignor, str):
        return Subject(assignor, partial(_by_name, assignor), _traits(_by_name(assignor)))
    make = _maker(assignor)
    try:
        first = make()
    except RebalanceLabError:
        raise
    except Exception as wrong:
        raise InputError(repr(assignor), f"{type(wrong).__name__}: {wrong}", "no arguments needed") from wrong
    return Subject(_called(assignor, first), make, _traits(first))


def _by_name(text: str) -> AnyAssignor:
    return default_registry().assignor(text)


def _maker(assignor: Any) -> Callable[[], AnyAssignor]:
    if isclass(assignor) or (isroutine(assignor) and _takes(assignor, 2)):
        return partial(_afresh, assignor)
    if callable(assignor) and not _assigns(assignor) and _takes(assignor, 0):
        return partial(_from_factory, assignor)
    if _assigns(assignor):
        return partial(_from_object, assignor)
    raise InputError("assignor", repr(assignor), EXPECTED)


def _afresh(thing: Any) -> AnyAssignor:
    return as_factory(thing, repr(thing))()


def _from_factory(factory: Callable[[], Any]) -> AnyAssignor:
    made = factory()
    if not _assigns(made):
        raise InputError(repr(factory), f"what makes {made!r}", "what makes an assignor")
    return _from_object(made)


def _from_object(assignor: Any) -> AnyAssignor:
    return as_factory(deepcopy(assignor), repr(assignor))()


def _assigns(thing: Any) -> bool:
    return any(callable(getattr(thing, method, None)) for method in ("assign", "solve"))


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def _traits(assignor: AnyAssignor) -> frozenset[str]:
    declared = frozenset(map(str, capabilities(assignor)))
    cooperative = RebalanceProtocol.COOPERATIVE in supported_protocols(assignor)
    return declared | {COOPERATIVE} if cooperative else declared


def _called(assignor: Any, made: AnyAssignor) -> str:
    """Its installed name, else a reference to its class or function, else whatever it calls itself."""
    registry = default_registry()
    if made.name in registry.assignors() and type(registry.assignor(made.name)) is type(made):
        return made.name
    module, name = sys.modules.get(getattr(assignor, "__module__", "")), getattr(assignor, "__name__", "")
    if module is None or getattr(module, name, None) is not assignor:
        return made.name
    if not isclass(assignor) and not (callable(assignor) and _takes(assignor, 2)):
        return made.name  # a factory, which no reference may name
    file = Path(getattr(module, "__file__", None) or "")
    if file.suffix == ".py" and file.is_relative_to(Path.cwd()):
        return f"{file.relative_to(Path.cwd())}:{name}"
    return f"{module.__name__}:{name}"
