"""Pages of traces that are small, failed or large, and of every scheme, zoom and reader."""

import re
from itertools import pairwise

import pytest

from rebalance_jupyter import compare_view, show
from rebalance_jupyter.page import as_page
from rebalance_jupyter.view_model import ViewModel, view_model
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.looks import PALETTE
from tests.benchmarks.jupyter import large
from tests.rebalance_jupyter.browser import (
    LANES,
    OPENS,
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
from tests.rebalance_jupyter.samples import ALONE, CROWD, MULTITUDE, NOBODY, TOO_SHORT, clock, ran, spans_of
from tests.rebalance_lab.traces.traces import changed, round_at, started, trace_of

pytestmark = pytest.mark.slow

# --- small, failed, and large


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_nobody_at_all(opened, strategy):
    page = opened(show(ran(NOBODY, strategy)))
    assert page.inner_text(".rbl-view h3") == f"{strategy}; ended Empty"
    assert "No member ever started." in page.inner_text(".rbl")
    assert page.inner_text(".rbl-sentence") == "no member tried to join: there was no round"
    assert svg_texts(page, ".rbl-lit text") == ["Empty"]
    page.focus(".rbl")
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "End", "Home", "Space"):
        page.keyboard.press(key)


def test_one_member_with_one_partition(opened):
    page = opened(show(ran(ALONE)))
    page.focus(".rbl")
    page.keyboard.press("End")
    assert page.inner_text(".rbl-sentence") == "generation 1: solo takes over 1 partition"
    assert pixels(page, 0, [15_000], duration=20_000) == [rgb(PALETTE[0])]
    assert svg_texts(page, ".rbl-node title") == ["solo"]


def test_a_group_that_never_became_stable(opened):
    page = opened(show(ran(TOO_SHORT)))
    page.focus(".rbl")
    page.keyboard.press("End")
    assert page.inner_text(".rbl-view h3") == "cooperative-sticky; ended PreparingRebalance"
    assert page.inner_text(".rbl-sentence") == "a round that did not complete"
    assert svg_texts(page, ".rbl-lit text") == ["PreparingRebalance"]


def test_only_failures(opened):
    page = opened(compare_view([], errors=["range: it failed", "sticky: so did it"]))
    assert page.inner_text("h2") == "nothing to show"
    assert all_texts(page, ".rbl-error") == ["range: it failed", "sticky: so did it"]


def test_findings_are_errors_of_their_run(opened):
    page = opened(compare_view([ran(TOO_SHORT, "range"), ran()], errors=["x: wrong"]))
    wrong, *found = all_texts(page, ".rbl-error[role=alert]")
    assert wrong == "x: wrong"
    assert found == list(findings(History(ran(TOO_SHORT, "range"))))
    assert page.inner_text(".rbl-view .rbl-head + .rbl-error") == found[0]


def test_an_error_while_drawing_is_drawn(opened):
    page = opened(as_page([ViewModel({"scenario": "x"}, b"")]))
    (said,) = all_texts(page, "[role=alert]")
    assert said.startswith("This view failed: TypeError")


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


def test_members_that_share_a_colour_are_told_apart_by_letters(opened):
    trace = ran(CROWD)
    page = opened(show(trace))
    names = [member["name"] for member in view_model(trace).document["members"]]
    assert len(all_texts(page, ".rbl-legend >> nth=0 >> span")) == len(names) + 2
    assert svg_texts(page, ".rbl-scenario g text")[-1].startswith("leave consumer-of-a-service")
    for partition, owner, since, until in spans_of(trace):
        if until - since > 2_000:
            colour = rgb(PALETTE[names.index(owner) % len(PALETTE)])
            (found,) = pixels(page, partition, [since + 1_500], lane=15, duration=60_000)
            assert found == colour
    letters = [text for text in svg_texts(page, ".rbl-stack >> nth=0 >> text") if len(text) == 1]
    assert set("ABCDEFGHIJKLMN") == set(letters)


