"""The check that an assignor uses nothing but its arguments (C-71).

During `assign`, clocks, random numbers, sockets, files and processes raise an exception, and their use is
recorded. So do names that the author's modules imported (``from time import time``).
"""

import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from inspect import isfunction, ismethod
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from rebalance_conformance.answers import NoAnswerError, answer
from rebalance_conformance.cases import Case, copy_of
from rebalance_conformance.groups import ordinary_groups
from rebalance_conformance.search import Bench, FaultError, check

CLOCKS = ("time", "monotonic", "perf_counter", "process_time")
RANDOM = (
    *("betavariate", "choice", "choices", "expovariate", "gauss", "getrandbits", "normalvariate"),
    *("randbytes", "randint", "random", "randrange", "sample", "seed", "shuffle", "triangular", "uniform"),
)
NUMPY_RANDOM = (
    *("choice", "normal", "permutation", "rand", "randint", "randn"),
    *("random", "seed", "shuffle", "uniform"),
)


class TouchedError(Exception):
    """Raised by everything that an assignor must not use."""


@check("No clock, chance, socket or file is touched.", ordinary_groups())
def impure(bench: Bench, case: Case) -> None:
    """Fail if anything forbidden is used, even if the assignor handles the exception."""
    bench.given(case)  # so that late imports are done
    assignor, lent = bench.subject.make(), copy_of(case)
    with _refusing(_modules_of(assignor)) as touched:
        try:
            answer(assignor, lent)
        except NoAnswerError as error:
            if not touched:
                raise FaultError(str(error), case) from error
    if touched:
        raise FaultError(f"it used {touched[0]} while assigning", case)


def _forbidden() -> Iterator[tuple[Any, str, str]]:
    """Yield the object, the attribute and the name in messages of everything forbidden."""
    for clock in CLOCKS:
        yield time, clock, f"time.{clock}"
        yield time, f"{clock}_ns", f"time.{clock}_ns"
    yield time, "sleep", "time.sleep"
    for name in RANDOM:
        yield random, name, f"random.{name}"
    yield random.SystemRandom, "random", "random.SystemRandom"
    yield random.SystemRandom, "getrandbits", "random.SystemRandom"
    for name in NUMPY_RANDOM:
        yield np.random, name, f"numpy.random.{name}"
    yield os, "urandom", "os.urandom"
    yield socket.socket, "__init__", "socket.socket"
    yield socket, "getaddrinfo", "socket.getaddrinfo"
    yield subprocess.Popen, "__init__", "subprocess.Popen"
    yield sys.modules["builtins"], "open", "open"


@contextmanager
def _refusing(modules: list[ModuleType]) -> Iterator[list[str]]:
    """Forbid everything in the current thread. Yields the list of uses."""
    touched: list[str] = []
    with ExitStack() as patched:
        for place, name, called in list(_forbidden()):
            original = getattr(place, name)
            stand_in = _stand_in(original, called, touched)
            for module in modules:
                for alias in [a for a, value in vars(module).items() if value is original]:
                    patched.enter_context(patch.object(module, alias, stand_in))
            patched.enter_context(patch.object(place, name, stand_in))
        seedless = _seedless(np.random.default_rng, touched)
        patched.enter_context(patch.object(np.random, "default_rng", seedless))
        yield touched


def _stand_in(original: Callable[..., Any], called: str, touched: list[str]) -> Callable[..., Any]:
    current = threading.get_ident()

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if threading.get_ident() != current or caller.partition(".")[0] == "logging":
            return original(*args, **kwargs)  # other threads, and the time of a log record
        touched.append(called)
        raise TouchedError(f"{called} is out of reach while assigning")

    return stand_in


def _seedless(original: Callable[..., Any], touched: list[str]) -> Callable[..., Any]:
    """Allow random numbers with a seed."""

    def default_rng(seed: Any = None) -> Any:
        if seed is not None:
            return original(seed)
        touched.append("numpy.random.default_rng without a seed")
        raise TouchedError("numpy.random.default_rng needs a seed")

    return default_rng


def _modules_of(assignor: Any) -> list[ModuleType]:
    """Return the modules of the author's package: of the class, the function and wrapped assignors."""
    packages = {_package(name) for name in _module_names(assignor, depth=3)}
    own = packages - {"coordinator_core", "rebalance_lab", ""}
    return [module for name, module in sorted(sys.modules.items()) if _package(name) in own]


def _package(module: str) -> str:
    return module.partition(".")[0]


def _module_names(thing: Any, depth: int) -> Iterator[str]:
    yield thing.__module__ if isfunction(thing) or ismethod(thing) else type(thing).__module__
    if depth:
        for inner in getattr(thing, "__dict__", {}).values():
            if isfunction(inner) or hasattr(inner, "assign") or hasattr(inner, "solve"):
                yield from _module_names(inner, depth - 1)
