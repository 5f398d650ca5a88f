"""Exceptions of authors' code: assignors, plugins and their modules."""

import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

_AROUND = frozenset(
    {
        *("assignors", "coordinator_core"),
        *("rebalance_conformance", "rebalance_jupyter", "rebalance_kafka", "rebalance_spark"),
        *("contextlib", "importlib", "pluggy"),
    }
)
"""Packages whose frames lead from this program to the code of an author."""


def raised(error: BaseException) -> str:
    """Return the exception and its place in the author's code: ``KeyError: 'a' (mine.py:12)``.

    The place is the last line in the package of the author. An exception outside of it has no place.
    """
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):  # its text has file and line
        return text
    frames = list(traceback.walk_tb(_authors_part(error)))
    if not frames:
        return text
    package = _package(frames[0][0])
    frame, line = [pair for pair in frames if _package(pair[0]) == package][-1]
    return f"{text} ({_shown(frame.f_code.co_filename)}:{line})"


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


def _shown(file: str) -> str:
    """Return a file's path, relative to the working directory if the file is below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
