"""The picture of a run: approved by its elements, and readable without colour."""

import os
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.model import TopicPartition
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import Mark
from rebalance_lab.traces.ledger import Span
from rebalance_lab.verdicts.looks import PALETTE, looks_of
from rebalance_lab.verdicts.picture import Panel, Shown, comparison_svg, ownership_svg, trace_svg
from tests.approved import APPROVE, approved
from tests.places import ROOT, SCENARIOS
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

SVG = "{http://www.w3.org/2000/svg}"
RIGHT = 850.0
T0 = TopicPartition("t", 0)
LANE = {T0: [Span("a", 0, 40), Span("b", 60, 100)]}


def pictured(panels, *, title="run", from_ms=0, to_ms=100, marks=()):
    """The picture of panels whose members have looks in the order of their names."""
    spans = [span for panel in panels for lane in panel.lanes.values() for span in lane]
    looks = looks_of(sorted(span.client for span in spans))
    return ownership_svg(panels, looks=looks, title=title, from_ms=from_ms, to_ms=to_ms, marks=marks)


def lanes(*spans, lane=T0, **given):
    return pictured([Panel({lane: spans})], **given)


def run(*owned, members="mn", topics=None, **options):
    """A trace of members that take partitions of t over in rounds, a second after another."""
    rounds = [round_at(1_000 * number, number, each) for number, each in enumerate(owned, 1)]
    return trace_of(
        *[(0, started(name, "t")) for name in members], *rounds, topics=topics or {"t": 1}, **options
    )


TICK = re.compile(r"( ?\d+(d|h|m|s|ms))+")


def elements(svg, *, axis):
    """A line for each text, box with a title, and mark, with its place; those of the axis if wanted."""
    found = []
    for each in ET.fromstring(svg).iter():
        place = " ".join(each.get(name, "") for name in ("x", "x1", "y", "y1", "width", "height")).split()
        title = each.findtext(f"{SVG}title") or ""
        if each.tag == f"{SVG}text" and (axis or not TICK.fullmatch(each.text)):
            style = [each.get(name, "") for name in ("text-anchor", "font-weight", "fill")]
            found.append(" ".join([*place, each.text, *filter(None, [*style, title])]))
        elif each.tag in (f"{SVG}rect", f"{SVG}line") and (title or each.tag == f"{SVG}line"):
            fill = re.sub(r"url\(#gap-\w+\) #ddd", "hatch", each.get("fill", "mark"))
            found.append(" ".join([*place, fill, title]))
    return "\n".join(found)


