"""Runs that are small, failed, large or odd are drawn truthfully, for every eye and on every screen."""

from itertools import pairwise

import pytest

from coordinator_core.protocol import events as ev
from rebalance_jupyter import compare_view, show
from rebalance_jupyter.page import as_page
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.benchmarks.jupyter import large
from tests.rebalance_jupyter.browser import (
    BORDER,
    HATCH,
    LANES,
    MEMBER,
    OWNERSHIP,
    PIXEL,
    all_texts,
    click_lane,
    go_to,
    history_of,
    pixels,
    rgb,
    shown_ms,
    svg_texts,
    wait_until,
)
from tests.rebalance_jupyter.samples import (
    ALONE,
    BACK,
    LATE_VIEW,
    MULTITUDE,
    NOBODY,
    TOO_SHORT,
    TWO_TOPICS,
    at,
    ran,
    spans_of,
)
from tests.rebalance_lab.traces.traces import changed, revoked, round_at, started, trace_of

MINUTE = 60_000
FIRST, SECOND = map(rgb, PALETTE[:2])
FRESH, KEPT = rgb("#5a5a5a"), rgb("#b5b5b5")

# --- small and failed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "heading", "sentence"),
    [
        (NOBODY, "; ended Empty", "no member tried to join: there was no round"),
        (ALONE, "", "generation 1: solo takes over 1 partition"),
        (TOO_SHORT, "; ended PreparingRebalance", "a round that did not complete"),
    ],
    ids=["nobody", "alone", "too short"],
)
def test_a_small_run_has_its_end_and_its_sentence_whatever_is_pressed(opened, scenario, heading, sentence):
    page = opened(show(ran(scenario)))
    page.focus(".rbl")
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "Home", "Space", "End"):
        page.keyboard.press(key)
    assert page.inner_text(".rbl-view h3") == f"cooperative-sticky{heading}"
    assert page.inner_text(".rbl-sentence") == sentence


@pytest.mark.slow
def test_an_error_while_drawing_is_drawn(opened):
    page = opened(as_page([{"document": {"scenario": "x"}, "spans": b""}]))
    (said,) = all_texts(page, "[role=alert]")
    assert said.startswith("This view failed: TypeError")


@pytest.mark.slow
def test_names_are_text_wherever_they_come(opened):
    trace = trace_of(
        (0, started("<img src=x>", "<i>t")),
        (500, changed("join", "<b>x</b>")),
        round_at(1_000, 1, {"<img src=x>": {"<i>t": [0]}}),
        topics={"<i>t": 1},
    )
    page = opened(compare_view([trace], errors=["<script>"]))
    click_lane(page, 0, 50_000, duration=100_000)
    assert page.locator("img, i:not(.rbl-legend i), .rbl b, .rbl script").count() == 0
    assert "<i>t-0" in page.inner_text(".rbl-past")


# --- owners that overlap, stand still, or are missing

COLUMN = """([x, top, height]) => {
  const element = document.querySelector("canvas");
  const column = element.getContext("2d").getImageData(Math.floor(x * element.width), top, 1, height).data;
  return Array.from({ length: height }, (_, y) => [...column.slice(4 * y, 4 * y + 3)]);
}"""
ROW = """([y]) => {
  const canvas = document.querySelector("canvas");
  const row = Math.floor(((y + 0.5) * canvas.height) / canvas.clientHeight);
  const { data } = canvas.getContext("2d").getImageData(0, row, canvas.width, 1);
  return Array.from({ length: canvas.width }, (_, x) => [...data.slice(4 * x, 4 * x + 4)]);
}"""


def column(page, partition, part):
    """The colours of a lane from top to bottom, equal neighbours as one."""
    found = page.evaluate(COLUMN, [part, partition * 18, 17])
    return list(dict.fromkeys(map(tuple, found)))


def test_claims_that_overlap_are_both_visible_in_the_lane(opened):
    """Without a coordinator; c2 has yet to see that c4 has joined, and so nobody owns partition 2."""
    page = opened(show(ran(LATE_VIEW, "rocketmq")))
    third = rgb(PALETTE[2])
    for partition in (4, 5):
        shown = [column(page, partition, at_ms / MINUTE) for at_ms in (20_000, 38_000, 50_000)]
        assert shown == [[SECOND], [SECOND, third], [third]]
    assert set(column(page, 2, 38_000 / MINUTE)) <= HATCH
    legend = ["A c1", "B c2", "C c3", "D c4", "nobody", "several owners"]
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == legend
    click_lane(page, 4, 38_000, duration=MINUTE)
    lines = [line.partition(": ")[2] for line in all_texts(page, ".rbl-past li")]
    assert lines == ["c3", "c2, a part of it together with c3", "c3, a part of it together with c2"]


