import pytest

from rebalance_lab.cli import running

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


@pytest.fixture
def small(tmp_path):
    """A scenario that is over in an instant: two members on four partitions, one leaves."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def every_message(monkeypatch):
    """Whether every message was wanted, of each run that was simulated in this process."""
    wanted = []
    simulated = running.simulate

    def simulate(*arguments, every_message, **keywords):
        wanted.append(every_message)
        return simulated(*arguments, every_message=every_message, **keywords)

    monkeypatch.setattr(running, "simulate", simulate)
    return wanted
