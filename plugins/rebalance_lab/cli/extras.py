"""The extras of the distribution, as its metadata lists them."""

import re
from importlib.metadata import PackageNotFoundError, requires

from coordinator_core.registry.registry import DISTRIBUTION

_OF_AN_EXTRA = re.compile(r"""([\w-]+)[^;]*;.*\bextra == ['"](\w+)['"]""")
_SUMS = ("all", "test")
"""Extras that only put other ones together."""


def extra_of(module: str) -> str | None:
    """Return the extra that installs a top-level module, or None if no extra does."""
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return None
    found = [match.groups() for line in requirements if (match := _OF_AN_EXTRA.match(line))]
    return next((extra for name, extra in found if name == module and extra not in _SUMS), None)
