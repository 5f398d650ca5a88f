"""Options of records: keyword arguments that are read from text."""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_core.errors import InputError

_PLAIN_READERS: Mapping[Any, str] = {int: "a whole number", float: "a number"}
"""The expected texts of readers whose ValueError does not have one."""


def read_option(read: Callable[[str], Any], value: str, *, where: str, found: str) -> Any:
    """Return the value of an option.

    Raises:
        InputError: if the reader raises ValueError, whose text is the expected value.
    """
    try:
        return read(value)
    except ValueError as error:
        raise InputError(where, found, _PLAIN_READERS.get(read, str(error))) from None
