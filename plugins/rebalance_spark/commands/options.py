"""The options that several subcommands have."""

import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from coordinator_core.cli.main import INTERRUPTED
from coordinator_core.cli.output import stderr
from coordinator_core.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_HELP = (
    "The master of Spark, or a server of Spark Connect (sc://host:15002); the default is local[*], all cores"
    " of this machine."
)
CONF_HELP = "A setting of Spark; repeatable."
PLUGIN_HELP = "A module to register that is not installed as a plugin; repeatable."
WITH_HELP = "An option of the profile; repeatable."


def session_of_a_command(master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    """Return a session. Ctrl-C ends the process at once, and Java and its workers with it.

    Files that are complete are kept. An exception would interrupt a call to Java, which has no end then: the
    handler of PySpark calls Java again, and its client prints tracebacks. PySpark installs its handler only
    in the main thread, so the session starts in another one.
    """
    from rebalance_spark.sessions import spark_session

    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, _end_at_once)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(spark_session, master, conf).result()


def _end_at_once(*_: object) -> None:
    stderr().show_cursor()
    os._exit(INTERRUPTED)


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


def is_local(path: str) -> bool:
    """Return whether a path belongs to the file system of this machine."""
    return "://" not in path
