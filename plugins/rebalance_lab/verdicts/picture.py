"""Static pictures of runs: a lane for each partition, coloured by its owner, hatched while it has none.

Several runs of one scenario are drawn one above another, on one axis and with one legend. Below the name of
a strategy are its main figures; the best ones are bold. While several members own a partition, each has a
part of the height of the lane. A time without an owner is at least two units wide, however short it is.

The letter of the owner is in each cell, so that the picture can be read without colours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from html import escape
from itertools import pairwise
from math import isnan
from textwrap import wrap
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.traces.history import History, Mark
from rebalance_lab.traces.ledger import Span
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.looks import Look, looks_of, members_of
from rebalance_lab.verdicts.of_traces import by_candidate, screen_of_histories
from rebalance_lab.verdicts.tables import as_text

_GAP, _SHORT_GAP, _BEST, _FAULT = "url(#gap) #ddd", "#222", "#0072B2", "#B00020"
_OUTLINE = 'stroke="#fff" stroke-width="3" paint-order="stroke"'
_NARROWEST_GAP = 2.0
_NARROWEST_HATCH = 5.0
"""A narrower gap is black: a hatch could not be seen in it."""

FONTS = "system-ui, Segoe UI, Roboto, Helvetica, Arial, Liberation Sans, DejaVu Sans, Noto Sans, sans-serif"
"""Some programs know neither the first name nor the last one."""

_LANE_HEIGHT = 18
_LABEL_WIDTH = 96
_WIDTH = 860
_RIGHT = _WIDTH - 10
_NARROWEST_LABEL = 18.0
_LETTER_WIDTH = 7
_LONGEST_LABEL = (_LABEL_WIDTH - 10) // _LETTER_WIDTH
_MARK_HEIGHT = 14
_NUMBER_WIDTH = 36
_LINE_HEIGHT = 17
_LEGEND_COLUMNS = 5
_LEGEND_WIDTH = 150
_LEGEND_HEIGHT = 18
_LONGEST_NAME = 18
_SENTENCE_WIDTH = 120

_FIGURES: Mapping[str, tuple[str, int]] = {
    "stopped_partition_seconds": ("stopped {} partition seconds", 235),
    "longest_stop_seconds": ("longest stop {} s", 155),
    "moved_partitions": ("{} moved partitions", 165),
    "rounds": ("{} rounds", 95),
    "max_lag": ("lag up to {} records", 0),
}
"""The metrics of a picture: their words, and their widths."""

_TICKS_MS = [
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(seconds * 1_000 for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800)),
    *(hours * 3_600_000 for hours in (1, 2, 3, 6, 12, 24, 48, 120, 240, 480, 1_200, 2_400, 12_000, 24_000)),
]
_MOST_TICKS = 10


class Shown(NamedTuple):
    """A figure with its words, its width in the picture, and whether it is the best one."""

    text: str
    width: int = 0
    is_best: bool = False


@dataclass(frozen=True)
class Panel:
    """A run in a picture: the owners of its partitions, its name, and its figures."""

    lanes: Mapping[TopicPartition, Sequence[Span]]
    name: str = ""
    figures: Sequence[Shown] = ()


def trace_svg(trace: Trace, *, most_lanes: int, registry: Registry | None = None) -> str:
    """Draw a run as an SVG document. See `comparison_svg`."""
    return comparison_svg([trace], most_lanes=most_lanes, registry=registry)


def comparison_svg(
    traces: Sequence[Trace],
    *,
    most_lanes: int,
    errors: Sequence[str] = (),
    notes: Sequence[Mark] = (),
    registry: Registry | None = None,
) -> str:
    """Draw runs as an SVG document, one above another: their partitions, changes from outside, and figures.

    Of runs that differ only in the seed the first is drawn, and the figures are medians of all of them.
    Of more than ``most_lanes`` partitions in all runs together, those that changed owners most often are
    drawn, the same ones of each run, and the title has their number. Below the title are the answers
    of the comparison, the findings of the runs, and ``errors`` of runs that failed. ``notes`` have flags.
    """
    registry = registry or default_registry()
    runs = {name: [History(t, registry) for t in own] for name, own in by_candidate(traces).items()}
    screen = screen_of_histories(runs, registry)
    histories = [own[0] for own in runs.values()]
    shown, count = _chosen(histories, max(1, most_lanes // max(1, len(histories))))
    several = len(histories) > 1
    scenarios = list(dict.fromkeys(trace.scenario for trace in traces))
    title = ", ".join(scenarios) or "nothing to show"
    if len(histories) == 1:
        title += f" under {traces[0].strategy}"
    if len(shown) < count:
        title += f" ({len(shown)} of {count:,} partitions: those that changed owners most often)"
    panels = [
        Panel(
            {p: history.spans.get(p, []) for p in shown if p.topic in history.topics},
            _name(history, of_several=several, named=len(scenarios) > 1),
            _figures(screen.grid, number),
        )
        for number, history in enumerate(histories)
    ]
    marks = [mark for history in histories for mark in history.marks]
    marks += [Mark(note.at_ms, f"⚑ {note.label}") for note in notes]
    return ownership_svg(
        panels,
        looks=looks_of(members_of([history.trace for history in histories])),
        title=title,
        from_ms=0,
        to_ms=max((trace.started.duration_ms for trace in traces), default=0),
        marks=sorted(dict.fromkeys(marks), key=lambda mark: mark.at_ms),
        sentences=[*(map(str, screen.verdict) if several else ()), *_seeds(screen.grid)],
        faults=[*screen.faults, *errors],
    )


def _seeds(grid: Grid) -> Iterator[str]:
    """Explain figures of several seeds."""
    first, *others = grid.units or [0]
    if others:
        yield f"Figures are medians of {1 + len(others)} seeds; the runs drawn have the seed {first}."


def _figures(grid: Grid, number: int) -> list[Shown]:
    return [
        Shown(_figure(words, as_text(median)), width, number in grid.best(Aim(name)))
        for name, (words, width) in _FIGURES.items()
        if not isnan(median := grid.median(name, number))
    ]


def _figure(words: str, figure: str) -> str:
    """Return words with a figure, in the singular if it is 1. The unit of seconds has none."""
    return (words.removesuffix("s") if figure == "1" and not words.endswith(" s") else words).format(figure)


def _name(history: History, *, of_several: bool, named: bool) -> str:
    if not of_several:
        return ""
    trace = history.trace
    return f"{trace.strategy} on {trace.scenario}" if named else trace.strategy


def _chosen(histories: Sequence[History], most: int) -> tuple[list[TopicPartition], int]:
    """Return the partitions to draw in their order, and the number of all."""
    topics = {topic: 0 for history in histories for topic in history.topics}
    for topic in topics:
        topics[topic] = max(history.topics.get(topic, 0) for history in histories)
    partitions = [TopicPartition(topic, n) for topic in sorted(topics) for n in range(topics[topic])]
    if len(partitions) <= most:
        return partitions, len(partitions)
    changes = {p: sum(len(history.spans.get(p, ())) for history in histories) for p in partitions}
    return sorted(sorted(partitions, key=lambda p: -changes[p])[:most]), len(partitions)


def ownership_svg(
    panels: Sequence[Panel],
    *,
    looks: Mapping[str, Look],
    title: str,
    from_ms: int,
    to_ms: int,
    marks: Sequence[Mark] = (),
    sentences: Sequence[str] = (),
    faults: Sequence[str] = (),
) -> str:
    """Draw the owners of partitions between two times as an SVG document, 860 units wide, 18 for each lane.

    Spans that reach beyond the window are cut to it. ``looks`` has each client of a span. The legend has
    those that own a partition, in the order of ``looks``.
    """
    owners = {span.client for panel in panels for spans in panel.lanes.values() for span in spans}
    legend = {client: look for client, look in looks.items() if client in owners}
    axis = _Axis(from_ms, to_ms)
    placed = [*_placed([(axis.x(m.at_ms), m.label) for m in marks if from_ms <= m.at_ms <= to_ms])]
    gathered = _gathered(placed)
    rows = max((mark.row for mark in placed if mark.row is not None), default=0) + bool(gathered)
    body = []
    top = 28
    for sentence, ink in [*((text, "#000") for text in sentences), *((text, _FAULT) for text in faults)]:
        for line in wrap(sentence, _SENTENCE_WIDTH):
            top += _LINE_HEIGHT
            body.append(f'<text x="10" y="{top - 6}" fill="{ink}">{escape(line)}</text>')
    headings: list[str] = []
    highest = top = top + 18 + _MARK_HEIGHT * rows
    for panel in panels:
        top += _LINE_HEIGHT * (bool(panel.name) + bool(panel.figures)) + 4 * bool(panel.name)
        headings += _heading(panel, top)
        for row, partition in enumerate(sorted(panel.lanes)):
            body += _lane(partition, panel.lanes[partition], top + row * _LANE_HEIGHT, axis, legend)
        top += _LANE_HEIGHT * len(panel.lanes) + 4 * bool(panel.name)
    body += [*(_drawn(mark, highest, top) for mark in placed), *headings]
    body += [_drawn_number(left, labels, highest - _MARK_HEIGHT * rows) for left, labels in gathered]
    body += [*_drawn_axis(axis, top), _drawn_legend(legend, top + 44)]
    height = top + 54 + _LEGEND_HEIGHT * (len(legend) // _LEGEND_COLUMNS)
    drawn = "\n".join([_frame(title, height), *body, "</svg>", ""])
    own = f"gap-{blake2s(drawn.encode(), digest_size=4).hexdigest()}"  # a page may hold several pictures
    return drawn.replace('id="gap"', f'id="{own}"').replace(f'fill="{_GAP}"', f'fill="url(#{own}) #ddd"')


@dataclass(frozen=True)
class _Axis:
    """The time axis: its window, and the place of a time in it."""

    from_ms: int
    to_ms: int

    def x(self, at_ms: int) -> float:
        """Return the place of a time; times outside of the window are at its ends."""
        scale = (_RIGHT - _LABEL_WIDTH) / max(1, self.to_ms - self.from_ms)
        return _LABEL_WIDTH + (min(max(at_ms, self.from_ms), self.to_ms) - self.from_ms) * scale


def _frame(title: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-label="{escape(title)}" '
        f'font-family="{FONTS}" font-size="13">\n'
        '<defs><pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
        '<rect width="2" height="6" fill="#999"/></pattern></defs>\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n'
        f'<text x="10" y="20" font-size="15" font-weight="600">{escape(title)}</text>'
    )


def _heading(panel: Panel, top: int) -> Iterator[str]:
    """Draw the name of a panel, and its figures in columns below it, on a white outline over the marks."""
    baseline = top - 6
    outline = 'stroke="#fff" stroke-width="4" paint-order="stroke"'
    if panel.name:
        above = baseline - _LINE_HEIGHT * bool(panel.figures)
        yield f'<text x="10" y="{above}" font-weight="600" {outline}>{escape(panel.name)}</text>'
    left = 10
    for figure in panel.figures:
        style = f'font-weight="600" fill="{_BEST}"' if figure.is_best else 'fill="#333"'
        yield f'<text x="{left}" y="{baseline}" font-size="12" {style} {outline}>{escape(figure.text)}</text>'
        left += figure.width


def _lane(
    partition: TopicPartition, spans: Sequence[Span], top: int, axis: _Axis, looks: Mapping[str, Look]
) -> Iterator[str]:
    """Draw a lane: nobody's time below, owners over it, and over them the gaps that are hard to see."""
    name = f"{partition.topic}-{partition.partition}"
    label = escape(_shortened(partition))
    yield f'<text x="{_LABEL_WIDTH - 8}" y="{top + 13}" text-anchor="end">{label}</text>'
    lane_width = axis.x(axis.to_ms) - _LABEL_WIDTH
    yield _box(_LABEL_WIDTH, top, lane_width, _GAP, escape(f"{name}: nobody"))
    stretches = [s for s in _stretches(spans) if s[1] > axis.from_ms and s[0] < axis.to_ms]
    for since_ms, until_ms, owners in stretches:
        left, width = axis.x(since_ms), axis.x(until_ms) - axis.x(since_ms)
        names = " and ".join(owners)
        hint = escape(f"{name}: {names}, {since_ms / 1000:g} s to {until_ms / 1000:g} s")
        for part, owner in enumerate(owners):
            yield _box(left, top, width, looks[owner].colour, hint, (part, len(owners)))
        if width >= _NARROWEST_LABEL * len(owners):
            shown = " ".join(looks[owner].letter for owner in owners)
            ink = looks[owners[0]].ink if len(owners) == 1 else ""
            yield _cell_letter(left + width / 2, top + 13, shown, ink)
    edges = [axis.from_ms, *(edge for since_ms, until_ms, _ in stretches for edge in (since_ms, until_ms))]
    for since_ms, until_ms in zip(edges[::2], [*edges[1::2], axis.to_ms], strict=True):
        width = axis.x(until_ms) - axis.x(since_ms)
        if 0 < width < _NARROWEST_HATCH:
            drawn = max(width, _NARROWEST_GAP)
            left = min(axis.x(since_ms) - (drawn - width) / 2, _RIGHT - drawn)
            hint = escape(f"{name}: nobody, {since_ms / 1000:g} s to {until_ms / 1000:g} s")
            yield _box(max(left, _LABEL_WIDTH), top, drawn, _SHORT_GAP, hint)


