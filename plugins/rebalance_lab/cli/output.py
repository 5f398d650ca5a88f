"""Output of commands: results go to stdout, everything else to stderr. Exit statuses.

rich is imported when there is something to print: the help needs none of it.
"""

import sys
from enum import IntEnum
from textwrap import wrap
from typing import TYPE_CHECKING, NoReturn

import typer

from coordinator_core.reading.raised import traceback_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rebalance_lab.verdicts.tables import Table as Grid

_WIDEST = 10_000
"""Columns of a pipe: more than any table has."""

_WIDEST_TEXT = 160
_WIDTH_OF_PIPED_TEXT = 100

_tracebacks = False


class ExitStatus(IntEnum):
    """Exit statuses of the command."""

    DONE = 0
    SOME_INPUTS_FAILED = 1
    WRONG_USE = 2


def stdout() -> "Console":
    """Return the console for results. In a pipe it is as wide as necessary and has no colours."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False, emoji=False)
    return Console(highlight=False, emoji=False, soft_wrap=True, width=_WIDEST)


def stderr() -> "Console":
    """Return the console for errors, warnings and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def text_width(console: "Console") -> int:
    """Return the width of lines of sentences."""
    return min(console.width, _WIDEST_TEXT) if console.is_terminal else _WIDTH_OF_PIPED_TEXT


def show_tracebacks(shown: bool) -> None:
    """Determine whether `complain` and `warn` print the traceback of an exception in an author's code."""
    global _tracebacks
    _tracebacks = shown


def print_table(table: "Table", console: "Console") -> None:
    """Print a table. In a pipe no line of it ends with spaces."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().removesuffix("\n").split("\n"):
        console.print(line.rstrip(), markup=False)


def print_tables(table: "Grid", console: "Console") -> None:
    """Print a table. Columns that do not fit in the terminal follow below, in further tables."""
    from rebalance_lab.verdicts.tables import text_tables

    parts = text_tables(table.head, table.rows, console.width, table.headings)
    for number, part in enumerate(parts):
        if number:
            console.print()
        print_table(part, console)


def print_hanging(
    text: str, console: "Console", indent: str = "  ", style: str = "", width: int | None = None
) -> None:
    """Print a sentence in lines of a width, that of texts by default, indented from the second line on."""
    from rich.text import Text

    console.print(Text(hanging(text, width or text_width(console), indent), style))


def hanging(text: str, width: int, indent: str = "  ") -> str:
    """Return a text in lines of a width, indented from the second line on."""
    return "\n".join(wrap(text, width, subsequent_indent=indent, break_on_hyphens=False))


def print_document(text: str) -> None:
    """Print a document for programs to stdout: in UTF-8, whatever the encoding of the terminal is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.rstrip("\n").encode() + b"\n")


def complain(error: object, *, traceback: str = "", label: str = "[bold red]error:[/]") -> None:
    """Print an error as one line to stderr.

    ``traceback``: of the exception in an author's code; by default that of the error's cause.
    """
    from rich.markup import escape

    line = " ".join(str(error).split())
    stderr().print(f"{label} {escape(line)}")
    print_traceback(traceback or (traceback_of(error) if isinstance(error, BaseException) else ""))


def print_traceback(text: str) -> None:
    """Print a traceback to stderr, if tracebacks are shown."""
    if text and _tracebacks:
        stderr().print(text, markup=False)


def warn(warning: object, *, traceback: str = "") -> None:
    """Print a warning as one line to stderr."""
    complain(warning, traceback=traceback, label="[yellow]warning:[/]")


def give_up(error: object, status: ExitStatus = ExitStatus.WRONG_USE, *, traceback: str = "") -> NoReturn:
    """Print an error as one line to stderr, and end the command."""
    complain(error, traceback=traceback)
    raise typer.Exit(int(status))
