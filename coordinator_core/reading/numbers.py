"""Numbers in text that people write: ``1000``, ``1,000``, ``2.5``, ``1e3``."""

import re
from decimal import Decimal

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import describe

_WRITTEN = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?")


def parse_number(text: str, where: str) -> float:
    """Return the number of a text, an int if it is whole. Commas separate thousands only.

    Raises:
        InputError: if the text is not a number.
    """
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise InputError(where, describe(text), "a number such as 1000, 2.5 or 1e3")
    value = Decimal(written.group().replace(",", ""))
    return int(value) if value == value.to_integral_value() else float(value)
