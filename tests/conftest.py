"""How the tests share the machine: those with a Spark session run in one process, one after another."""

from typing import Any

import pytest

ON_SPARK = ("chunks", "commands", "data_source", "scoring", "sources", "summaries")
TOGETHER = tuple(f"tests/rebalance_spark/test_{name}.py" for name in ON_SPARK)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Every test for itself, as xdist has it, but for those that share a session."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith(TOGETHER) else nodeid

    return Together(config, log)
