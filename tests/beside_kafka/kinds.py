"""The kinds of scripts, by name."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tests.beside_kafka.happenings import expressions, falling_silent, restarts, topics_that_change
from tests.beside_kafka.live import Live
from tests.beside_kafka.odd import odd_script
from tests.beside_kafka.offsets import offsets_script
from tests.beside_kafka.playing import Fixed, Source

Made: TypeAlias = Callable[[int, int], Source]
BOTH = ("classic", "consumer")


def _odd(*styles: str) -> Made:
    return lambda seed, steps: Fixed(odd_script(seed, styles, steps))


def _live(*styles: str) -> Made:
    return lambda seed, steps: Live(seed, styles, steps)


KINDS: Mapping[str, Made] = {
    "classic": _odd("classic"),
    "consumer": _odd("consumer"),
    "both": _odd(*BOTH),
    "live-classic": _live("classic"),
    "live-consumer": _live("consumer"),
    "live-both": _live(*BOTH),
    "offsets": lambda seed, steps: Fixed(offsets_script(seed, steps)),
    "topics": topics_that_change,
    "regex": expressions,
    "silence": falling_silent,
    "restart": restarts,
}
"""Name -> a function of a seed and the number of steps that makes a script."""

RESTARTING = "restart"
"""The kind that needs brokers of its own."""

STEPS = 25
"""Steps of a script where no number is given."""
