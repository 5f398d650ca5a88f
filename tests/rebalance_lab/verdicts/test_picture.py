"""The picture of a run: well-formed, cut to its window, readable without colour."""

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
from tests.approved import APPROVE
from tests.places import ROOT, SCENARIOS
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

SVG = "{http://www.w3.org/2000/svg}"
LEFT, RIGHT = 96.0, 850.0
WIDTH = RIGHT - LEFT
LANE = {TopicPartition("t", 0): [Span("a", 0, 40), Span("b", 60, 100)]}


def drawn(lanes, *, title="run", from_ms=0, to_ms=100, marks=()):
    return ET.fromstring(pictured([Panel(lanes)], title=title, from_ms=from_ms, to_ms=to_ms, marks=marks))


def pictured(panels, **given):
    """The picture of panels whose members have looks in the order of their names."""
    spans = [span for panel in panels for lane in panel.lanes.values() for span in lane]
    return ownership_svg(panels, looks=looks_of(sorted(span.client for span in spans)), **given)


def cells(root):
    """What each titled box says, with its fill, its left edge and its right edge."""
    found = []
    for box in root.iter(f"{SVG}rect"):
        hint = box.find(f"{SVG}title")
        if hint is not None:
            left = float(box.get("x"))
            fill = re.sub(r"url\(#gap-\w+\) #ddd", "hatch", box.get("fill"))
            found.append((hint.text, fill, left, left + float(box.get("width"))))
    return found


