"""The test context of this folder."""

import pytest

from tests.coordinator_core.client.bench import Bench, cooperative


@pytest.fixture
def bench():
    """An eager consumer without auto-commit."""
    return Bench(enable_auto_commit=False)


@pytest.fixture
def calm():
    """A cooperative one."""
    return cooperative(enable_auto_commit=False)