def during(page, from_ms, *, y=None):
    times = range(from_ms, from_ms + 15_000, 100)
    return set(pixels(page, 0, times, duration=100_000, y=y))


@pytest.mark.slow
def test_the_part_of_an_owner_that_is_paused_is_striped_and_what_nobody_owns_is_hatched_to_the_end(opened):
    trace = trace_of(
        [(0, started("a", "t")), (0, started("b", "t"))],
        round_at(1_000, 1, {"a": {"t": [0]}, "b": {}}),
        (20_000, ev.MemberPaused(client="a")),
        round_at(40_000, 2, {"b": {"t": [0]}}),
        (60_000, ev.MemberResumed(client="a")),
        [(80_000, ev.MemberStopped(client=name, how="closed")) for name in "ab"],
        topics={"t": 1},
    )
    page = opened(show(trace))
    assert (during(page, 3_000), during(page, 22_000)) == ({FIRST}, {FIRST, BORDER})
    assert (during(page, 42_000, y=3), during(page, 42_000, y=14)) == ({FIRST, BORDER}, {SECOND})
    assert (during(page, 62_000, y=3), during(page, 62_000, y=14)) == ({FIRST}, {SECOND})
    assert during(page, 84_000) == HATCH


@pytest.mark.slow
def test_a_lane_that_nobody_ever_owns_is_hatched_from_the_time_at_which_it_exists(opened):
    page = opened(show(ran(TWO_TOPICS, "rocketmq")))
    for partition in (6, 7):
        assert set(pixels(page, partition, range(1_000, 29_500, 500), duration=MINUTE)) == {None}
        assert set(pixels(page, partition, range(30_500, MINUTE, 500), duration=MINUTE)) <= HATCH


def stopped(partitions, *given):
    """Two hours in which some partitions have no owner for 17 ms, and then another one."""
    rest = [p for p in range(partitions) if p not in given]
    return trace_of(
        [(0, started(client, "t")) for client in "ab"],
        round_at(5 * MINUTE, 1, {"a": {"t": list(range(partitions))}}),
        (60 * MINUTE, revoked("a", {"t": list(given)})),
        round_at(60 * MINUTE + 17, 2, {"a": {"t": rest}, "b": {"t": list(given)}}),
        topics={"t": partitions},
        duration_ms=120 * MINUTE,
    )


def row_of(page, y):
    """The colours of a line of the lanes, from left to right."""
    return [tuple(colour[:3]) if colour[3] else None for colour in page.evaluate(ROW, [y])]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 2, 1.5])
def test_a_gap_of_17_ms_in_two_hours_is_two_pixels_wide_and_the_new_owner_has_a_border(opened, scale):
    row = row_of(opened(show(stopped(1, 0)), device_scale_factor=scale), 9)
    assert [sum(colour in kind for colour in row) for kind in (HATCH, {BORDER})] == [round(2 * scale)] * 2
    shown = [colour for colour in dict.fromkeys(row) if colour not in HATCH]
    assert shown == [None, FIRST, BORDER, SECOND]


@pytest.mark.slow
def test_the_gap_and_the_move_of_one_partition_among_ten_thousand_are_drawn(opened):
    page = opened(show(stopped(10_000, 5_000)))
    line = 5_000 * 600 / 10_000 - 0.25
    before, own, after = (row_of(page, y) for y in (line - 2, line, line + 2))
    assert before == after
    assert (len(set(before)), own.count(BORDER)) == (2, 2)
    gap = set(own) - set(before) - {BORDER, own[-1]}
    assert sum(colour in gap for colour in own) == 2


# --- many members and partitions


@pytest.mark.slow
def test_of_too_many_members_what_is_new_is_shown(opened):
    trace = ran(MULTITUDE)
    page = opened(show(trace))
    legend = ["another owner from here on", "an owner", "nobody"]
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == legend
    spans = spans_of(trace)
    moves = 0
    for partition, owner, since, until in spans:
        before = [o for p, o, _, end in spans if p == partition and end <= since]
        if until - since > 4_000:
            moves += (moved := bool(before) and before[-1] != owner)
            found = pixels(page, partition, [since + 700, since + 2_500], lane=15, duration=MINUTE)
            assert found == [FRESH if moved else KEPT, KEPT]
    assert moves


