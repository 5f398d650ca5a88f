"""A static picture of a run: a lane for each partition, coloured by its owner, hatched while it has none.

While several members own a partition, each has a part of the height of the lane; the letters are on a white
outline.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. The letter of the owner is
in each cell, so that the picture can be read without colours.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

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
_LETTER_WIDTH = 6
_MARK_HEIGHT = 12
_LEGEND_COLUMNS = 6
_LEGEND_WIDTH = 126
_LEGEND_HEIGHT = 18
_LONGEST_NAME = 17


def trace_svg(trace: Trace, *, most_lanes: int) -> str:
    """Draw a run as an SVG document. Of more partitions than `most_lanes`, the first ones are drawn."""
    history = History(trace)
    named = [
        TopicPartition(topic, n) for topic in sorted(history.topics) for n in range(history.topics[topic])
    ]
    lanes = {partition: history.spans.get(partition, []) for partition in named[:most_lanes]}
    title = f"{trace.scenario} under {trace.strategy}"
    if len(named) > most_lanes:
        title += f" (the first {most_lanes} of {len(named):,} partitions)"
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
    scale = (_WIDTH - _LABEL_WIDTH - 10) / max(1, to_ms - from_ms)

    def x(at_ms: int) -> float:
        return _LABEL_WIDTH + (min(max(at_ms, from_ms), to_ms) - from_ms) * scale

    placed = [*_placed([(x(m.at_ms), m.label) for m in marks if from_ms <= m.at_ms <= to_ms])]
    lanes_top = _TOP + _MARK_HEIGHT * any(mark.row for mark in placed)
    legend_rows = len(clients) // _LEGEND_COLUMNS + 1
    body = [_frame(title, lanes_top + _LANE_HEIGHT * len(lanes) + 26 + _LEGEND_HEIGHT * legend_rows)]
    for row, partition in enumerate(sorted(lanes)):
        top = lanes_top + row * _LANE_HEIGHT
        label = escape(f"{partition.topic}-{partition.partition}")
        body.append(f'<text x="{_LABEL_WIDTH - 8}" y="{top + 13}" text-anchor="end">{label}</text>')
        lane_width = x(to_ms) - _LABEL_WIDTH
        body.append(_box(_LABEL_WIDTH, top, lane_width, "url(#gap)", f"{label}: nobody"))
        for since_ms, until_ms, owners in _stretches(lanes[partition]):
            if until_ms <= from_ms or since_ms >= to_ms:
                continue
            left, width = x(since_ms), x(until_ms) - x(since_ms)
            names = escape(" and ".join(owners))
            hint = f"{label}: {names}, {since_ms / 1000:g} s to {until_ms / 1000:g} s"
            for part, owner in enumerate(owners):
                body.append(_box(left, top, width, colours[owner], hint, (part, len(owners))))
            if width >= _NARROWEST_LABEL * len(owners):
                shown = " ".join(letters[owner] for owner in owners)
                ground = colours[owners[0]] if len(owners) == 1 else ""
                body.append(_cell_letter(left + width / 2, top + 13, shown, ground))
    bottom = lanes_top + _LANE_HEIGHT * len(lanes)
    body += [_drawn(mark, lanes_top, bottom) for mark in placed]
    body.append(_legend(clients, colours, letters, bottom + 34))
    return "\n".join([*body, "</svg>", ""])


def _stretches(spans: Sequence[Span]) -> Iterator[tuple[int, int, list[str]]]:
    """Return the times in which a partition has the same owners, those that took it over first in front."""
    ordered = sorted(spans, key=lambda span: (span.from_ms, span.to_ms))
    edges = sorted({at_ms for span in ordered for at_ms in (span.from_ms, span.to_ms)})
    held: list[Span] = []
    begun = 0
    for from_ms, to_ms in pairwise(edges):
        while begun < len(ordered) and ordered[begun].from_ms <= from_ms:
            held.append(ordered[begun])
            begun += 1
        held = [span for span in held if span.to_ms > from_ms]
        if held:
            yield from_ms, to_ms, [span.client for span in held]


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


def _box(left: float, top: float, width: float, fill: str, hint: str, part: tuple[int, int] = (0, 1)) -> str:
    """Draw a box in a lane. ``part``: its number from above, and the number of boxes that share the lane."""
    number, count = part
    height = (_LANE_HEIGHT - 3) / count
    return (
        f'<rect x="{left:.1f}" y="{top + number * height:g}" width="{max(width, 0.5):.1f}" '
        f'height="{height:g}" fill="{fill}" stroke="#444" stroke-width="0.5"><title>{hint}</title></rect>'
    )


def _cell_letter(middle: float, baseline: int, letter: str, colour: str) -> str:
    """Draw the letters of owners on a colour, or on a white outline if there is none."""
    ink = "#fff" if colour in _DARK else "#000"
    outline = "" if colour else ' stroke="#fff" stroke-width="3" paint-order="stroke" font-weight="600"'
    return f'<text x="{middle:.1f}" y="{baseline}" text-anchor="middle" fill="{ink}"{outline}>{letter}</text>'


class _Mark(NamedTuple):
    """The place of a mark. ``row``: that of its label, counted upwards, or None without room for a label."""

    at: float
    label: str
    row: int | None
    is_left: bool


def _placed(marks: Sequence[tuple[float, str]]) -> Iterator[_Mark]:
    """Place labels right of their marks, or left if the next mark is too near, or else in a second row."""
    used, used_above = 0.0, 0.0
    for (at, label), (follows, _) in pairwise([*marks, (_WIDTH, "")]):
        width = _LETTER_WIDTH * len(label) + 6
        if used <= at <= follows - width:
            used = at + width
            yield _Mark(at, label, 0, is_left=False)
        elif at - used >= width:
            used = at
            yield _Mark(at, label, 0, is_left=True)
        elif at >= used_above:
            used_above = at + width
            yield _Mark(at, label, 1, is_left=False)
        else:
            yield _Mark(at, label, None, is_left=False)


def _drawn(mark: _Mark, top: int, bottom: int) -> str:
    at, label = f"{mark.at:.1f}", escape(mark.label)
    highest = top - 6 - _MARK_HEIGHT * (mark.row or 0)
    line = f'<line x1="{at}" y1="{highest}" x2="{at}" y2="{bottom}" stroke="#000" stroke-dasharray="3 2"'
    if mark.row is None:
        return f"{line}><title>{label}</title></line>"
    x, anchor = (mark.at - 3, ' text-anchor="end"') if mark.is_left else (mark.at + 3, "")
    return f'{line}/><text x="{x:.1f}" y="{highest - 2}"{anchor}>{label}</text>'


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
