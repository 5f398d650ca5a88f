"""Checks of documents that people write. Each error has the place, the value found and the value expected.

A place is text, such as ``deploy.yaml: events[3].leave``. The place of a document's root ends in ``": "``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of

LONGEST_SHOWN = 60


def inside(where: str, key: str | int) -> str:
    """Return the place of a mapping's key or of a list's element."""
    if isinstance(key, int):
        return f"{where}[{key}]"
    return f"{where}{key}" if where.endswith(": ") else f"{where}.{key}"


def unexpected(where: str, value: Any, expected: str) -> InputError:
    """Return the error for a value that is not the expected one."""
    return InputError(where.removesuffix(": "), describe(value), expected)


def describe(value: Any) -> str:
    """Return a short description of a value of any size."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return f"a mapping of {len(value)} keys" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, str):
        shown = value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "..."
        return repr(shown)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**LONGEST_SHOWN:
        return "a number of more than 60 digits"
    return repr(value) if isinstance(value, (bool, int, float)) else f"a {type(value).__name__}"


def mapping(value: Any, where: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
    """Return a value that is a mapping with text keys, all of them among ``known`` if given."""
    if not isinstance(value, Mapping):
        fields = f" with {', '.join(known)}" if known else ""
        raise unexpected(where, value, f"a mapping{fields}")
    for key in value:
        if not isinstance(key, str) or not key:
            raise unexpected(where, key, "text as the key")
    if known is not None:
        fields_known = list(known)
        for key in value:
            if key not in fields_known:
                found = f"the unknown field {describe(key)}"
                raise InputError(inside(where, key), found, one_of(key, fields_known))
    return value


def required(document: Mapping[str, Any], key: str, where: str, expected: str) -> Any:
    """Return the value of a required key."""
    if document.get(key) is None:
        raise InputError(inside(where, key), "nothing", expected)
    return document[key]


def sequence(value: Any, where: str, of: str) -> Sequence[Any]:
    """Return a value that is a list."""
    if not isinstance(value, list):
        raise unexpected(where, value, f"a list of {of}")
    return value


def text(value: Any, where: str, what: str = "text") -> str:
    """Return a value that is text of 1 to 249 characters (Kafka's limit for the name of a topic)."""
    if not isinstance(value, str) or not value.strip():
        raise unexpected(where, value, what)
    if len(value) > 249:
        raise InputError(where, f"text of {len(value):,} characters", f"{what} of at most 249 characters")
    return value


def whole(value: Any, where: str, *, low: int, high: int) -> int:
    """Return a value that is a whole number in a range. Both ends belong to the range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise unexpected(where, value, f"a whole number from {low:,} to {high:,}")
    return value


LARGEST = 1e100
"""No number of a document reaches it: squares and sums of numbers below it are finite."""


def number(value: Any, where: str, *, positive: bool = False, below: float = math.inf) -> float:
    """Return a value that is a number from zero (or above zero, if ``positive``) to below a limit.

    No number reaches `LARGEST`.
    """
    if below == math.inf and isinstance(value, (int, float)) and LARGEST <= _as_float(value) < below:
        below = LARGEST
    sign = "above zero" if positive else "not negative"
    limit = "" if below == math.inf else f" and below {below:g}"
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits or not 0 <= _as_float(value) < below or (positive and value == 0):
        raise unexpected(where, value, f"a number {sign}{limit}")
    return float(value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
