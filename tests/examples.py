"""How much of a property or a table runs by default, and how much only with the slow tests."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def scaled(count: int) -> int:
    """Return a share of `count`: a fifth in the profile ``long``, a twentieth in ``short``."""
    return max(1, count * settings.default.max_examples // 100)


WEEKLY = (pytest.mark.slow, pytest.mark.weekly)
"""The marks of a test with a sibling in CI that proves the same rule on fewer inputs."""


def rest_weekly(values: Iterable[Any], fast: int = 1) -> list[Any]:
    """Return the values as parameters, of which all but the first run only with the weekly tests."""
    listed = list(values)
    return listed[:fast] + [pytest.param(value, marks=WEEKLY) for value in listed[fast:]]


def rest_slow(values: Iterable[Any], fast: int = 1) -> list[Any]:
    """Return the values as parameters, of which all but the first are marked slow."""
    listed = list(values)
    return listed[:fast] + [pytest.param(value, marks=pytest.mark.slow) for value in listed[fast:]]
