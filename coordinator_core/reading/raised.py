"""Exceptions of authors' code: assignors, plugins and their modules."""

import linecache
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

_AROUND = frozenset(
    {
        *("assignors", "coordinator_core"),
        *(
            "rebalance_conformance",
            "rebalance_jupyter",
            "rebalance_kafka",
            "rebalance_lab",
            "rebalance_spark",
        ),
        *("contextlib", "importlib", "pluggy"),
    }
)
"""Packages whose frames lead from this program to the code of an author."""


def raised(error: BaseException) -> str:
    """Return the exception and its place in the author's code: ``KeyError: 'a' (mine.py:12)``.

    The place is the last line in the package of the author; for a cell of a notebook with the line itself:
    ``KeyError: 'a' (cell In[3], line 2: return owners["a"])``. An exception outside of it has no place.
    """
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):  # its text has file and line
        return text
    place = place_in(traceback.walk_tb(_authors_part(error)))
    return f"{text} ({place})" if place else text


def place_in(stack: Iterable[tuple[FrameType, int]]) -> str:
    """Return the last line of the author in a stack, the outermost call first; empty if it has none."""
    frames = [pair for pair in stack if _package(pair[0]) not in _AROUND]
    if not frames:
        return ""
    package = _package(frames[0][0])
    frame, line = [pair for pair in frames if _package(pair[0]) == package][-1]
    file = frame.f_code.co_filename
    cell = _cell(file)
    return (
        f"{cell}, line {line}: {linecache.getline(file, line).strip()}" if cell else f"{_shown(file)}:{line}"
    )


def traceback_of(error: BaseException) -> str:
    """Return the traceback of the exception from which an error of this program was raised; empty if none.

    It begins with the first frame of the author.
    """
    cause = error
    while _is_ours(cause) and cause.__cause__ is not None:
        cause = cause.__cause__
    if _is_ours(cause):
        return ""
    part = _authors_part(cause) or cause.__traceback__
    return "".join(traceback.format_exception(type(cause), cause, part)).rstrip()


def _is_ours(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _AROUND


def _authors_part(error: BaseException) -> TracebackType | None:
    """Return the traceback from the first frame of the author; None if there is no such frame."""
    return next((tb for tb in _levels(error) if _package(tb.tb_frame) not in _AROUND), None)


def _levels(error: BaseException) -> Iterator[TracebackType]:
    level = error.__traceback__
    while level is not None:
        yield level
        level = level.tb_next


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _cell(file: str) -> str:
    """Return the name of a notebook's cell, ``cell In[3]``; empty if the file is not a cell."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = shell.compile.format_code_name(file) if shell is not None else None
    return " ".join(named).lower().replace("in[", "In[") if named else ""


def _shown(file: str) -> str:
    """Return a file's path, relative to the working directory if the file is below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