def _shortened(partition: TopicPartition) -> str:
    """Return the name of a partition, with a topic that is cut if there is no room for it."""
    number = f"-{partition.partition}"
    room = _LONGEST_LABEL - len(number)
    topic = partition.topic
    return (topic if len(topic) <= room else f"{topic[: max(1, room - 1)]}…") + number


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


def _box(left: float, top: float, width: float, fill: str, hint: str, part: tuple[int, int] = (0, 1)) -> str:
    """Draw a box in a lane. ``part``: its number from above, and the number of boxes that share the lane."""
    number, count = part
    height = (_LANE_HEIGHT - 3) / count
    line = "" if fill == _SHORT_GAP else ' stroke="#444" stroke-width="0.5"'
    return (
        f'<rect x="{left:.1f}" y="{top + number * height:g}" width="{max(width, 0.5):.1f}" '
        f'height="{height:g}" fill="{fill}"{line}><title>{hint}</title></rect>'
    )


def _cell_letter(middle: float, baseline: int, letter: str, ink: str) -> str:
    """Draw the letters of owners: in ink, or in black on a white outline if there is none."""
    style = f'fill="{ink}"' if ink else f'fill="#000" {_OUTLINE} font-weight="600"'
    return f'<text x="{middle:.1f}" y="{baseline}" text-anchor="middle" {style}>{letter}</text>'