def heights(root):
    """The top edge and the height of each titled box, from the first lane."""
    boxes = [box for box in root.iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    return [(float(box.get("y")) - float(boxes[0].get("y")), float(box.get("height"))) for box in boxes]


def texts(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def test_a_lane_has_a_cell_for_each_span_over_one_for_nobody():
    assert cells(drawn(LANE)) == [
        ("t-0: nobody", "hatch", LEFT, RIGHT),
        ("t-0: a, 0 s to 0.04 s", PALETTE[0], LEFT, pytest.approx(LEFT + 0.4 * WIDTH)),
        ("t-0: b, 0.06 s to 0.1 s", PALETTE[1], pytest.approx(LEFT + 0.6 * WIDTH), RIGHT),
    ]


def test_owners_at_the_same_time_divide_the_height_of_their_lane():
    spans = [Span("b", 60, 80), Span("a", 0, 70), Span("c", 62, 100)]  # in the order of their ends, or not
    root = drawn({TopicPartition("t", 0): spans})
    assert [(hint, fill) for hint, fill, *_ in cells(root)][1:] == [
        ("t-0: a, 0 s to 0.06 s", PALETTE[0]),
        *[("t-0: a and b, 0.06 s to 0.062 s", colour) for colour in PALETTE[:2]],
        *[("t-0: a and b and c, 0.062 s to 0.07 s", colour) for colour in PALETTE[:3]],
        *[("t-0: b and c, 0.07 s to 0.08 s", colour) for colour in PALETTE[1:3]],
        ("t-0: c, 0.08 s to 0.1 s", PALETTE[2]),
    ]
    two, three = [(0, 7.5), (7.5, 7.5)], [(0, 5), (5, 5), (10, 5)]
    assert heights(root) == [(0, 15), (0, 15), *two, *three, *two, (0, 15)]
    assert [text for text in texts(root) if set(text) <= set("ABC ")] == ["A", "A B C", "B C", "C"]


def test_members_have_letters_in_the_order_in_which_they_started():
    """Also of those that own nothing, which are not in the legend, and after ten that have numbers."""
    names = [f"c-{number}" for number in range(12)]
    trace = trace_of(
        [(0, started(name, "t")) for name in names],
        round_at(1_000, 1, {name: {"t": [i]} for i, name in enumerate(names) if i != 3}),
        topics={"t": 12},
    )
    shown = texts(ET.fromstring(trace_svg(trace, most_lanes=12)))
    wanted = [f"{letter} {name}" for letter, name in zip("ABCDEFGHIJKL", names, strict=True)]
    assert [text for text in shown if " c-" in text] == [text for text in wanted if text != "D c-3"]


def test_the_picture_of_the_main_page_is_that_of_its_scenario():
    """With `APPROVE` in the environment, the file is written."""
    registry, path = default_registry(), ROOT / "notebooks" / "pictures" / "scale-out.svg"
    run = simulate(load_scenario(SCENARIOS / "scale-out.yaml"), "cooperative-sticky", registry)
    svg = trace_svg(run, most_lanes=9)
    if os.environ.get(APPROVE):
        path.write_text(svg)
    assert svg == path.read_text()


def test_a_gap_between_spans_is_a_lane_of_nobody_and_touching_spans_have_no_gap():
    spans = [Span("a", 0, 40), Span("a", 40, 60), Span("b", 80, 100)]
    assert [hint for hint, *_ in cells(drawn({TopicPartition("t", 0): spans}))] == [
        "t-0: nobody",
        "t-0: a, 0 s to 0.04 s",
        "t-0: a, 0.04 s to 0.06 s",
        "t-0: b, 0.08 s to 0.1 s",
    ]


def test_the_picture_of_a_run_has_a_lane_for_a_partition_that_nobody_ever_owned():
    trace = trace_of((0, started("m", "t")), round_at(1_000, 1, {"m": {"t": [0]}}), topics={"t": 2, "s": 1})
    hints = [hint for hint, *_ in cells(ET.fromstring(trace_svg(trace, most_lanes=9)))]
    assert hints == ["s-0: nobody", "t-0: nobody", "t-0: m, 1 s to 100 s", "t-1: nobody"]
    root = ET.fromstring(trace_svg(trace, most_lanes=2))
    assert root.get("aria-label") == (
        "by-hand under range (2 of 3 partitions: those that changed owners most often)"
    )


def test_of_many_partitions_those_that_changed_owners_most_often_are_drawn():
    trace = trace_of(
        (0, started("m", "t")),
        (0, started("n", "t")),
        round_at(1_000, 1, {"m": {"t": [0, 1, 2]}}),
        round_at(2_000, 2, {"m": {"t": [0, 2]}, "n": {"t": [1]}}),
        topics={"t": 3},
    )
    assert [text for text in texts(ET.fromstring(trace_svg(trace, most_lanes=1))) if text[:2] == "t-"] == [
        "t-1"
    ]


@pytest.mark.parametrize("gap", [(40, 41), (1, 2), (98, 99)])
def test_a_time_without_an_owner_is_at_least_two_units_wide(gap):
    from_ms, to_ms = (1_000 * at for at in gap)
    lane = {
        TopicPartition("t", 0): [
            Span("a", 0, from_ms),
            Span("b", from_ms + 100, to_ms),
            Span("a", to_ms, 99_999),
        ]
    }
    drawn_gaps = {
        hint: (left, right) for hint, fill, left, right in cells(drawn(lane, to_ms=99_999)) if fill == "#222"
    }
    ((hint, (left, right)),) = drawn_gaps.items()
    assert hint == f"t-0: nobody, {from_ms / 1000:g} s to {from_ms / 1000 + 0.1:g} s"
    assert right - left == 2
    assert left <= LEFT + WIDTH * from_ms / 99_999 <= right


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "labels"),
    [
        (0, 480_000, ["0s", *(f"{n}m" for n in range(1, 9))]),
        (0, 180_000, ["0s", "30s", "1m", "1m 30s", "2m", "2m 30s", "3m"]),
        (250, 1_100, [f"{n}ms" for n in range(300, 1_000, 100)] + ["1s", "1s 100ms"]),
        (0, 86_400_000, ["0s", *(f"{n}h" for n in range(3, 24, 3)), "1d"]),
    ],
)
def test_the_axis_has_at_most_ten_round_times(from_ms, to_ms, labels):
    found = texts(drawn({}, from_ms=from_ms, to_ms=to_ms))[1:-1]
    assert found == labels


def test_figures_are_below_the_name_and_the_best_one_is_bold():
    panel = Panel(LANE, "range", [Shown("3 rounds", 90), Shown("lag up to 7 records", is_best=True)])
    root = ET.fromstring(pictured([panel], title="run", from_ms=0, to_ms=100))
    found = {text.text: text for text in root.iter(f"{SVG}text")}
    name, rounds, lag = (found[text] for text in ("range", "3 rounds", "lag up to 7 records"))
    assert float(name.get("y")) < float(rounds.get("y")) == float(lag.get("y"))
    assert float(lag.get("x")) - float(rounds.get("x")) == 90
    assert (rounds.get("font-weight"), lag.get("font-weight")) == (None, "600")