@pytest.mark.slow
def test_many_members_are_a_map_of_what_each_owns(opened):
    trace = large(480, "sticky", members=120, rounds=2)
    page = opened(show(trace))
    members = view_model(trace).document["members"]
    lane, end_ms = max(3, 340 // len(members)), trace.started.duration_ms
    most = max(count for member in members for _, count in member["owned"])
    shown = 0
    for i, member in enumerate(members[: 340 // lane]):
        ends = [*(at_ms for at_ms, _ in member["owned"][1:]), end_ms]
        for (at_ms, count), until in zip(member["owned"], ends, strict=True):
            middle = (at_ms + until) // 2
            if until - at_ms >= end_ms / 20 and at(member["states"], middle) == "stable":
                grey = (round(232 - 150 * count / most),) * 3
                assert pixels(page, i, [middle], canvas=LANES, lane=lane, duration=end_ms, y=1) == [grey]
                shown += 1
    assert shown > 100


@pytest.mark.slow
def test_ten_thousand_partitions_are_mixed_into_the_height_of_a_screen(opened):
    trace = large(10_000, "cooperative-sticky", members=30, rounds=5)
    page = opened(show(trace))
    box = page.locator("canvas").first.bounding_box()
    assert box["height"] == 600
    (settled,) = page.evaluate(PIXEL, [OWNERSHIP, [0.99], 300])
    assert tuple(settled) == (*KEPT, 255)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 300.5)
    partition = int(page.inner_text(".rbl-past strong").partition(",")[0].removeprefix("t-"))
    assert abs(partition - 5_000) <= 20
    assert all_texts(page, ".rbl-past li") == history_of(trace, partition)
    assert shown_ms(page) == pytest.approx(trace.started.duration_ms / 2, rel=0.01)


# --- load

HOT = """\
name: hot
duration: 3m
topics:
  clicks: {partitions: 6, rates: [100, 100, 500, 50, 100, 100]}
members:
  - {id: c1, topics: [clicks], process_rate: 400}
  - {id: c2, topics: [clicks], process_rate: 600}
"""


@pytest.mark.slow
def test_the_load_is_beside_what_a_member_can_handle_and_lanes_are_coloured_by_rate_and_lag(opened):
    """c1 owns clicks-0 to clicks-2, which are more than it can handle."""
    page = opened(show(ran(HOT, "range")))
    go_to(page, 100_000)
    loads = ["load 700 of 398/s, 176 %", "load 250 of 596/s"]
    assert svg_texts(page, ".rbl-row text:nth-of-type(3)") == loads
    assert svg_texts(page, ".rbl-row .rbl-over") == loads[:1]
    assert svg_texts(page, ".rbl-hottest text") == ["hot: 500 records/s"]

    def load(member, y):
        times = range(60_000, 100_000, 100)
        return set(pixels(page, member, times, canvas=LANES, lane=MEMBER, y=y))

    assert (load(0, MEMBER - 4), load(1, MEMBER - 4), load(1, MEMBER - 9)) == ({FIRST}, {SECOND}, {None})
    assert len(load(0, MEMBER - 12)) > 1  # hatched
    lanes = page.get_by_label("Lanes coloured by")
    lanes.select_option("rate")
    low, *_, high = shown = [pixels(page, partition, [100_500])[0] for partition in (0, 1, 3, 4, 5, 2)]
    assert low != high
    assert shown == [low] * 5 + [high]
    lanes.select_option("lag")
    late = pixels(page, 0, [40_500, 170_500])
    assert late[0] != late[1]
    assert pixels(page, 2, [40_500, 170_500]) == late
    lanes.select_option("owner")
    assert pixels(page, 0, [100_500]) == [FIRST]


# --- other protocols

ARROWS_IN_BOXES = """() => {
  const boxes = [...document.querySelectorAll(".rbl-state rect")].map((each) => each.getBBox());
  const lines = [...document.querySelectorAll(".rbl-edge")];
  return lines.filter((line) => [0.05, 0.25, 0.5, 0.75, 0.95].some((part) => {
    const x = line.x1.baseVal.value * (1 - part) + line.x2.baseVal.value * part;
    const y = line.y1.baseVal.value * (1 - part) + line.y2.baseVal.value * part;
    return boxes.some((b) => b.x < x && x < b.x + b.width && b.y < y && y < b.y + b.height);
  })).length;
}"""
"""How many arrows of the state machine cross a box."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "strategy"),
    [(LATE_VIEW, "watcher"), (LATE_VIEW, "rocketmq"), (BACK, "cooperative-sticky+delay=60s")],
)
def test_states_of_the_group_and_its_members_have_patterns(opened, scenario, strategy):
    """A group at rest is plain, one that rebalances is hatched; no state of a member is without a pattern."""
    trace = ran(scenario, strategy)
    page = opened(show(trace))
    document = view_model(trace).document
    fills = page.locator(".rbl-states rect").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('fill').match(/\\w+(?=\\)?$)/)[0])"
    )
    expected = {"vacant": "transparent", "begun": "round", "between": "wait", "resting": "rest"}
    states = [*document["states"], [document["duration"], ""]]
    shown = [state for (since, state), (until, _) in pairwise(states) if until > since]
    assert fills == [expected[document["machine"]["kinds"][state]] for state in shown]
    assert page.evaluate(ARROWS_IN_BOXES) == 0
    assert ("Coordinator" in all_texts(page, "h4")) == document["machine"]["coordinated"]
    seen = {state for member in document["members"] for _, state in member["states"]} - {"outside"}
    assert set(all_texts(page, ".rbl-legend >> nth=1 >> span")) - {""} == seen
    dots = page.locator(".rbl-told").evaluate_all("(found) => found.map((each) => each.getAttribute('d'))")
    assert [path.count("M") for path in dots] == [len(member["told"]) for member in document["members"]]
    for each in document["rounds"]:
        go_to(page, each["stable"])
        assert (each["report"] or "delay") in page.inner_text(".rbl-counts") or not each["report"]


# --- for every eye and screen

CONTRASTS = """() => {
  const parse = (text) => {
    const numbers = (text.match(/[\\d.]+/g) ?? []).map(Number);
    const scaled = text.startsWith("color(") ? numbers.map((n, i) => (i < 3 ? 255 * n : n)) : numbers;
    return [...scaled, 1, 1].slice(0, 4);
  };
  const light = (colour) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const parts = colour.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    const state = element.closest(".rbl-state");
    if (state) return parse(getComputedStyle(state.querySelector("rect")).fill);
    const circle = element.closest(".rbl-node:not(.rbl-absent)")?.querySelector("circle");
    if (circle && element.textContent.length === 1) return parse(getComputedStyle(circle).fill);
    for (let at = element; at; at = at.parentElement) {
      const ground = parse(getComputedStyle(at).backgroundColor);
      if (getComputedStyle(at).backgroundColor !== "rgba(0, 0, 0, 0)") return ground;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.querySelector(".rbl"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const unseen = ["title", "OPTION"].includes(element.tagName) || !element.getClientRects().length;
    const onLane = element.getAttribute("text-anchor") === "middle" && element.closest(".rbl-overlay");
    if (!node.data.trim() || unseen || onLane) continue;
    const { fill, color } = getComputedStyle(element);
    const ink = parse(element.namespaceURI.endsWith("svg") ? fill : color);
    const [a, b] = [light(ink), light(behind(element))];
    found.push([node.data, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
  }
  return found;
}"""
UNNAMED = """() =>
  [...document.querySelectorAll("button, input, select, svg:not([aria-hidden]), section, [tabindex]")]
  .filter((each) => !each.getAttribute("aria-label") && !each.textContent.trim())
  .map((each) => each.outerHTML.slice(0, 80))"""
CUT_OFF_TEXTS = """() => [...document.querySelectorAll(".rbl svg text")].filter((text) => {
  const [own, frame] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
  const aside = own.left < frame.left - 1 || own.right > frame.right + 1;
  return own.width && (aside || own.bottom > frame.bottom + 2);
}).map((text) => text.textContent)"""


@pytest.fixture
def two():
    return compare_view([ran(strategy="range"), ran()], errors=["x: wrong"])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_and_everything_has_a_name_for_screen_readers(opened, two, scheme):
    page = opened(two, color_scheme=scheme)
    page.focus(".rbl")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    ratios = page.evaluate(CONTRASTS)
    assert len(ratios) > 100
    assert [each for each in ratios if each[1] < 4.5] == []
    assert page.evaluate(UNNAMED) == []
    assert page.locator("th:not([scope])").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [1_280, 640])
def test_at_200_percent_nothing_overlaps_or_is_cut(opened, two, width):
    page = opened(two, viewport={"width": width, "height": 400})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF_TEXTS) == []
    controls = [each.bounding_box() for each in page.locator(".rbl-controls > :not([hidden])").all()]
    for i, a in enumerate(controls):
        assert 0 <= a["x"] <= width - a["width"]
        for b in controls[i + 1 :]:
            apart = a["x"] + a["width"] <= b["x"] or a["y"] + a["height"] <= b["y"]
            assert apart or b["x"] + b["width"] <= a["x"]
    blocks = [each.bounding_box() for each in page.locator(".rbl-view >> nth=0 >> xpath=./*").all()]
    shown = [block for block in blocks if block]
    assert all(a["y"] + a["height"] <= b["y"] + 1 for a, b in pairwise(shown))


@pytest.mark.slow
def test_a_view_that_is_made_wider_is_drawn_anew(page):
    page.set_viewport_size({"width": 1_300, "height": 800})
    wait_until(page, "document.querySelector('canvas').width > 900")
    go_to(page, 60_000)
    assert pixels(page, 0, [60_000]) == [FIRST]


@pytest.mark.slow
def test_with_forced_colours_the_legend_keeps_its_colours(opened):
    page = opened(show(ran()), forced_colors="active")
    grounds = page.locator(".rbl-legend >> nth=0 >> i").evaluate_all(
        "(all) => all.map((each) => getComputedStyle(each).backgroundColor)"
    )
    assert grounds[:3] == [f"rgb{rgb(colour)}" for colour in PALETTE[:3]]
