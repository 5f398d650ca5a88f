"""What a client in the trace of logs owns, and the events of it."""

from coordinator_core.protocol import events as ev
from rebalance_logs.holders import Holder


def test_a_client_that_ended_owns_nothing_when_it_starts_again():
    holder = Holder("c")
    for at_ms in (0, 20):
        holder.start(at_ms)
        holder.own(at_ms + 1, {"t": [0, 1]})
        holder.stop(at_ms + 9, "crashed")
    added = [event.added for _, event in holder.events if isinstance(event, ev.Assigned)]
    assert added == [{"t": [0, 1]}] * 2
