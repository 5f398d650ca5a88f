"""A trace as one static picture: who worked on which partition when."""

from coordinator_core.reports.picture import ownership_svg
from coordinator_core.traces.history import History
from coordinator_core.traces.trace import Trace


def trace_svg(trace: Trace, *, most_lanes: int) -> str:
    """An SVG document of a whole run; of more partitions than `most_lanes` the first, as its title says."""
    history = History(trace)
    lanes = dict(sorted(history.spans.items())[:most_lanes])
    title = f"{trace.scenario} under {trace.strategy}"
    if len(history.spans) > most_lanes:
        title += f" (the first {most_lanes} of {len(history.spans):,} partitions)"
    return ownership_svg(lanes, title=title, from_ms=0, to_ms=trace.started.duration_ms, marks=history.marks)
