"""Times, counts and lists of names, as text for people."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from rebalance_lab.traces.causes import CAUSES, SESSION, UNKNOWN
from rebalance_lab.verdicts.tables import as_text

MOST_NAMES = 4

NOTABLE_MS = 100
"""A wait is described if it takes this long."""


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


def duration(seconds: float) -> str:
    """Write a time for people, in the unit in which it is at least two: ``90 s``, ``17 min``, ``3 h``."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{round(seconds / length)} {unit}"
    return f"{as_text(round(seconds, 1))} s"


def waits(causes_ms: Mapping[str, int]) -> str:
    """Write why a round waited: ``2.1 s until the next heartbeat, 4 s in a batch``.

    A single reason has no time of its own. The text is empty if the trace does not show the reason, or if the
    member was absent all the time, which its removal says.
    """
    notable = {cause: ms for cause, ms in causes_ms.items() if ms >= NOTABLE_MS}
    if notable.keys() <= {UNKNOWN} or notable.keys() == {SESSION}:
        return ""
    if len(notable) == 1:
        return CAUSES[next(iter(notable))].waited
    return ", ".join(f"{about(ms)} {CAUSES[cause].waited}" for cause, ms in notable.items())


def counted(number: float, noun: str) -> str:
    """Write a number with its noun: ``1 partition``, ``2 partitions``."""
    return f"{as_text(number)} {noun}{'s' * (number != 1)}"


_SEVERAL = {
    "stops": "stop",
    "stays": "stay",
    "does": "do",
    "is": "are",
    "was": "were",
    "gets": "get",
    "needs": "need",
    "has": "have",
}


def agreeing(verb: str, number: int) -> str:
    """Return a verb in the form for a number of subjects: ``is``, ``are``."""
    return verb if number == 1 else _SEVERAL[verb]


def in_order(name: str) -> list[str | int]:
    """Return the key by which names with numbers are sorted by the numbers: c2 before c10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def listed_names(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """List names: ``c1, c2 and c3``. Of more than ``most`` names the last ones are counted."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_NUMBERED = r"[^\s,]*\d[^\s,]*"
_NUMBERS = re.compile(rf"{_NUMBERED}(?:(?:, | and (?!\d+ more)){_NUMBERED})*(?: and \d+ more)?")


def findings_of_seeds(findings: Mapping[int, Sequence[str]]) -> list[str]:
    """Return each finding of the runs of some seeds once, with its seeds unless it is of all and the same.

    Findings of several seeds that differ only in numbers, or in how many names with numbers they list, are
    one, with the numbers of the first seed.
    """
    found: dict[tuple[str, int], dict[int, str]] = {}
    for seed, texts in findings.items():
        alike: Counter[str] = Counter()
        for text in texts:
            kind = _NUMBERS.sub("#", text)
            found.setdefault((kind, alike[kind]), {})[seed] = text
            alike[kind] += 1
    return [_of_seeds(texts, findings) for texts in found.values()]


def _of_seeds(texts: Mapping[int, str], seeds: Collection[int]) -> str:
    first, text = next(iter(texts.items()))
    reason, separator, advice = text.partition("; ")
    some = in_seeds(texts, seeds)
    if len(set(texts.values())) > 1:
        some = f"{some or 'all seeds'}, with the numbers of seed {first}"
    return f"{reason}{f' ({some})' * bool(some)}{separator}{advice}"


def in_seeds(some: Collection[int], seeds: Collection[int]) -> str:
    """Name some of the seeds; nothing if they are all."""
    if len(some) == len(seeds):
        return ""
    return f"seed{'s' * (len(some) > 1)} {listed_names(list(map(str, some)), len(some))}"


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers if a name occurs more than once."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]