class _Mark(NamedTuple):
    """The place of a mark. ``row``: that of its label, counted upwards, or None without room for a label."""

    at: float
    label: str
    row: int | None
    is_left: bool


def _placed(marks: Sequence[tuple[float, str]]) -> Iterator[_Mark]:
    """Place labels right of their marks, or left if the next mark is too near, or else in a second row.

    Those that have no room there, either, have no row: see `_gathered`.
    """
    used, used_above = 0.0, 0.0
    for (at, label), (follows, _) in pairwise([*marks, (_WIDTH, "")]):
        width = _LETTER_WIDTH * len(label) + 6
        if used <= at <= follows - width:
            used = at + width
            yield _Mark(at, label, 0, is_left=False)
        elif at - used >= width:
            used = at
            yield _Mark(at, label, 0, is_left=True)
        elif used_above <= at <= _WIDTH - width:
            used_above = at + width
            yield _Mark(at, label, 1, is_left=False)
        else:
            yield _Mark(at, label, None, is_left=False)


def _gathered(placed: Sequence[_Mark]) -> list[tuple[float, list[str]]]:
    """Return the labels for which there is no room, by the places at which their numbers have room."""
    groups: list[tuple[float, list[str]]] = []
    for mark in placed:
        if mark.row is None:
            left = min(mark.at, _WIDTH - _NUMBER_WIDTH)
            if not groups or left >= groups[-1][0] + _NUMBER_WIDTH:
                groups.append((left, []))
            groups[-1][1].append(mark.label)
    return groups


