"""A coordinator that reconciles groups, on the test bench."""

import pytest

from tests.coordinator_core.coordinator.reconcile_bench import reconcile_bench


@pytest.fixture
def bench(make_bench):
    return reconcile_bench(make_bench)()


@pytest.fixture
def make_reconcile_bench(make_bench):
    return reconcile_bench(make_bench)