def test_of_too_many_members_what_is_new_is_shown_and_letters(opened):
    trace = ran(MULTITUDE)
    page = opened(show(trace))
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == [
        "another owner from here on",
        "an owner",
        "nobody",
    ]
    fresh, kept = rgb("#5a5a5a"), rgb("#b5b5b5")
    moves = 0
    for partition, owner, since, until in spans_of(trace):
        before = [o for p, o, _, end in spans_of(trace) if p == partition and end <= since]
        if until - since > 4_000:
            moves += (moved := bool(before) and before[-1] != owner)
            found = pixels(page, partition, [since + 700, since + 2_500], lane=15, duration=60_000)
            assert found == [fresh if moved else kept, kept]
    assert moves
    letters = [text for text in svg_texts(page, ".rbl-stack >> nth=0 >> text") if len(text) == 1]
    assert set("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == set(letters)


def test_many_members_are_a_map_of_what_each_owns(opened):
    trace = large(480, "sticky", members=120, rounds=2)
    page = opened(show(trace))
    members = view_model(trace).document["members"]
    lane = max(3, 340 // len(members))
    box = page.locator("canvas").nth(LANES).bounding_box()
    assert box["height"] == pytest.approx(lane * len(members), abs=lane * 120)
    most = max(count for member in members for _, count in member["owned"])
    duration = trace.started.duration_ms
    shown = 0
    for i, member in enumerate(members):
        ends = [*(at for at, _ in member["owned"][1:]), duration]
        for (at, count), until in zip(member["owned"], ends, strict=True):
            middle = (at + until) // 2
            state = [name for since, name in member["states"] if since <= middle][-1]
            if until - at < duration / 20 or state != "stable" or lane * (i + 1) > 340:
                continue
            grey = round(232 - 150 * count / most)
            assert pixels(page, i, [middle], canvas=LANES, lane=lane, duration=duration, y=1) == [(grey,) * 3]
            shown += 1
    assert shown > 100
    page.locator(".rbl-row").nth(4).scroll_into_view_if_needed()
    box = page.locator("canvas").nth(LANES).bounding_box()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 4.5 * lane)
    wait_until(page, "!document.querySelector('.rbl-tip').hidden")
    (last,) = [count for _, count in members[4]["owned"]][-1:]
    assert f"owns {last} partition{'s' * (last != 1)}" in all_texts(page, ".rbl-tip div")


def test_ten_thousand_partitions_are_mixed_into_the_height_of_a_screen(opened):
    trace = large(10_000, "cooperative-sticky", members=30, rounds=5)
    page = opened(show(trace))
    box = page.locator("canvas").first.bounding_box()
    assert box["height"] == 600
    duration = trace.started.duration_ms
    (settled,) = page.evaluate(PIXEL, [OWNERSHIP, [0.99], 300])
    assert tuple(settled[:3]) == rgb("#b5b5b5")
    assert settled[3] == 255
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 300.5)
    name = page.inner_text(".rbl-past strong").partition(",")[0]
    partition = int(name.removeprefix("t-"))
    assert abs(partition - 5_000) <= 20
    assert all_texts(page, ".rbl-past li") == history_of(trace, partition)
    assert shown_ms(page) == pytest.approx(duration / 2, rel=0.01)
    page.get_by_label("Lanes grouped by").select_option("member")
    page.locator(".rbl-row").nth(7).focus()
    assert page.locator(".rbl-highlights .rbl-hot").count() > 10