def _drawn_number(left: float, labels: Sequence[str], highest: int) -> str:
    """Draw the number of labels, with all of them as its title, in the row above the others."""
    title = escape(", ".join(labels))
    return f'<text x="{left:.1f}" y="{highest - 8}">+{len(labels)}<title>{title}</title></text>'


def _drawn(mark: _Mark, top: int, bottom: int) -> str:
    at, label = f"{mark.at:.1f}", escape(mark.label)
    highest = top - 6 - _MARK_HEIGHT * (mark.row or 0)
    line = f'<line x1="{at}" y1="{highest}" x2="{at}" y2="{bottom}" stroke="#000" stroke-dasharray="3 2"'
    if mark.row is None:
        return f"{line}><title>{label}</title></line>"
    x, anchor = (mark.at - 3, ' text-anchor="end"') if mark.is_left else (mark.at + 3, "")
    return f'{line}/><text x="{x:.1f}" y="{highest - 2}"{anchor}>{label}</text>'


def _drawn_axis(axis: _Axis, top: int) -> Iterator[str]:
    """Draw the axis with at most ten ticks at round times, and its unit at the end of its line of labels."""
    yield f'<path d="M{_LABEL_WIDTH} {top + 2}H{_RIGHT}" stroke="#000"/>'
    step_ms = next((s for s in _TICKS_MS if s * _MOST_TICKS >= axis.to_ms - axis.from_ms), _TICKS_MS[-1])
    for at_ms in range(-(-axis.from_ms // step_ms) * step_ms, axis.to_ms + 1, step_ms):
        x = axis.x(at_ms)
        anchor = "end" if x > _RIGHT - 20 else "middle"
        yield f'<path d="M{x:.1f} {top + 2}v5" stroke="#000"/>'
        yield f'<text x="{x:.1f}" y="{top + 20}" text-anchor="{anchor}">{_written(at_ms)}</text>'


def _written(at_ms: int) -> str:
    """Write a time as scenarios do, in two units if it needs them: ``90s`` is ``1m 30s``."""
    parts, rest = [], at_ms
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, rest = divmod(rest, unit_ms)
        parts += [f"{count}{unit}"] if count else []
    return " ".join(parts) or "0s"


def _drawn_legend(legend: Mapping[str, Look], baseline: int) -> str:
    """Draw the legend in rows. Its last entry is for partitions without an owner."""
    entries = [(look.colour, f"{look.letter} {client}") for client, look in legend.items()]
    parts = []
    for i, (fill, label) in enumerate([*entries, (_GAP, "nobody")]):
        row, column = divmod(i, _LEGEND_COLUMNS)
        left, at = _LABEL_WIDTH + column * _LEGEND_WIDTH, baseline + row * _LEGEND_HEIGHT
        shown = label if len(label) <= _LONGEST_NAME else label[: _LONGEST_NAME - 1] + "…"
        if fill == _GAP:
            parts.append(f'<rect x="{left - 6}" y="{at - 11}" width="2" height="12" fill="{_SHORT_GAP}"/>')
        parts.append(
            f'<rect x="{left}" y="{at - 11}" width="12" height="12" fill="{fill}" stroke="#444" '
            f'stroke-width="0.5"/><text x="{left + 17}" y="{at}">{escape(shown)}</text>'
        )
    return "\n".join(parts)