def test_runs_of_a_comparison_have_one_axis_one_legend_and_figures_of_their_own():
    eager = trace_of(
        (0, started("m", "t")), round_at(1_000, 1, {"m": {"t": [0]}}), topics={"t": 1}, strategy="eager"
    )
    other = trace_of(
        (0, started("m", "t")), round_at(9_000, 1, {"m": {"t": [0]}}), topics={"t": 1}, strategy="other"
    )
    root = ET.fromstring(comparison_svg([eager, other], most_lanes=9, errors=["third: it failed"]))
    said = texts(root)
    assert said[0] == "by-hand"
    assert (said.count("A m"), said.count("100s"), said.count("1m 40s"), said.count("t-0")) == (1, 0, 1, 2)
    assert [text for text in said if text in ("eager", "other")] == ["eager", "other"]
    assert len([text for text in said if text.startswith("stopped ")]) == 2
    (fault,) = (text for text in root.iter(f"{SVG}text") if text.text == "third: it failed")
    assert fault.get("fill") == "#B00020"


def test_pictures_on_one_page_have_hatches_of_their_own():
    names = [
        re.search(r'id="(gap-\w+)"', pictured([Panel({})], title=t, from_ms=0, to_ms=1))[1] for t in "ab"
    ]
    assert len(set(names)) == 2


def test_a_long_name_of_a_topic_is_cut_and_its_number_is_not():
    assert "clickstr…-10" in texts(drawn({TopicPartition("clickstream-of-europe", 10): []}))


def test_the_label_of_a_mark_shortly_before_another_is_to_its_left():
    labels = drawn(LANE, marks=[Mark(30, "crash a"), Mark(50, "lag_view a"), Mark(53, "join b")])
    anchors = {t.text: (t.get("text-anchor"), float(t.get("x"))) for t in labels.iter(f"{SVG}text")}
    assert anchors["crash a"] == (None, LEFT + 0.3 * WIDTH + 3)
    assert anchors["lag_view a"] == ("end", LEFT + 0.5 * WIDTH - 3)
    assert anchors["join b"] == (None, pytest.approx(LEFT + 0.53 * WIDTH + 3, abs=0.1))


def test_a_label_without_room_beside_others_is_above_them_or_counted_above_these():
    """The second one has no room between the first one and the third mark, the third one neither above."""
    marks = [Mark(at, f"mark {number}") for number, at in enumerate((10, 20, 21, 22, 60))]
    root = drawn(LANE, marks=marks)
    labels = [(text.text, text.get("y")) for text in root.iter(f"{SVG}text") if "mark" in text.text]
    assert labels == [("mark 0", "66"), ("mark 1", "52"), ("mark 3", "66"), ("mark 4", "66")]
    (number,) = [text for text in root.iter(f"{SVG}text") if text.text == "+1"]
    assert (number.get("y"), number.find(f"{SVG}title").text) == ("38", "mark 2")
    hints = [line.findtext(f"{SVG}title") for line in root.iter(f"{SVG}line")]
    assert hints.count("mark 2") == 1


@given(st.lists(st.integers(0, 100), max_size=60))
def test_each_mark_is_labelled_or_counted_and_no_two_numbers_overlap(times):
    marks = [Mark(at_ms, f"mark {number}") for number, at_ms in enumerate(sorted(times))]
    found = list(drawn(LANE, marks=marks).iter(f"{SVG}text"))
    numbers = [text for text in found if text.text.startswith("+")]
    counted = [label for text in numbers for label in text.findtext(f"{SVG}title").split(", ")]
    assert sum(int(text.text) for text in numbers) == len(counted)
    labels = [text.text for text in found if text.text.startswith("mark")]
    assert sorted([*labels, *counted]) == sorted(mark.label for mark in marks)
    places = [float(text.get("x")) for text in numbers]
    assert all(right - left >= 35 for left, right in pairwise(places))
    assert all(place <= RIGHT for place in places)


def test_a_label_at_the_end_is_to_the_left_of_its_mark():
    labels = drawn(LANE, marks=[Mark(98, "crash a")]).iter(f"{SVG}text")
    assert [t.get("text-anchor") for t in labels if t.text == "crash a"] == ["end"]


def test_spans_are_cut_to_the_window():
    lane = {TopicPartition("t", 0): [Span("a", -50, 25), Span("b", 75, 500)]}
    (_, first, second) = cells(drawn(lane))
    assert first[2:] == (LEFT, pytest.approx(LEFT + WIDTH / 4))
    assert second[2:] == (pytest.approx(LEFT + 3 * WIDTH / 4), RIGHT)


