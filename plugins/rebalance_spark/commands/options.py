"""The options that several subcommands have."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_core.errors import InputError
from rebalance_lab.cli.main import INTERRUPTED
from rebalance_lab.cli.output import stderr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The master of Spark, or a server of Spark Connect (sc://host:15002); the default is local[*],"
        " all cores of this machine.",
    ),
]
Conf = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark; repeatable.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE", help="A module to register that is not installed as a plugin; repeatable."
    ),
]
TERMINATED = 143
"""The exit status of a process that SIGTERM ended."""


def session_of_a_command(
    master: str | None, conf: Mapping[str, str], stopped: Callable[[], str] | None = None
) -> "SparkSession":
    """Return a session. Ctrl-C ends the process at once, and Java and its workers with it.

    With `stopped`, SIGTERM does, too, and both print the line that it returns. Files that are complete are
    kept. An exception would interrupt a call to Java, which has no end then: the handler of PySpark calls
    Java again, and its client prints tracebacks. PySpark installs its handler only in the main thread, so the
    session starts in another one.
    """
    from rebalance_spark.sessions import spark_session

    if current_thread() is main_thread():
        for number in (signal.SIGINT, signal.SIGTERM) if stopped else (signal.SIGINT,):
            signal.signal(number, partial(_end_at_once, stopped))
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(spark_session, master, conf, record=stopped is not None).result()


def _end_at_once(stopped: Callable[[], str] | None, number: int, _: object) -> None:
    stderr().show_cursor()
    if stopped is not None:
        line = stopped()
        os.write(sys.stderr.fileno(), f"\n{line}\n".encode() if sys.stderr.isatty() else f"{line}\n".encode())
    os._exit(INTERRUPTED if number == signal.SIGINT else TERMINATED)


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return ``NAME=VALUE`` texts as a mapping.

    Raises:
        InputError: if a text has another form.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(option, repr(text), "NAME=VALUE")
        found[name] = value
    return found


def names_in(text: str) -> list[str]:
    """Return the names in a text with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def check_one_of(command: str, first: str, name: str, second: str, other: str) -> None:
    """Check that one of two options is given.

    Raises:
        InputError: if both or none are.
    """
    if bool(first) == bool(second):
        raise InputError(command, "both" if first else "neither", f"one of {name} and {other}")
