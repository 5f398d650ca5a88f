"""Where the command writes: results to stdout, everything else to stderr; and its exit statuses."""

import sys
from enum import IntEnum
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape


class ExitStatus(IntEnum):
    """What the shell hears."""

    DONE = 0
    SOME_INPUTS_FAILED = 1
    WRONG_USE = 2


def stdout() -> Console:
    """For results. In a pipe it is as wide as it needs to be and has no colour."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def stderr() -> Console:
    """For errors, warnings and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


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