@pytest.mark.parametrize(
    "span", [Span("a", 0, 100), Span("a", 10, 50), Span("a", 200, 300), Span("a", 250, 251)]
)
def test_spans_outside_the_window_are_not_drawn(span):
    root = drawn({TopicPartition("t", 0): [span]}, from_ms=100, to_ms=200)
    assert [hint for hint, *_ in cells(root)] == ["t-0: nobody"]


def test_lanes_are_in_the_order_of_topics_and_partitions():
    lanes = {TopicPartition(t, n): [] for t, n in [("u", 0), ("t", 10), ("t", 9)]}
    root = drawn(lanes)
    assert [hint for hint, *_ in cells(root)] == ["t-9: nobody", "t-10: nobody", "u-0: nobody"]
    assert [text for text in texts(root) if "-" in text] == ["t-9", "t-10", "u-0"]


def test_the_picture_grows_with_its_lanes():
    height = [int(drawn({TopicPartition("t", n): [] for n in range(k)}).get("height")) for k in (0, 1, 5)]
    assert height == [100, 118, 190]


def test_each_client_has_a_letter_that_stands_in_its_cells_and_in_the_legend():
    lanes = {TopicPartition("t", 0): [Span("zoe", 0, 50), Span("ada", 50, 100)]}
    said = texts(drawn(lanes))
    assert "A ada" in said
    assert "B zoe" in said
    assert said.count("A") == said.count("B") == 1
    assert said[-1] == "nobody"


def test_a_cell_too_narrow_for_its_letter_has_none():
    lanes = {TopicPartition("t", 0): [Span("a", 0, 2)]}
    said = texts(drawn(lanes))
    assert "A" not in said
    assert "A a" in said


def test_colours_and_letters_do_not_run_out():
    clients = [f"c{i:02}" for i in range(30)]
    lanes = {TopicPartition("t", i): [Span(c, 0, 100)] for i, c in enumerate(clients)}
    root = drawn(lanes)
    owned = [fill for hint, fill, *_ in cells(root) if not hint.endswith("nobody")]
    assert owned == [PALETTE[i % len(PALETTE)] for i in range(30)]
    assert "Z c25" in texts(root)
    assert "26 c26" in texts(root)


def test_marks_in_the_window_are_drawn_with_their_word_and_others_are_not():
    marks = [Mark(0, "begin"), Mark(50, "crash a"), Mark(100, "end"), Mark(101, "after"), Mark(-1, "before")]
    root = drawn(LANE, marks=marks)
    lines = [float(line.get("x1")) for line in root.iter(f"{SVG}line")]
    assert lines == [LEFT, (LEFT + RIGHT) / 2, RIGHT]
    assert {"begin", "crash a", "end"} <= set(texts(root))
    assert not {"after", "before"} & set(texts(root))


def test_names_are_escaped():
    name = "<b>&\"'x"
    lanes = {TopicPartition(name, 0): [Span(name, 0, 100)]}
    root = drawn(lanes, title=name, marks=[Mark(50, name)])
    assert root.get("aria-label") == name
    assert f"{name}-0" in texts(root)
    assert f"A {name}" in texts(root)
    assert texts(root).count(name) == 2
    assert cells(root)[1][0] == f"{name}-0: {name}, 0 s to 0.1 s"


def test_nothing_to_draw_and_no_time_to_draw_it_in_are_a_picture():
    root = drawn({}, from_ms=5, to_ms=5)
    assert texts(root) == ["run", "5ms", "nobody"]
    assert cells(drawn(LANE, from_ms=20, to_ms=20))[0][0] == "t-0: nobody"


def luminance(colour):
    """WCAG 2's relative luminance of #rrggbb."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("number", range(len(PALETTE)))
def test_letters_can_be_read_on_every_colour(number):
    lanes = {TopicPartition("t", i): [Span(f"c{i}", 0, 100)] for i in range(len(PALETTE))}
    text = pictured([Panel(lanes)], title="run", from_ms=0, to_ms=100)
    (ink,) = re.findall(rf'fill="(#...)">{chr(ord("A") + number)}<', text)
    dark, light = sorted((luminance(PALETTE[number]), {"#fff": 1.0, "#000": 0.0}[ink]))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
