"""How traces look where no widget runs: a picture and plain words."""

from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from coordinator_core.model import NO_GENERATION, GroupAssignment, GroupSubscription
from coordinator_core.reports.comparison import Comparison, as_html
from coordinator_core.reports.picture import trace_svg
from coordinator_core.reports.tables import Cell, html_table
from coordinator_core.traces.rounds import rounds
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.words import sentence

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MOST_LANES = 60
"""Lanes of a static picture."""


def picture(trace: Trace) -> str:
    """Who worked on which partition when, as an SVG element."""
    return trace_svg(trace, most_lanes=MOST_LANES)


def words(trace: Trace) -> str:
    """A trace in a few lines: a sentence a round."""
    found = rounds(trace)
    lines = [f"{trace.scenario} under {trace.strategy}, seed {trace.started.seed}"]
    lines += [f"  {sentence(each, after)}" for each, after in zip_longest(found, found[1:])]
    lines.append(
        f"ended {trace.ended.group_state} in generation {trace.ended.generation}"
        if trace.ended.group_state
        else "nobody ever asked to join"
    )
    return "\n".join(lines)


def alert(problem: object) -> str:
    """What is wrong, in the colour that the theme has for it."""
    return f'<span role="alert" style="color: var(--jp-error-color1, #b00020)">{escape(str(problem))}</span>'


def assignment_html(assignment: GroupAssignment) -> str:
    """A member a row, with what it is given."""
    rows = [(member, str(len(given)), _listed(given)) for member, given in assignment.items()]
    return _table(("member", "partitions", ""), rows)


def group_html(group: GroupSubscription) -> str:
    """A member a row, with what it said when it joined; what nobody said has no column."""
    said = {
        "topics": [", ".join(each.topics) for each in group.values()],
        "owned": [_listed(each.owned) for each in group.values()],
        "generation": [
            "" if each.generation == NO_GENERATION else str(each.generation) for each in group.values()
        ],
        "instance id": [each.instance_id or "" for each in group.values()],
        "rack": [each.rack or "" for each in group.values()],
        "capacity": ["" if each.capacity is None else f"{each.capacity:g}" for each in group.values()],
    }
    kept = {name: column for name, column in said.items() if name == "topics" or any(column)}
    return _table(("member", *kept), list(zip(group, *kept.values(), strict=True)))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return html_table(head, [[Cell(text, left=True) for text in row] for row in rows])


def _listed(given: Any, most: int = 40) -> str:
    names = [f"{topic}-{number}" for topic, number in given]
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def register_formatters(ipython: "InteractiveShell") -> None:
    """Show traces, comparisons, assignments and groups so, wherever IPython displays one."""
    formatters: Any = getattr(ipython.display_formatter, "formatters", None)
    formatters["image/svg+xml"].for_type(Trace, picture)
    formatters["text/plain"].for_type(Trace, lambda trace, printer, _: printer.text(words(trace)))
    formatters["text/html"].for_type(Comparison, as_html)
    formatters["text/html"].for_type(GroupAssignment, assignment_html)
    formatters["text/html"].for_type(GroupSubscription, group_html)
