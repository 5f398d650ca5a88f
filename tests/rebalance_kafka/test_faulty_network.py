"""Real clients behind a faulty network. Longer: ``python -m tests.rebalance_kafka.faulty_network 20``."""

import re
import subprocess
import sys

import pytest

from tests.rebalance_kafka.peers import missing

pytestmark = [pytest.mark.peer, pytest.mark.slow]

FORGETFUL = (
    "from rebalance_kafka.broker.producers import Producers, Wire"
    "; Producers.repeated = lambda *_: None; Producers.check = lambda *_: Wire.none"
)
"""A statement that makes a broker forget which batches it has."""


def result(*arguments):
    """Run in a process of its own: the clients leave sockets behind that they have lost."""
    for kind in ("kafka-python", "aiokafka", "confluent"):
        if reason := missing(kind):
            pytest.skip(reason)
    command = [sys.executable, "-m", "tests.rebalance_kafka.faulty_network", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return ended.returncode, ended.stdout, ended.stderr


def test_the_history_of_clients_behind_a_faulty_network_breaks_no_rule():
    status, out, err = result("2", "1")
    assert status == 0, out + err
    assert len(re.findall(r"seed \d: .* commit ok .* produce ok", out)) == 2


def test_a_broker_that_forgets_what_it_has_written_is_found():
    """The faults of a seed do not always hit a record on its way: another seed is tried then."""
    outs = (result("1", str(seed), FORGETFUL)[1] for seed in range(1, 9))
    assert any("a record is there twice" in out for out in outs)
