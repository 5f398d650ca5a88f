"""How the tests share the machine and call the command: those with a Spark session run in one process."""

import io
import sys
from typing import Any, NamedTuple

import pytest

from coordinator_core.cli.main import run

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


class Answer(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def lab(monkeypatch, capfdbinary):
    """Call the command in this process: arguments in, exit status and both outputs out."""

    def call(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["rebalance-lab", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Answer(ended.value.code or 0, out.decode(), err.decode())

    return call
