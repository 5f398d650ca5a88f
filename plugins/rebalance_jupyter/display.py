"""How traces look where no widget runs: a picture and plain words."""

from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from coordinator_core.model import GroupAssignment
from coordinator_core.scoring.comparison import Comparison, as_html
from coordinator_core.scoring.rounds import Round, told
from coordinator_core.scoring.trace_picture import trace_svg
from coordinator_core.simulation.trace import Trace
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
    rounds = [each for each in told(trace) if isinstance(each, Round)]
    lines = [f"{trace.scenario} under {trace.strategy}, seed {trace.started.seed}"]
    lines += [f"  {sentence(each, after)}" for each, after in zip_longest(rounds, rounds[1:])]
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
    rows = "".join(
        f"<tr><th scope=row style='text-align:left'>{escape(member)}</th><td>{len(given)}</td>"
        f"<td style='text-align:left'>{escape(_listed(given))}</td></tr>"
        for member, given in assignment.items()
    )
    head = "<tr><th scope=col>member</th><th scope=col>partitions</th><th scope=col></th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _listed(given: Any, most: int = 40) -> str:
    names = [f"{topic}-{number}" for topic, number in given]
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def register_formatters(ipython: "InteractiveShell") -> None:
    """Show traces, comparisons and assignments so, wherever IPython displays one."""
    formatters: Any = getattr(ipython.display_formatter, "formatters", None)
    formatters["image/svg+xml"].for_type(Trace, picture)
    formatters["text/plain"].for_type(Trace, lambda trace, printer, _: printer.text(words(trace)))
    formatters["text/html"].for_type(Comparison, as_html)
    formatters["text/html"].for_type(GroupAssignment, assignment_html)
