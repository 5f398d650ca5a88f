"""The options of `optimal` and the parsers of their texts."""

from dataclasses import dataclass
from math import isfinite


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


def read_switch(text: str) -> bool:
    """Parse ``true``, ``false`` or an empty text, which is true.

    Raises:
        ValueError: for any other text.
    """
    if text not in ("", "true", "false"):
        raise ValueError("true or false")
    return text != "false"
