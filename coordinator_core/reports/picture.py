"""A static picture of a run: a lane for each partition, coloured by its owner, hatched while it has none.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. The letter of the owner is
in each cell, so that the picture can be read without colours.
"""

from collections.abc import Mapping, Sequence
from html import escape

from coordinator_core.model import TopicPartition
from coordinator_core.traces.history import History, Mark, Span
from coordinator_core.traces.trace import Trace

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_DARK = frozenset({"#0072B2"})
"""The colours on which white text is easier to read than black text."""

_LANE_HEIGHT = 18
_LABEL_WIDTH = 90
_WIDTH = 860
_TOP = 44
_NARROWEST_LABEL = 16.0
_LEGEND_COLUMNS = 6
_LEGEND_WIDTH = 126
_LEGEND_HEIGHT = 18
_LONGEST_NAME = 17


def trace_svg(trace: Trace, *, most_lanes: int) -> str:
    """Draw a run as an SVG document. Of more partitions than `most_lanes`, the first ones are drawn."""
    history = History(trace)
    lanes = dict(sorted(history.spans.items())[:most_lanes])
    title = f"{trace.scenario} under {trace.strategy}"
    if len(history.spans) > most_lanes:
        title += f" (the first {most_lanes} of {len(history.spans):,} partitions)"
    return ownership_svg(lanes, title=title, from_ms=0, to_ms=trace.started.duration_ms, marks=history.marks)


def ownership_svg(
    lanes: Mapping[TopicPartition, Sequence[Span]],
    *,
    title: str,
    from_ms: int,
    to_ms: int,
    marks: Sequence[Mark] = (),
) -> str:
    """Draw the owners of partitions between two times as an SVG document, 860 units wide, 18 for each lane.

    Spans that reach beyond the window are cut to it. Clients are coloured in sorted order.
    """
    clients = sorted({span.client for spans in lanes.values() for span in spans})
    colours = {client: PALETTE[i % len(PALETTE)] for i, client in enumerate(clients)}
    letters = {client: _letter(i) for i, client in enumerate(clients)}
    legend_rows = len(clients) // _LEGEND_COLUMNS + 1
    height = _TOP + _LANE_HEIGHT * len(lanes) + 26 + _LEGEND_HEIGHT * legend_rows
    scale = (_WIDTH - _LABEL_WIDTH - 10) / max(1, to_ms - from_ms)

    def x(at_ms: int) -> float:
        return _LABEL_WIDTH + (min(max(at_ms, from_ms), to_ms) - from_ms) * scale

    body = [_frame(title, height)]
    for row, partition in enumerate(sorted(lanes)):
        top = _TOP + row * _LANE_HEIGHT
        label = escape(f"{partition.topic}-{partition.partition}")
        body.append(f'<text x="{_LABEL_WIDTH - 8}" y="{top + 13}" text-anchor="end">{label}</text>')
        lane_width = x(to_ms) - _LABEL_WIDTH
        body.append(_box(_LABEL_WIDTH, top, lane_width, "url(#gap)", f"{label}: nobody"))
        for span in lanes[partition]:
            if span.to_ms <= from_ms or span.from_ms >= to_ms:
                continue
            left, width = x(span.from_ms), x(span.to_ms) - x(span.from_ms)
            colour = colours[span.client]
            hint = f"{label}: {escape(span.client)}, {span.from_ms / 1000:g} s to {span.to_ms / 1000:g} s"
            body.append(_box(left, top, width, colour, hint))
            if width >= _NARROWEST_LABEL:
                body.append(_cell_letter(left + width / 2, top + 13, letters[span.client], colour))
    bottom = _TOP + _LANE_HEIGHT * len(lanes)
    body += [_mark(x(m.at_ms), bottom, m.label) for m in marks if from_ms <= m.at_ms <= to_ms]
    body.append(_legend(clients, colours, letters, bottom + 34))
    return "\n".join([*body, "</svg>", ""])


def _frame(title: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" font-size="11">\n'
        '<defs><pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
        '<rect width="2" height="6" fill="#bbb"/></pattern></defs>\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n'
        f'<text x="10" y="18" font-size="14" font-weight="600">{escape(title)}</text>'
    )


def _box(left: float, top: float, width: float, fill: str, hint: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{max(width, 0.5):.1f}" height="{_LANE_HEIGHT - 3}" '
        f'fill="{fill}" stroke="#444" stroke-width="0.5"><title>{hint}</title></rect>'
    )


def _cell_letter(middle: float, baseline: int, letter: str, colour: str) -> str:
    ink = "#fff" if colour in _DARK else "#000"
    return f'<text x="{middle:.1f}" y="{baseline}" text-anchor="middle" fill="{ink}">{letter}</text>'


def _mark(at: float, bottom: int, label: str) -> str:
    return (
        f'<line x1="{at:.1f}" y1="{_TOP - 6}" x2="{at:.1f}" y2="{bottom}" stroke="#000" '
        f'stroke-dasharray="3 2"/><text x="{at + 3:.1f}" y="{_TOP - 8}">{escape(label)}</text>'
    )


def _legend(
    clients: Sequence[str], colours: Mapping[str, str], letters: Mapping[str, str], baseline: int
) -> str:
    """Draw the legend in rows. Its last entry is for partitions without an owner."""
    entries = [(colours[client], f"{letters[client]} {client}") for client in clients]
    parts = []
    for i, (fill, label) in enumerate([*entries, ("url(#gap)", "nobody")]):
        row, column = divmod(i, _LEGEND_COLUMNS)
        left, at = _LABEL_WIDTH + column * _LEGEND_WIDTH, baseline + row * _LEGEND_HEIGHT
        shown = label if len(label) <= _LONGEST_NAME else label[: _LONGEST_NAME - 1] + "…"
        parts.append(
            f'<rect x="{left}" y="{at - 10}" width="12" height="12" fill="{fill}" stroke="#444" '
            f'stroke-width="0.5"/><text x="{left + 16}" y="{at}">{escape(shown)}</text>'
        )
    return "\n".join(parts)


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number)
