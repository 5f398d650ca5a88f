"""Reading a document that a person wrote: every check names the place, what was found and what was expected.

A place is text: ``deploy.yaml: events[3].leave``; the root of a document ends in ``": "``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from coordinator_core.errors import InputError

LONGEST_SHOWN = 60


def inside(where: str, key: str | int) -> str:
    """The place of a mapping's key, or of a list's element."""
    if isinstance(key, int):
        return f"{where}[{key}]"
    return f"{where}{key}" if where.endswith(": ") else f"{where}.{key}"


def wrong(where: str, value: Any, expected: str) -> InputError:
    """The error for a value that is not what was expected."""
    return InputError(where.removesuffix(": "), describe(value), expected)


def describe(value: Any) -> str:
    """A value in a few words, however large it is."""
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


def close_to(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` when something known is close, else nothing."""
    close = get_close_matches(name[:LONGEST_SHOWN], sorted(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def mapping(value: Any, where: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
    """A mapping with text keys; only ``known`` ones, when given."""
    if not isinstance(value, Mapping):
        fields = f" with {', '.join(known)}" if known else ""
        raise wrong(where, value, f"a mapping{fields}")
    for key in value:
        if not isinstance(key, str) or not key:
            raise wrong(where, key, "text as the key")
    if known is not None:
        fields_known = list(known)
        for key in value:
            if key not in fields_known:
                expected = f"one of {', '.join(fields_known)}{close_to(key, fields_known)}"
                raise InputError(inside(where, key), f"the unknown field {describe(key)}", expected)
    return value


def required(document: Mapping[str, Any], key: str, where: str, expected: str) -> Any:
    """The value of a key that must be there."""
    if document.get(key) is None:
        raise InputError(inside(where, key), "nothing", expected)
    return document[key]


def sequence(value: Any, where: str, of: str) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, list):
        raise wrong(where, value, f"a list of {of}")
    return value


def text(value: Any, where: str, what: str = "text") -> str:
    """Text that is not empty, of at most 249 characters (Kafka's limit for a topic's name)."""
    if not isinstance(value, str) or not value.strip():
        raise wrong(where, value, what)
    if len(value) > 249:
        raise InputError(where, f"text of {len(value):,} characters", f"{what} of at most 249 characters")
    return value


def whole(value: Any, where: str, *, low: int, high: int) -> int:
    """A whole number in a range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong(where, value, f"a whole number from {low:,} to {high:,}")
    return value


def number(value: Any, where: str, *, positive: bool = False, below: float = math.inf) -> float:
    """A finite number, not negative (or above zero), below a limit."""
    sign = "above zero" if positive else "not negative"
    limit = "" if below == math.inf else f" and below {below:g}"
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits or not 0 <= _as_float(value) < below or (positive and value == 0):
        raise wrong(where, value, f"a number {sign}{limit}")
    return float(value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
