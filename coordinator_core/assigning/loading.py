"""Assignors from classes, objects, functions and references (``file.py:Name``, ``package.module:Name``)."""

import re
import sys
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isclass, isfunction, ismethod, isroutine, signature
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from coordinator_core.assigning.assignor import NO_OPTIONS, Assignor, Capability, PlainAssignment
from coordinator_core.assigning.problem import Problem
from coordinator_core.errors import AssignmentError, InputError, PluginError
from coordinator_core.model import Partitions, RebalanceProtocol
from coordinator_core.reading.raised import raised

_REFERENCE = re.compile(r"(?P<source>.+?\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?=\+|$)")

_CAPABILITIES = tuple(map(str, Capability))

PROGRAM = "__main__"
"""The module of the program that runs: in a notebook that of its cells."""

EXPECTED = "path/to/file.py:Name or package.module:Name"


def assignor_from(anything: Any) -> Assignor:
    """Return an assignor from an object, a class, a function ``assign(cluster, group)`` or a reference.

    An object that derives from `Assignor` is returned as it is. Any other object needs a method `assign` or
    `solve`; its further attributes are optional.

    Raises:
        InputError: if the file, module or name of a reference does not exist.
        PluginError: if `anything` is not an assignor, or its file cannot be imported.
        AssignmentError: if the assignor declares invalid protocols or capabilities.
    """
    if isinstance(anything, str):
        return load_reference(anything)()
    if isinstance(anything, Assignor):
        return _declared(anything)
    return factory_of(anything, repr(anything))()


@dataclass(frozen=True, slots=True)
class Factory:
    """Makes assignors from a class, a function, an object, or a callable without parameters.

    It can be pickled if `source` can. ``origin`` names it in messages.
    """

    source: Any
    origin: str

    @property
    def shared(self) -> bool:
        """Whether all calls return the same object."""
        return not isclass(self.source) and _is_assignor(self.source)

    @property
    def fresh(self) -> bool:
        """Whether each call returns a new object: not if the author's object or callable decides."""
        return isclass(self.source) or _is_function(self.source)

    @property
    def options(self) -> Mapping[str, Callable[[str], Any]]:
        """Return the options that the class declares."""
        declared = getattr(self.source, "options", None) if isclass(self.source) else None
        return declared if isinstance(declared, Mapping) else NO_OPTIONS

    @property
    def provider(self) -> str:
        """Return the provider that the class, the function or the object declares; "" for none."""
        declared = getattr(self.source, "provider", "")
        return declared if isinstance(declared, str) else ""

    def __call__(self, **arguments: Any) -> Assignor:
        """Return an assignor. Options are passed to the class.

        Raises:
            PluginError: if the callable returns something else.
            AssignmentError: if the assignor declares invalid protocols or capabilities.
        """
        if _is_function(self.source):
            return _declared(_Adapted(self.source))
        made = self.source if self.shared else self.source(**arguments)
        if isclass(made) or not _is_assignor(made):
            reason = f"makes {type(made).__name__}, which is not an assignor"
            raise PluginError(self.origin, "assignor", reason)
        return _declared(made if isinstance(made, Assignor) else _Adapted(made))


def factory_of(anything: Any, origin: str, *, makers: bool = False) -> Factory:
    """Return the factory of a class, a function or an object. ``makers``: also of callables that make one.

    Raises:
        PluginError: if it is none of these. `origin` names it in the message.
    """
    if _is_assignor(anything) or _is_function(anything):
        return Factory(anything, origin)
    if makers and not isclass(anything) and callable(anything) and _takes(anything, 0):
        return Factory(anything, origin)
    raise PluginError(
        origin, "assignor", "neither a class with assign or solve, nor a function of two arguments"
    )


def fresh(factory: Factory) -> Callable[..., Assignor]:
    """Return a callable that makes another assignor at each call: a copy of the author's object, if any."""
    return factory if factory.fresh else partial(_copied, factory)


def _copied(factory: Factory) -> Assignor:
    return deepcopy(factory())


def of_program(name: str) -> Factory | None:
    """Return the factory of a class, function or object of the program that runs, such as a notebook.

    It is the present one of this name: that of a cell after the cell was run again. None if there is none.

    Raises:
        PluginError: if the class or function is not an assignor.
    """
    found = getattr(sys.modules[PROGRAM], name, None)
    if isclass(found) or isfunction(found) or (found is not None and _is_assignor(found)):
        return factory_of(found, name)
    return None


def names_of_program() -> list[str]:
    """Return the names of the assignors that the program that runs has defined."""
    return _names_in(sys.modules[PROGRAM])


