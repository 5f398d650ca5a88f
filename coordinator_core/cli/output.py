"""Where the command writes: results to stdout, everything else to stderr; and its exit statuses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from errno import EISDIR
from os import strerror
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from coordinator_core.errors import InputError

_WIDEST = 10_000
"""Columns of a pipe: more than any table here has."""


class ExitStatus(IntEnum):
    """What the shell hears."""

    DONE = 0
    SOME_INPUTS_FAILED = 1
    WRONG_USE = 2


def stdout() -> Console:
    """For results. In a pipe it is as wide as it needs to be and has no colour."""
    if sys.stdout.isatty():
        return Console(highlight=False, emoji=False)
    return Console(highlight=False, emoji=False, soft_wrap=True, width=_WIDEST)


def stderr() -> Console:
    """For errors, warnings and progress."""
    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def complain(problem: object, *, label: str = "[bold red]error:[/]") -> None:
    """One line to stderr."""
    line = " ".join(str(problem).split())
    stderr().print(f"{label} {escape(line)}")


def warn(problem: object) -> None:
    """One line to stderr about what does not stop the command."""
    complain(problem, label="[yellow]warning:[/]")


def give_up(problem: object, status: ExitStatus = ExitStatus.WRONG_USE) -> NoReturn:
    """One line to stderr, and the end."""
    complain(problem)
    raise typer.Exit(int(status))


def check_path(path: Path | None) -> None:
    """Raises InputError for a path that cannot be written to, before any long work is done."""
    if path is not None:
        with _unfinished(path) as unfinished:
            unfinished.write_bytes(b"")


def write_whole(path: Path, data: bytes) -> None:
    """A file, whole or not at all: it appears under its name when it is complete."""
    with _unfinished(path) as unfinished:
        unfinished.write_bytes(data)
        unfinished.replace(path)


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """A name beside the file's for what is not complete yet; nothing stays behind under it."""
    unfinished = path.parent / f"{path.name}.part"
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
        yield unfinished
    except OSError as problem:
        raise InputError(str(path), f"a path that cannot be written ({problem.strerror})", "a file") from None
    finally:
        with suppress(OSError):
            unfinished.unlink()
