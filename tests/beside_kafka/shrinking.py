"""Making a script with a fault shorter while it still shows the fault."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from tests.beside_kafka.steps import Script

AT_ONCE = 12
"""Shorter scripts that are played at the same time."""


def shorter(script: Script) -> Iterator[Script]:
    """Yield the script without some of its steps: first without halves, in the end without single ones."""
    size = len(script.steps) // 2
    while size >= 1:
        for first in range(0, len(script.steps), size):
            yield replace(script, steps=script.steps[:first] + script.steps[first + size :])
        size //= 2


async def shrunk(
    script: Script, shows: Callable[[Sequence[Script]], Awaitable[Sequence[bool]]], rounds: int = 20
) -> Script:
    """Return a shorter script that shows the same, as ``shows`` says of each of several.

    ``rounds`` limits how often scripts are played.
    """
    candidates = shorter(script)
    for _ in range(rounds):
        some = list(islice(candidates, AT_ONCE))
        if not some:
            break
        fitting = [one for one, fits in zip(some, await shows(some), strict=True) if fits]
        if fitting:
            script = min(fitting, key=lambda one: len(one.steps))
            candidates = shorter(script)
    return script