def reference_to(thing: Any) -> str | None:
    """Return the text by which a class or function is found again, or None if there is none.

    It is a name of the program that runs, or a reference ``module:Name``.
    """
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__name__", "")
    if not name or getattr(sys.modules.get(module), name, None) is not thing:
        return None
    return str(name) if module == PROGRAM else f"{module}:{name}"


def reference_in(text: str) -> str | None:
    """Return the reference at the start of a strategy's name, or None if it starts with a plain name."""
    found = _REFERENCE.match(text)
    return None if found is None else found.group()


def load_reference(reference: str) -> Factory:
    """Return the factory of the assignor at ``file.py:Name`` or ``module:Name``.

    Raises:
        InputError: if the file, module or name does not exist.
        PluginError: if the import fails, or if the name is not an assignor.
    """
    source, _, name = reference.rpartition(":")
    module = _from_file(Path(source), reference) if source.endswith(".py") else _by_name(source, reference)
    found = getattr(module, name, None)
    if found is None:
        names = sorted(_names_in(module))
        raise InputError(reference, f"no {name} in it", f"one of {', '.join(names) or 'its assignors: none'}")
    return factory_of(found, reference)


class _Adapted(Assignor):
    """An object that does not derive from `Assignor`, or a function ``assign(cluster, group)``."""

    def __init__(self, author: Any) -> None:
        self.author = author
        for field in ("name", "version", "supported_protocols", "capabilities"):
            setattr(self, field, getattr(author, field, getattr(Assignor, field)))

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        encode = getattr(self.author, "subscription_user_data", super().subscription_user_data)
        data: bytes | None = encode(topics)
        return data

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        receive = getattr(self.author, "on_assignment", super().on_assignment)
        receive(partitions, generation)

    def solve(self, problem: Problem) -> PlainAssignment:
        solve: Callable[[Problem], PlainAssignment] | None = getattr(self.author, "solve", None)
        if solve is not None:
            return solve(problem)
        assign = getattr(self.author, "assign", self.author)
        assignment: PlainAssignment = assign(problem.cluster, problem.group)
        return assignment


def author_of(assignor: Assignor) -> Any:
    """Return the object or function that an assignor was adapted from; else the assignor itself."""
    return assignor.author if isinstance(assignor, _Adapted) else assignor


def _declared(assignor: Assignor) -> Assignor:
    """Return an assignor with a name and valid declarations."""
    if not assignor.name:
        author = author_of(assignor)
        assignor.name = _kebab(getattr(author, "__name__", type(author).__name__))
    _check_declarations(assignor)
    return assignor


def _check_declarations(assignor: Assignor) -> None:
    protocols: Any = assignor.supported_protocols
    if not isinstance(protocols, Collection) or not all(isinstance(p, RebalanceProtocol) for p in protocols):
        violation = f"declares supported_protocols {protocols!r}, not a list of RebalanceProtocol"
        raise AssignmentError(assignor.name, [violation])
    declared: Any = assignor.capabilities
    if not isinstance(declared, Collection):
        raise AssignmentError(assignor.name, [f"declares capabilities {declared!r}, not a list of them"])
    unknown = [str(name) for name in declared if name not in _CAPABILITIES]
    if unknown:
        violation = f"declares the unknown capability {unknown[0]!r}; there are {', '.join(_CAPABILITIES)}"
        raise AssignmentError(assignor.name, [violation])


def _names_in(module: ModuleType) -> list[str]:
    """Return the names of the assignors that a module has defined."""
    return [
        name
        for name, thing in list(vars(module).items())
        if getattr(thing, "__module__", "") == module.__name__
        and not name.startswith("_")
        and (_is_assignor(thing) or _is_function(thing))
    ]


def _is_assignor(thing: Any) -> bool:
    """Whether it is an assignor or a class of assignors."""
    if isroutine(thing):
        return False
    return callable(getattr(thing, "assign", None)) or callable(getattr(thing, "solve", None))


def _is_function(thing: Any) -> bool:
    return (isfunction(thing) or ismethod(thing)) and _takes(thing, 2)


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def _kebab(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.replace("_", "-").strip("-").lower()


def _from_file(path: Path, reference: str) -> ModuleType:
    if not path.is_file():
        raise InputError(reference, f"no file {path}", EXPECTED)
    name = f"rebalance_lab_file_{path.stem}_{crc32(str(path.resolve()).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up the module
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # a script, too, can import the modules of its folder
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginError(reference, "import", raised(error)) from error
    return module


def _by_name(name: str, reference: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(reference, f"no module {name}", EXPECTED) from None
        raise PluginError(reference, "import", raised(error)) from error
    except (Exception, SystemExit) as error:
        raise PluginError(reference, "import", raised(error)) from error
