"""A diagnosis as one page of HTML that needs nothing else: answer, rounds, and who owned what when."""

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from html import escape

from rebalance_lab.verdicts.picture import trace_svg
from rebalance_lab.verdicts.tables import page
from rebalance_logs.causes import Diagnosis
from rebalance_logs.reading import Logs
from rebalance_logs.report import file_lines, round_lines, sentences, title

MOST_LANES = 40


def as_html(logs: Logs, shifts: Sequence[int], diagnoses: Sequence[Diagnosis], zone: tzinfo) -> str:
    """Return the page."""
    body = "".join(_group(diagnosis, logs.names, zone) for diagnosis in diagnoses)
    files = "\n".join(file_lines(logs.files, shifts))
    body = body or "<p>No line of these logs is about a group that rebalances.</p>"
    return page("What happened to the group", f"{body}<h2>Files</h2><pre>{escape(files)}</pre>")


def _group(diagnosis: Diagnosis, places: Sequence[str], zone: tzinfo) -> str:
    return "".join(_parts(diagnosis, places, zone))


def _parts(diagnosis: Diagnosis, places: Sequence[str], zone: tzinfo) -> Iterator[str]:
    yield f"<h1>{escape(diagnosis.group.group)}</h1>"
    yield f"<p>{escape(' · '.join(title(diagnosis, zone)))}</p>"
    yield f"<pre>{escape(chr(10).join(sentences(diagnosis, places)))}</pre>"
    if diagnosis.trace.started.topics:
        yield trace_svg(diagnosis.trace, most_lanes=MOST_LANES)
    yield f"<h2>Rounds</h2><pre>{escape(chr(10).join(round_lines(diagnosis, zone)))}</pre>"
