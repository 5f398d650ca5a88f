import io
import sys
from typing import NamedTuple

import pytest

from coordinator_core.cli.main import run

SMALL = """\
name: small
duration: 20s
seed: 4
topics:
  orders: {partitions: 4, rate: 40}
members:
  - {id: a, topics: [orders]}
  - {id: b, topics: [orders]}
events:
  - {at: 12s, leave: b}
"""


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


@pytest.fixture
def small(tmp_path):
    """A scenario that is over in an instant: two members on four partitions, one leaves."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path
