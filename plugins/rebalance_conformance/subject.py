"""The assignor under test, given as a text, class, function, factory or object."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.assigning.loading import author_of, factory_of, fresh, reference_to
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.raised import raised
from coordinator_core.registry.registry import default_registry

COOPERATIVE = "cooperative"
SUBSCRIBERS_ONLY = "subscribers only"


@dataclass(frozen=True, slots=True)
class Subject:
    """The assignor under test. It can be pickled if its class, function or object can.

    ``name`` is a text that ``rebalance-lab assign`` accepts, if one exists; ``make`` returns a new assignor;
    ``traits`` are its capabilities, ``cooperative``, and whether it assigns topics to subscribers only.
    """

    name: str
    make: Callable[[], Assignor]
    traits: frozenset[str]

    @property
    def cooperative(self) -> bool:
        """Whether it may hold back partitions that another member claims."""
        return COOPERATIVE in self.traits


def subject_of(assignor: Any) -> Subject:
    """Return the subject of an assignor in any form.

    Raises:
        InputError: if the name is unknown, or if the class needs arguments.
        PluginError: if it is not an assignor.
        AssignmentError: if it declares an unknown capability.
    """
    make = partial(_installed, assignor) if isinstance(assignor, str) else _maker(assignor)
    try:
        first = make()
    except RebalanceLabError:
        raise
    except Exception as error:
        raise InputError(repr(assignor), raised(error), "no arguments needed") from error
    name = assignor if isinstance(assignor, str) else _name_of(assignor, first)
    return Subject(name, make, _traits(first))


def _installed(text: str) -> Assignor:
    return default_registry().assignor(text)


def _maker(assignor: Any) -> Callable[[], Assignor]:
    return fresh(factory_of(assignor, repr(assignor), makers=True))


def _traits(assignor: Assignor) -> frozenset[str]:
    declared = frozenset(map(str, assignor.capabilities))
    if is_cooperative(assignor):
        declared |= {COOPERATIVE}
    return declared | {SUBSCRIBERS_ONLY} if assignor.subscribers_only else declared


def _name_of(assignor: Any, made: Assignor) -> str:
    """Return its installed name, a reference to its class or function, or the name that it declares."""
    registry = default_registry()
    if made.name in registry.assignors():
        installed = registry.assignor(made.name)
        if type(author_of(installed)) is type(author_of(made)):
            return made.name
    reference = reference_to(assignor)
    if reference is None or not factory_of(assignor, reference, makers=True).fresh:
        return made.name  # an object, or a factory, which a reference cannot name
    file = Path(getattr(sys.modules[assignor.__module__], "__file__", None) or "")
    if file.suffix == ".py" and file.is_relative_to(Path.cwd()):
        return f"{file.relative_to(Path.cwd())}:{assignor.__name__}"
    return reference
