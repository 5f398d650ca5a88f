"""Options that the subcommands share."""

from collections.abc import Sequence
from pathlib import Path

from coordinator_core.errors import InputError

MASTER_HELP = "Spark's master; local[*], all cores of this machine, when nothing else says."
CONF_HELP = "A setting of Spark; as often as needed."
PLUGIN_HELP = "A module to register that is not installed as a plugin; as often as needed."
WITH_HELP = "An option of the profile; as often as needed."


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """``NAME=VALUE`` texts as a mapping. Raises InputError."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(option, repr(text), "NAME=VALUE")
        found[name] = value
    return found


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's file system."""
    return "://" not in path


def is_complete(folder: str) -> bool:
    """Whether Spark has written a folder to its end."""
    return (Path(folder) / "_SUCCESS").exists()
