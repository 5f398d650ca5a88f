"""Assignors that are not installed: a class or a plain function in a file or a module."""

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getmembers, isclass, isfunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from coordinator_core.assigning.assignor import AnyAssignor, PlainAssignment
from coordinator_core.errors import InputError, PluginError
from coordinator_core.model import Cluster, GroupSubscription

_REFERENCE = re.compile(r"(?P<source>.+?\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?=\+|$)")

EXPECTED = "path/to/file.py:Name or package.module:Name"


class FunctionAssignor:
    """A plain function ``assign(cluster, group)`` as an assignor."""

    def __init__(self, name: str, function: Callable[[Cluster, GroupSubscription], PlainAssignment]) -> None:
        self.name = name
        self._function = function

    def assign(self, cluster: Cluster, group: GroupSubscription) -> PlainAssignment:
        """What the function returns."""
        return self._function(cluster, group)


def reference_in(text: str) -> str | None:
    """The reference that a strategy's name begins with, or None where it begins with a plain name."""
    found = _REFERENCE.match(text)
    return None if found is None else found.group()


def load_reference(reference: str) -> Callable[..., AnyAssignor]:
    """What makes a fresh assignor, from ``file.py:Name`` or ``module:Name``.

    Raises InputError where there is no such file, module or name, and PluginError for what the code raises
    while it is imported, or a thing in it that is no assignor.
    """
    source, _, name = reference.rpartition(":")
    module = _from_file(Path(source), reference) if source.endswith(".py") else _by_name(source, reference)
    thing = getattr(module, name, None)
    if thing is None:
        there = [
            n
            for n, each in getmembers(module)
            if getattr(each, "__module__", "") == module.__name__
            and (_is_assignor(each) or (isfunction(each) and _takes_two(each)))
        ]
        raise InputError(reference, f"no {name} in it", f"one of {', '.join(there) or 'its assignors: none'}")
    return as_factory(thing, reference)


def as_factory(thing: Any, what: str) -> Callable[..., AnyAssignor]:
    """What makes a fresh assignor from a class, or an assignor from a function or a finished object.

    An object without a name gets that of its class in kebab case. Raises PluginError, naming `what`, for
    anything else.
    """
    if isclass(thing) and _is_assignor(thing):
        return _Factory(thing)
    if isfunction(thing) and _takes_two(thing):
        return lambda: FunctionAssignor(_kebab(thing.__name__), thing)
    if not isclass(thing) and _is_assignor(thing):
        return lambda: _named(thing, type(thing).__name__)
    raise PluginError(
        what, "assignor", "neither a class with assign or solve, nor a function of two arguments"
    )


class _Factory:
    """Makes objects of an author's class; `options` are those that the class declares, as a mapping."""

    def __init__(self, made: type[Any]) -> None:
        self._made = made
        declared = getattr(made, "options", None)
        self.options: Mapping[str, Callable[[str], Any]] = declared if isinstance(declared, Mapping) else {}

    def __call__(self, **arguments: Any) -> Any:
        return _named(self._made(**arguments), self._made.__name__)


def _is_assignor(thing: Any) -> bool:
    if isfunction(thing):
        return False
    return callable(getattr(thing, "assign", None)) or callable(getattr(thing, "solve", None))


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    return True


def _named(assignor: Any, class_name: str) -> Any:
    if not getattr(assignor, "name", ""):
        assignor.name = _kebab(class_name)
    return assignor


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
    sys.modules[name] = module  # dataclasses and pickle look their module up
    if (beside := str(path.resolve().parent)) not in sys.path:
        sys.path.append(beside)  # as for a script, whose neighbours can be imported
    try:
        spec.loader.exec_module(module)
    except BaseException as wrong:
        del sys.modules[name]
        if isinstance(wrong, KeyboardInterrupt):
            raise
        raise PluginError(reference, "import", f"{type(wrong).__name__}: {wrong}") from wrong
    return module


def _by_name(name: str, reference: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as wrong:
        if wrong.name is not None and (name == wrong.name or name.startswith(f"{wrong.name}.")):
            raise InputError(reference, f"no module {name}", EXPECTED) from None
        raise PluginError(reference, "import", f"{type(wrong).__name__}: {wrong}") from wrong
    except (Exception, SystemExit) as wrong:
        raise PluginError(reference, "import", f"{type(wrong).__name__}: {wrong}") from wrong
