"""Equal scenarios give equal traces, whatever the order in which the process hashes."""

import pytest

from rebalance_lab.cli.compare import DEFAULT_STRATEGIES
from tests.places import SCENARIOS
from tests.rebalance_lab.cli.commands import in_a_process

SEEDS = ("0", "4242")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """All four strategies on the scenario with the most kinds of events, once for each hash seed."""
    folders = {}
    for seed in SEEDS:
        folders[seed] = tmp_path_factory.mktemp(f"seed-{seed}")
        scenario = SCENARIOS / "mixed-subscriptions.yaml"
        options = ["-j", "1", "--seed", "1", "--trace", folders[seed]]  # the trace is of one seed only
        done = in_a_process("compare", scenario, *options, env={"PYTHONHASHSEED": seed})
        assert (done.returncode, done.stderr) == (0, b"")
    return folders


@pytest.mark.slow
@pytest.mark.parametrize("strategy", DEFAULT_STRATEGIES)
def test_a_trace_is_the_same_byte_for_byte_under_every_hash_seed(traces, strategy):
    """C-84: two processes that hash differently write the same trace."""
    first, second = ((traces[seed] / f"mixed-subscriptions.{strategy}.jsonl").read_bytes() for seed in SEEDS)
    assert len(first.splitlines()) > 300
    assert first == second
