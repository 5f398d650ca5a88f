"""The trace as a file."""

import pickle

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.traces.trace import Trace, read_trace


def trace_of(protocol):
    started = ev.RunStarted(scenario="s", strategy="x", seed=1, duration_ms=9, topics={}, protocol=protocol)
    ended = ev.RunEnded(group_state="Stable", generation=1, messages={})
    return Trace((ev.TraceEvent(0, started), ev.TraceEvent(9, ended)))


@pytest.mark.parametrize(("written", "protocol"), [("", "classic"), ("toy", "toy")])
def test_the_protocol_of_a_trace_is_written_unless_it_is_the_default_one(tmp_path, written, protocol):
    trace = trace_of(written)
    assert trace.protocol == protocol
    assert (b"protocol" in trace.encode()) == bool(written)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(trace.encode())
    for other in (read_trace(path), pickle.loads(pickle.dumps(trace))):
        assert (other.protocol, other.encode()) == (protocol, trace.encode())