SHORT = 100
MANY = [f"c-{number}" for number in range(12)]
LINES = {name: run({"m": {"t": [0]}}, strategy=name, members="m") for name in ("eager", "other")}
PICTURES = {
    "owners over nobody": pictured([Panel(LANE)]),
    "owners at the same time divide their lane": lanes(
        Span("b", 60, 80), Span("a", 0, 70), Span("c", 62, 100)
    ),
    "spans that touch have no gap": lanes(Span("a", 0, 40), Span("a", 40, 60), Span("b", 80, 100)),
    **{
        f"a short time without an owner at {at_ms} ms has two units": lanes(
            Span("a", 0, at_ms), Span("b", at_ms + SHORT, 99_999), to_ms=99_999
        )
        for at_ms in (1, 40_000, 99_890)
    },
    "spans are cut to the window": lanes(Span("a", -50, 25), Span("b", 75, 500)),
    "spans beside the window are not drawn": lanes(
        Span("a", 10, 100), Span("a", 200, 300), from_ms=100, to_ms=200
    ),
    "a cell too narrow for its letter": lanes(Span("a", 0, 2)),
    "a long topic": lanes(lane=TopicPartition("clickstream-of-europe", 10)),
    "names are escaped": lanes(Span("<b>&\"'x", 0, 100), lane=TopicPartition("<i>", 0), title="<u>&"),
    "lanes in the order of topics and partitions": pictured(
        [Panel({TopicPartition(t, n): [] for t, n in [("u", 0), ("t", 10), ("t", 9)]})]
    ),
    "more members than colours and letters": pictured(
        [Panel({TopicPartition("t", i): [Span(f"c{i:02}", 0, 100)] for i in range(30)})]
    ),
    **{
        f"an axis from {from_ms} to {to_ms}": pictured([], from_ms=from_ms, to_ms=to_ms)
        for from_ms, to_ms in [(5, 5), (0, 480_000), (0, 180_000), (250, 1_100), (0, 86_400_000)]
    },
    "figures below the name": pictured(
        [Panel(LANE, "range", [Shown("3 rounds", 90), Shown("lag up to 7 records", is_best=True)])]
    ),
    "marks in the window": lanes(marks=[Mark(at, f"m{at}") for at in (-1, 0, 50, 98, 100, 101)]),
    "a mark shortly before another": lanes(
        marks=[Mark(30, "crash a"), Mark(50, "lag_view a"), Mark(53, "join b")]
    ),
    "marks without room": lanes(marks=[Mark(at, f"mark {n}") for n, at in enumerate((10, 20, 21, 22, 60))]),
    "letters in the order in which members started": trace_svg(
        run({n: {"t": [i]} for i, n in enumerate(MANY) if i != 3}, members=MANY, topics={"t": 12}),
        most_lanes=12,
    ),
    "a partition that nobody ever owned": trace_svg(
        run({"m": {"t": [0]}}, topics={"t": 2, "s": 1}), most_lanes=9
    ),
    "of many partitions those that changed owners most often": trace_svg(
        run({"m": {"t": [0, 1, 2]}}, {"m": {"t": [0, 2]}, "n": {"t": [1]}}, topics={"t": 3}), most_lanes=1
    ),
    "runs of a comparison": comparison_svg([*LINES.values()], most_lanes=9, errors=["third: it failed"]),
}


def test_pictures_have_the_elements_that_were_approved():
    approved("pictures", {name: elements(svg, axis="axis" in name) for name, svg in PICTURES.items()})


def test_the_picture_of_the_main_page_is_that_of_its_scenario():
    """With `APPROVE` in the environment, the file is written."""
    registry, path = default_registry(), ROOT / "notebooks" / "pictures" / "scale-out.svg"
    run = simulate(load_scenario(SCENARIOS / "scale-out.yaml"), "cooperative-sticky", registry)
    svg = trace_svg(run, most_lanes=9)
    if os.environ.get(APPROVE):
        path.write_text(svg)
    assert svg == path.read_text()


def test_pictures_on_one_page_have_hatches_of_their_own():
    names = [re.search(r'id="(gap-\w+)"', pictured([Panel({})], title=t))[1] for t in "ab"]
    assert len(set(names)) == 2


@given(st.lists(st.integers(0, 100), max_size=60))
def test_each_mark_is_labelled_or_counted_and_no_two_numbers_overlap(times):
    marks = [Mark(at_ms, f"mark {number}") for number, at_ms in enumerate(sorted(times))]
    found = list(ET.fromstring(pictured([Panel(LANE)], marks=marks)).iter(f"{SVG}text"))
    numbers = [text for text in found if text.text.startswith("+")]
    counted = [label for text in numbers for label in text.findtext(f"{SVG}title").split(", ")]
    assert sum(int(text.text) for text in numbers) == len(counted)
    labels = [text.text for text in found if text.text.startswith("mark")]
    assert sorted([*labels, *counted]) == sorted(mark.label for mark in marks)
    places = [float(text.get("x")) for text in numbers]
    assert all(right - left >= 35 for left, right in pairwise(places))
    assert all(place <= RIGHT for place in places)


def luminance(colour):
    """WCAG 2's relative luminance of #rrggbb."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("number", range(len(PALETTE)))
def test_letters_can_be_read_on_every_colour(number):
    lanes = {TopicPartition("t", i): [Span(f"c{i}", 0, 100)] for i in range(len(PALETTE))}
    text = pictured([Panel(lanes)])
    (ink,) = re.findall(rf'fill="(#...)">{chr(ord("A") + number)}<', text)
    dark, light = sorted((luminance(PALETTE[number]), {"#fff": 1.0, "#000": 0.0}[ink]))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
