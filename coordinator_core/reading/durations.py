"""Durations in text: ``250ms``, ``10s``, ``5m``, ``24h``, ``2d``, or integer milliseconds."""

import re
from decimal import Decimal
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import describe

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_MS = 10_000 * UNITS_MS["d"]

_WRITTEN = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?(ms|s|m|h|d)")
PATTERN = rf"\s*(?:{_WRITTEN.pattern}|\d{{1,15}})\s*"
"""The regular expression of a duration in text, for other programs."""

_EXPECTED = 'a duration such as "250ms", "10s", "5m", "24h", or whole milliseconds'


def parse_duration(value: Any, where: str, *, at_least_ms: int = 0) -> int:
    """Return the whole milliseconds of a duration.

    Raises:
        InputError: if the value is not a duration, or is shorter than ``at_least_ms``.
    """
    found = _milliseconds(value)
    if found is None or found != int(found):
        raise InputError(where, describe(value), _EXPECTED)
    if not at_least_ms <= found <= LONGEST_MS:
        least = f"at least {format_duration(at_least_ms)}" if found < at_least_ms else "at most 10000d"
        raise InputError(where, describe(value), f"a duration of {least}")
    return int(found)


def _milliseconds(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if not isinstance(value, str):
        return None
    written = _WRITTEN.fullmatch(value.strip())
    if written is None:
        return Decimal(value) if re.fullmatch(r"\d{1,15}", value.strip()) else None
    return Decimal(written[1]) * UNITS_MS[written[2]]


def format_duration(duration_ms: int) -> str:
    """Return the shortest text of a duration: ``90s`` for 90000, ``2m`` for 120000."""
    for unit in ("d", "h", "m", "s"):
        if duration_ms and duration_ms % UNITS_MS[unit] == 0:
            return f"{duration_ms // UNITS_MS[unit]}{unit}"
    return f"{duration_ms}ms"
