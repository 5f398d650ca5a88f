"""The looks of members in pictures and in the notebook: a letter and a colour for each."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coordinator_core.protocol import events as ev
from rebalance_lab.traces.trace import Trace

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""The colours of Okabe and Ito, which colour-blind readers can distinguish."""

_DARK = frozenset({"#0072B2"})
"""The colours on which white text is easier to read than black text."""


class Look(NamedTuple):
    """The letter of a member, its colour, and the colour of text on that."""

    letter: str
    colour: str
    ink: str


def looks_of(members: Iterable[str]) -> dict[str, Look]:
    """Return the looks of members by name, in their order. Colours repeat, letters do not."""
    return {name: _look(number) for number, name in enumerate(dict.fromkeys(members))}


def members_of(traces: Sequence[Trace]) -> list[str]:
    """Return the names of the members of runs, in the order in which they first started."""
    started = (line.event for trace in traces for line in trace.events)
    return list(dict.fromkeys(event.client for event in started if isinstance(event, ev.MemberStarted)))


def _look(number: int) -> Look:
    colour = PALETTE[number % len(PALETTE)]
    letter = chr(ord("A") + number) if number < 26 else str(number)
    return Look(letter, colour, "#fff" if colour in _DARK else "#000")
