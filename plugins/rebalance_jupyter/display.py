"""The display of traces without widgets: a picture and plain text."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from coordinator_core.model import NO_GENERATION, GroupAssignment, GroupSubscription
from rebalance_jupyter.png import png_of
from rebalance_jupyter.words import sentence
from rebalance_lab.traces.history import Mark
from rebalance_lab.traces.rounds import rounds
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.explaining import Explanation
from rebalance_lab.verdicts.picture import comparison_svg
from rebalance_lab.verdicts.screen import Screen, head, rest
from rebalance_lab.verdicts.screen_formats import as_html
from rebalance_lab.verdicts.tables import Cell, html_table

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MOST_LANES = 48
"""The most lanes of a static picture."""

_MARK = "> .jp-OutputArea-output > .rbl-saved"
"""The mark as an output of its own: an Output widget, such as that of interact, contains outputs in turn."""
_BELOW = f".jp-OutputArea-child:has({_MARK})"
SEAM = (
    '<div class="rbl-saved"></div><style>'
    f"{_BELOW},"
    f".jp-OutputArea:has(.rbl) > {_BELOW} + .jp-OutputArea-child,"
    f".jp-OutputArea-child:has(+ .jp-OutputArea-child {_MARK}):not(:has(.rbl)),"
    ".cell_container:has(.rbl)"
    " .output_container:has(.rbl-saved):not(:has(.jp-OutputArea-child)) + .output_container"
    "{display:none}</style>"
)
"""Stands between a widget and its picture, in JupyterLab, in VS Code, and on pages of nbconvert. It hides the
picture while the widget runs, and the message of a widget that does not."""


def picture(traces: Sequence[Trace], errors: Sequence[str] = (), notes: Sequence[Mark] = ()) -> str:
    """Return the owners of partitions over time and the main figures of traces as an SVG document."""
    return comparison_svg(traces, most_lanes=MOST_LANES, errors=errors, notes=notes)


def pictured(
    traces: Sequence[Trace], errors: Sequence[str] = (), notes: Sequence[Mark] = ()
) -> dict[str, Any]:
    """Return the picture in all forms that places without widgets show.

    A notebook that is not trusted shows PNG and no SVG. Without a program for PNG it gets HTML, which some
    code hosts do not show.
    """
    svg = picture(traces, errors, notes)
    try:
        return {"image/svg+xml": svg, "image/png": b64encode(png_of(svg, scale=1.5)).decode()}
    except InputError:
        title = escape(", ".join(dict.fromkeys(trace.scenario for trace in traces)))
        data = b64encode(svg.encode()).decode()
        image = f'<img alt="{title}" src="data:image/svg+xml;base64,{data}">'
        return {"image/svg+xml": svg, "text/html": image}


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


def in_lines(screen: Screen) -> str:
    """Return the head of an answer, and why, what to try and what to know."""
    return "\n".join([*head(screen), *(f"{name}: {text}" for name, text in rest(screen))])


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


def explanation_html(explanation: Explanation) -> str:
    """Write an explanation: the differences, and below them each run with its reasons as a list."""
    parts = [f"<p>{escape(sentence)}</p>" for sentence in explanation.differences]
    for label, (costs, *reasons) in explanation.sentences.items():
        items = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
        parts.append(f"<p><b>{escape(label)}</b>: {escape(costs)}</p>" + f"<ul>{items}</ul>" * bool(items))
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return html_table(head, [[Cell(text, left=True) for text in row] for row in rows])


def _listed(given: Any, most: int = 40) -> str:
    names = [f"{topic}-{number}" for topic, number in given]
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def register_formatters(ipython: "InteractiveShell") -> None:
    """Register formatters, by which IPython displays traces, comparisons, assignments and groups."""
    formatters: Any = getattr(ipython.display_formatter, "formatters", None)
    formatters["image/svg+xml"].for_type(Trace, lambda trace: picture([trace]))
    formatters["text/plain"].for_type(Trace, lambda trace, printer, _: printer.text(words(trace)))
    formatters["text/plain"].for_type(
        Explanation, lambda made, printer, _: printer.text("\n".join(made.lines))
    )
    formatters["text/html"].for_type(Explanation, explanation_html)
    formatters["text/plain"].for_type(Screen, lambda made, printer, _: printer.text(in_lines(made)))
    formatters["text/html"].for_type(Screen, as_html)
    formatters["text/html"].for_type(GroupAssignment, assignment_html)
    formatters["text/html"].for_type(GroupSubscription, group_html)
