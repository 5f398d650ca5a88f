"""The display of traces without widgets: a picture and plain text."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from coordinator_core.model import NO_GENERATION, GroupAssignment, GroupSubscription
from coordinator_core.reports.comparison import Comparison
from coordinator_core.reports.comparison_formats import as_html
from coordinator_core.reports.picture import trace_svg
from coordinator_core.reports.tables import Cell, html_table
from coordinator_core.traces.rounds import rounds
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.words import sentence

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MOST_LANES = 60
"""The most lanes of a static picture."""


def picture(trace: Trace) -> str:
    """Return the owners of partitions over time as an SVG element."""
    return trace_svg(trace, most_lanes=MOST_LANES)


def image(trace: Trace) -> str:
    """Return the picture as an image in HTML, which notebooks that are not trusted show as well."""
    title = escape(f"{trace.scenario} under {trace.strategy}")
    data = b64encode(picture(trace).encode()).decode()
    return f'<img alt="{title}" src="data:image/svg+xml;base64,{data}">'


def words(trace: Trace) -> str:
    """Describe a trace in a few lines: one sentence for each round."""
    found = rounds(trace)
    lines = [f"{trace.scenario} under {trace.strategy}, seed {trace.started.seed}"]
    lines += [f"  {sentence(entry, after)}" for entry, after in zip_longest(found, found[1:])]
    lines.append(
        f"ended {trace.ended.group_state} in generation {trace.ended.generation}"
        if trace.ended.group_state
        else "no member tried to join"
    )
    return "\n".join(lines)


def alert(error: object) -> str:
    """Write an error in the colour of the theme for errors."""
    return f'<span role="alert" style="color: var(--jp-error-color1, #b00020)">{escape(str(error))}</span>'


def assignment_html(assignment: GroupAssignment) -> str:
    """Write an assignment as a table with a row for each member."""
    rows = [(member, str(len(given)), _listed(given)) for member, given in assignment.items()]
    return _table(("member", "partitions", ""), rows)


def group_html(group: GroupSubscription) -> str:
    """Write the subscriptions of a group as a table. A field that no member has gets no column."""
    columns = {
        "topics": [", ".join(member.topics) for member in group.values()],
        "owned": [_listed(member.owned) for member in group.values()],
        "generation": [
            "" if member.generation == NO_GENERATION else str(member.generation) for member in group.values()
        ],
        "instance id": [member.instance_id or "" for member in group.values()],
        "rack": [member.rack or "" for member in group.values()],
        "capacity": ["" if m.capacity is None else f"{m.capacity:g}" for m in group.values()],
    }
    kept = {name: column for name, column in columns.items() if name == "topics" or any(column)}
    return _table(("member", *kept), list(zip(group, *kept.values(), strict=True)))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return html_table(head, [[Cell(text, left=True) for text in row] for row in rows])


def _listed(given: Any, most: int = 40) -> str:
    names = [f"{topic}-{number}" for topic, number in given]
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def register_formatters(ipython: "InteractiveShell") -> None:
    """Register formatters, by which IPython displays traces, comparisons, assignments and groups."""
    formatters: Any = getattr(ipython.display_formatter, "formatters", None)
    formatters["image/svg+xml"].for_type(Trace, picture)
    formatters["text/plain"].for_type(Trace, lambda trace, printer, _: printer.text(words(trace)))
    formatters["text/html"].for_type(Comparison, as_html)
    formatters["text/html"].for_type(GroupAssignment, assignment_html)
    formatters["text/html"].for_type(GroupSubscription, group_html)
