"""The options that several subcommands have."""

from collections.abc import Sequence
from pathlib import Path

from coordinator_core.errors import InputError

MASTER_HELP = "The master of Spark; the default is local[*], all cores of this machine."
CONF_HELP = "A setting of Spark; repeatable."
PLUGIN_HELP = "A module to register that is not installed as a plugin; repeatable."
WITH_HELP = "An option of the profile; repeatable."


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


def is_complete(folder: str) -> bool:
    """Return whether Spark has completed a folder."""
    return (Path(folder) / "_SUCCESS").exists()
