"""Times, counts and lists of names, as text for people."""

import re
from collections.abc import Sequence

from coordinator_core.reports.tables import as_text

MOST_NAMES = 4


def clock(at_ms: int) -> str:
    """Write a time as ``0:02:14.362``, in twelve columns."""
    hours, rest = divmod(at_ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours}:{minutes:02}:{rest / 1_000:06.3f}".rjust(12)


def exact(ms: int) -> str:
    """Write a duration in seconds, with all digits."""
    return f"{ms / 1_000:g} s"


def about(ms: float) -> str:
    """Write a duration in seconds, with three significant digits."""
    return f"{as_text(ms / 1_000)} s"


def counted(number: float, noun: str) -> str:
    """Write a number with its noun: ``1 partition``, ``2 partitions``."""
    return f"{as_text(number)} {noun}{'s' * (number != 1)}"


def in_order(name: str) -> list[str | int]:
    """Return the key by which names with numbers are sorted by the numbers: c2 before c10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def listed_names(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """List names: ``c1, c2 and c3``. Of more than ``most`` names the last ones are counted."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers if a name occurs more than once."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]
