"""The options of `optimal` and the parsers of their texts."""

from dataclasses import dataclass
from math import isfinite

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import parse_duration


@dataclass(frozen=True)
class MoveLimit:
    """The partitions, or the share of the weight, that may leave a member that could keep them."""

    partitions: int | None = None
    share: float | None = None


def read_moves(text: str) -> MoveLimit:
    """Parse ``20`` partitions or ``5%`` of the weight.

    Raises:
        ValueError: if it is neither.
    """
    try:
        if text.endswith("%"):
            share = float(text[:-1]) / 100
            if 0 <= share <= 1:
                return MoveLimit(share=share)
        elif int(text) >= 0:
            return MoveLimit(partitions=int(text))
    except ValueError:
        pass
    raise ValueError("a number of partitions such as 20, or a share of the weight such as 5%")


def read_amount(text: str) -> float:
    """Parse a number of 0 or more, or a percentage.

    Raises:
        ValueError: if it is neither.
    """
    try:
        amount = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        amount = -1.0
    if not (isfinite(amount) and amount >= 0):
        raise ValueError("a number of 0 or more, or a percentage")
    return amount


def read_share(text: str) -> float:
    """Parse a share below 1, or a percentage: ``0.05`` or ``5%``.

    A number of 1 or more is refused: it is more likely to mean percent than whole multiples.

    Raises:
        ValueError: if it is neither.
    """
    try:
        share = read_amount(text)
    except ValueError:
        share = -1.0
    if share < 0 or (share >= 1 and not text.endswith("%")):
        hint = f" (did you mean {share / 100:g}, which is {share:g}%?)" if share >= 1 else ""
        raise ValueError(f"a share below 1 such as 0.05, or a percentage such as 5%{hint}")
    return share


def read_seconds(text: str) -> float:
    """Parse seconds, with or without a unit of time: ``10``, ``0.5`` or ``500ms``.

    Raises:
        ValueError: if it is neither.
    """
    expected = "seconds such as 10, or a duration such as 500ms"
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_duration(text, "") / 1_000
        except InputError:
            raise ValueError(expected) from None
    if not (isfinite(seconds) and seconds >= 0):
        raise ValueError(expected)
    return seconds


def read_switch(text: str) -> bool:
    """Parse ``true``, ``false`` or an empty text, which is true.

    Raises:
        ValueError: for any other text.
    """
    if text not in ("", "true", "false"):
        raise ValueError("true or false")
    return text != "false"