def test_lanes_that_share_a_line_have_their_colours_mixed(opened):
    members = {"a": {"t": list(range(0, 1_200, 2))}, "b": {"t": list(range(1, 1_200, 2))}}
    trace = trace_of(
        (0, started("a", "t")), (0, started("b", "t")), round_at(50_000, 1, members), topics={"t": 1_200}
    )
    page = opened(show(trace))
    before, after = page.evaluate(PIXEL, [OWNERSHIP, [0.2, 0.8], 100])
    assert before[3] == 0
    mixed = [(x + y) // 2 for x, y in zip(rgb(PALETTE[0]), rgb(PALETTE[1]), strict=True)]
    assert after[:3] == pytest.approx(mixed, abs=1)


@pytest.mark.parametrize("count", [1, 40, 60, 100, 400, 1_200])
def test_names_of_partitions_are_whole_from_the_first_on(opened, count):
    trace = trace_of((0, started("a", "t")), round_at(1_000, 1, {"a": {"t": [0]}}), topics={"t": count})
    page = opened(show(trace))
    frame = page.locator(".rbl-overlay").first.bounding_box()
    labels = page.locator(".rbl-overlay >> nth=0 >> text[text-anchor=end]").all()
    assert labels[0].text_content().startswith("t-0")
    boxes = [label.bounding_box() for label in (*labels[:2], labels[-1])]
    assert all(box["y"] >= frame["y"] - 2 for box in boxes)
    assert all(box["y"] + box["height"] <= frame["y"] + frame["height"] + 2 for box in boxes)


# --- for every eye


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(opened, scheme):
    page = opened(compare_view([ran(strategy="range"), ran()], errors=["x: wrong"]), color_scheme=scheme)
    page.focus(".rbl")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    ratios = page.evaluate(CONTRASTS)
    assert len(ratios) > 100
    assert [each for each in ratios if each[1] < 4.5] == []


def luminance(colour):
    parts = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_letters_on_lanes_are_above_the_lines_of_changes(opened):
    """A letter has an outline in the colour of its lane, which interrupts the line."""
    page = opened(show(ran()))
    kinds = page.locator(".rbl-mark, .rbl-owner").evaluate_all(
        "(found) => found.map((each) => each.localName)"
    )
    assert kinds == sorted(kinds)
    assert {"line", "text"} == {*kinds}
    strokes = page.locator(".rbl-owner").evaluate_all("(found) => found.map((each) => each.style.stroke)")
    letters = svg_texts(page, ".rbl-owner")
    assert strokes == [f"rgb{rgb(PALETTE['ABC'.index(letter)])}" for letter in letters]


def test_letters_on_lanes_can_be_read_on_every_colour(opened):
    clients = [f"m{i}" for i in range(8)]
    owned = {client: {"t": [i]} for i, client in enumerate(clients)}
    begun = [(0, started(client, "t")) for client in clients]
    page = opened(show(trace_of(begun, round_at(1_000, 1, owned), topics={"t": 8})))
    letters = page.locator(".rbl-owner")
    assert letters.count() == 8
    for i in range(8):
        fill = letters.nth(i).evaluate("(each) => getComputedStyle(each).fill")
        ink, ground = luminance(map(int, re.findall(r"\d+", fill))), luminance(rgb(PALETTE[i]))
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_ground_follows_the_scheme(opened, scheme):
    page = opened(show(ran()), color_scheme=scheme)
    ground = page.locator(".rbl").evaluate("(each) => getComputedStyle(each).backgroundColor")
    bright = luminance(map(int, re.findall(r"\d+", ground)[:3]))
    assert bright > 0.9 if scheme == "light" else bright < 0.05


CUT_OFF_TEXTS = """() => [...document.querySelectorAll(".rbl svg text")].filter((text) => {
  const [own, frame] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
  const aside = own.left < frame.left - 1 || own.right > frame.right + 1;
  return own.width && (aside || own.bottom > frame.bottom + 2);
}).map((text) => text.textContent)"""


@pytest.mark.parametrize("width", [1280, 640])
@pytest.mark.parametrize("scenario", ["scale-out", "crowd"])
def test_at_200_percent_nothing_overlaps_or_is_cut(opened, width, scenario):
    traces = [ran(CROWD)] if scenario == "crowd" else [ran(strategy="range"), ran()]
    page = opened(compare_view(traces), viewport={"width": width, "height": 400})
    go_to(page, traces[0].started.duration_ms * 2 // 3)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF_TEXTS) == []
    controls = [each.bounding_box() for each in page.locator(".rbl-controls > :not([hidden])").all()]
    for i, a in enumerate(controls):
        assert a["x"] >= 0
        assert a["x"] + a["width"] <= width
        for b in controls[i + 1 :]:
            apart = a["x"] + a["width"] <= b["x"] or a["y"] + a["height"] <= b["y"]
            assert apart or b["x"] + b["width"] <= a["x"]
    blocks = [each.bounding_box() for each in page.locator(".rbl-view >> nth=0 >> xpath=./*").all()]
    shown = [block for block in blocks if block]
    assert all(a["y"] + a["height"] <= b["y"] + 1 for a, b in pairwise(shown))


def test_on_a_narrow_screen_a_view_scrolls_within_itself(opened):
    page = opened(compare_view([ran(strategy="range"), ran()]), viewport={"width": 320, "height": 400})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 320
    assert page.locator(".rbl-view").first.evaluate("(view) => view.scrollWidth > view.clientWidth")


def test_metrics_scroll_beside_their_names_and_each_is_one_line(opened):
    traces = [ran(strategy=name) for name in ("range", "sticky", "cooperative-sticky")]
    page = opened(compare_view(traces), viewport={"width": 500, "height": 800})
    page.get_by_label("Figures shown").select_option("all")
    heights = page.locator(".rbl-figures th[scope=row]").evaluate_all(
        "(heads) => heads.map((head) => Math.round(head.getBoundingClientRect().height))"
    )
    assert max(heights) - min(heights) <= 1
    head = page.locator(".rbl-figures th[scope=row]").first
    page.evaluate("document.querySelector('.rbl-wide').scrollLeft = 99")  # the groups are out of sight
    before = head.bounding_box()
    assert page.evaluate("document.querySelector('.rbl-wide').scrollLeft = 120") == 120
    assert page.evaluate("document.querySelector('.rbl-wide').scrollLeft") == 120
    assert head.bounding_box() == before


def test_a_view_that_is_made_wider_is_drawn_anew(page):
    page.set_viewport_size({"width": 1_300, "height": 800})
    wait_until(page, "document.querySelector('canvas').width > 900")
    go_to(page, 60_000)
    assert pixels(page, 0, [60_000]) == [rgb(PALETTE[0])]


def test_everything_has_a_name_for_screen_readers(both):
    unnamed = both.evaluate("""() =>
      [...document.querySelectorAll("button, input, select, svg:not([aria-hidden]), section, [tabindex]")]
      .filter((each) => !each.getAttribute("aria-label") && !each.textContent.trim())
      .map((each) => each.outerHTML.slice(0, 80))""")
    assert unnamed == []
    assert both.get_by_role("region", name="Rebalances of scale-out").count() == 1
    assert (
        both.get_by_role("slider", name="Time").get_attribute("aria-valuetext")
        == f"{clock(OPENS)}, Round 2 of 3, with the start, Round 2 of 4, with the start"
    )
    assert both.get_by_role("group", name="Time").get_by_role("button").count() == 9
    assert both.locator("th:not([scope])").count() == 0


def test_the_focus_can_be_seen(page):
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.locator(".rbl-row").nth(0).focus()
    assert page.locator(".rbl-row rect").first.evaluate("(each) => getComputedStyle(each).stroke") != "none"
