"""What the page shows and does, beside what the trace says. Pages are files, opened in a browser."""

import math
import re
from itertools import pairwise

import pytest

from coordinator_core import events as ev
from coordinator_core.scoring.picture import PALETTE
from rebalance_jupyter import compare_view, show
from rebalance_jupyter.page import as_page
from rebalance_jupyter.view_model import ViewModel, view_model
from tests.benchmarks.jupyter import large
from tests.coordinator_core.scoring.traces import changed, round_at, started, trace_of
from tests.rebalance_jupyter.samples import (
    ALONE,
    CROWD,
    CUT_OFF,
    NOBODY,
    TOO_SHORT,
    clock,
    owned_at,
    ran,
    spans_of,
)

MEMBERS = ("c1", "c2", "c3")
DURATION = 180_000
STABLE = [8_329, 32_355, 35_366, 137_385]
HATCH = {(0xDD,) * 3, (0x88,) * 3}
BORDER = (0x33,) * 3
OWNERSHIP, LANES = 0, 1

PIXEL = """([canvas, times, y]) => {
  const element = document.querySelectorAll("canvas")[canvas];
  const context = element.getContext("2d");
  return times.map((x) => [...context.getImageData(Math.floor(x * element.width), y, 1, 1).data]);
}"""


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def pixels(page, partition, times, *, canvas=OWNERSHIP, lane=18, duration=DURATION):
    """Colours of a lane at times, None where nothing is drawn."""
    found = page.evaluate(
        PIXEL, [canvas, [at_ms / duration for at_ms in times], partition * lane + lane // 2]
    )
    return [tuple(colour[:3]) if colour[3] else None for colour in found]


def time_of(page):
    return page.inner_text(".rbl-time")


def go_to(page, at_ms):
    page.locator(".rbl-slider").fill(str(at_ms))
    assert time_of(page) == clock(at_ms)


def click_lane(page, partition, at_ms, *, lane=18, duration=DURATION, view=0):
    box = page.locator(".rbl-view").nth(view).locator("canvas").first.bounding_box()
    x, y = box["x"] + at_ms / duration * box["width"], box["y"] + (partition + 0.5) * lane
    page.mouse.click(x, y)


def hover_lane(page, partition, at_ms, *, lane=18):
    box = page.locator("canvas").first.bounding_box()
    page.mouse.move(box["x"] + at_ms / DURATION * box["width"], box["y"] + (partition + 0.5) * lane)


def all_texts(page, selector):
    return page.locator(selector).all_inner_texts()


def svg_texts(page, selector):
    return page.locator(selector).evaluate_all("(found) => found.map((each) => each.textContent)")


def keys_that_left(page):
    """Begin to note the keys that come out of the widget."""
    page.evaluate("""() => {
      globalThis.left = [];
      document.body.addEventListener("keydown", (event) => left.push(event.key));
    }""")
    return lambda: page.evaluate("left")


def owner_of(trace, partition, at_ms):
    owners = [
        owner for p, owner, since, until in spans_of(trace) if p == partition and since <= at_ms < until
    ]
    return owners[-1] if owners else None


@pytest.fixture
def page(opened):
    return opened(show(ran()))


# --- time


def test_it_opens_at_the_beginning(page):
    assert page.title() == "scale-out"
    assert page.inner_text("h2") == "scale-out"
    assert page.inner_text("h3") == "cooperative-sticky"
    assert time_of(page) == "0:00:00.000"
    assert page.inner_text(".rbl-sentence") == "before the first round"


def test_the_cursor_stands_at_its_time_in_every_panel(page):
    for at_ms in (0, 8_330, 61_234, DURATION):
        go_to(page, at_ms)
        box = page.locator("canvas").first.bounding_box()
        expected = box["x"] + at_ms / DURATION * box["width"]
        cursors = page.locator(".rbl-cursor").evaluate_all(
            """(found) => found.map((line) =>
              line.ownerSVGElement.getBoundingClientRect().left + line.x1.baseVal.value)"""
        )
        assert len(cursors) == 3
        assert cursors == pytest.approx([expected] * 3, abs=0.6)


def test_steps_land_where_the_rounds_became_stable(page):
    assert [each["stable"] for each in view_model(ran()).document["rounds"]] == STABLE
    stops = [0, *STABLE, DURATION]
    page.focus(".rbl")
    for at_ms in stops[1:]:
        page.keyboard.press("ArrowRight")
        assert time_of(page) == clock(at_ms)
    page.keyboard.press("ArrowRight")
    assert time_of(page) == clock(DURATION)
    for at_ms in reversed(stops[:-1]):
        page.keyboard.press("ArrowLeft")
        assert time_of(page) == clock(at_ms)
    page.keyboard.press("ArrowLeft")
    assert time_of(page) == clock(0)


def test_home_and_end(page):
    go_to(page, 50_000)
    page.focus(".rbl")
    page.keyboard.press("End")
    assert time_of(page) == clock(DURATION)
    page.keyboard.press("Home")
    assert time_of(page) == clock(0)


def test_buttons_do_what_the_keys_do(page):
    for name, at_ms in (
        ("One round on (right arrow)", STABLE[0]),
        ("One round on (right arrow)", STABLE[1]),
        ("One round back (left arrow)", STABLE[0]),
        ("To the end (End)", DURATION),
        ("To the beginning (Home)", 0),
    ):
        page.get_by_role("button", name=name).click()
        assert time_of(page) == clock(at_ms)


def test_keys_work_wherever_the_focus_is_within(page):
    for selector in (".rbl-slider", ".rbl-row >> nth=1", "button >> nth=0"):
        go_to(page, 0)
        page.locator(selector).focus()
        page.keyboard.press("ArrowRight")
        assert time_of(page) == clock(STABLE[0])


def test_what_asks_for_keys_itself_has_them(page):
    page.get_by_label("Speed").focus()
    page.keyboard.press("ArrowDown")
    assert (page.get_by_label("Speed").input_value(), time_of(page)) == ("2", clock(0))


def test_keys_do_not_leave_the_widget_but_those_of_the_browser_do(page):
    left = keys_that_left(page)
    for selector in (".rbl", ".rbl-slider", "select >> nth=0", ".rbl-row >> nth=0", "button >> nth=2"):
        page.locator(selector).focus()
        for key in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "d", "Enter"):
            page.keyboard.press(key)
    page.keyboard.press("Escape")
    assert left() == []
    page.keyboard.press("Control+s")
    assert left() == ["Control", "s"] or left() == ["s"]


# --- playing; the browser's clock is the test's


@pytest.fixture
def still(opened):
    return opened(show(ran()), frozen=True)


def shown_ms(page):
    hours, minutes, seconds = time_of(page).split(":")
    return round(1_000 * (3_600 * int(hours) + 60 * int(minutes) + float(seconds)))


def test_space_plays_at_the_chosen_speed_and_stops(still):
    still.focus(".rbl")
    still.keyboard.press("Space")
    still.clock.run_for(1_000)
    assert shown_ms(still) == pytest.approx(DURATION / 20, rel=0.05)
    still.get_by_label("Speed").select_option("4")
    before = shown_ms(still)
    still.clock.run_for(1_000)
    assert shown_ms(still) - before == pytest.approx(4 * DURATION / 20, rel=0.05)
    still.focus(".rbl")
    still.keyboard.press("Space")
    stopped = time_of(still)
    still.clock.run_for(1_000)
    assert time_of(still) == stopped


def test_play_stops_at_the_end_and_begins_anew(still):
    play = still.get_by_role("button", name="Play or pause")
    assert (play.inner_text(), play.get_attribute("aria-pressed")) == ("▶", "false")
    play.click()
    assert (play.inner_text(), play.get_attribute("aria-pressed")) == ("❚❚", "true")
    still.clock.run_for(21_000)
    assert time_of(still) == clock(DURATION)
    assert (play.inner_text(), play.get_attribute("aria-pressed")) == ("▶", "false")
    play.click()
    still.clock.run_for(500)
    assert 0 < shown_ms(still) < DURATION / 20


def test_a_step_or_a_click_stops_it(still):
    still.focus(".rbl")
    for act in (
        lambda: still.keyboard.press("ArrowRight"),
        lambda: still.keyboard.press("Home"),
        lambda: click_lane(still, 0, 20_000),
    ):
        still.keyboard.press("Space")
        still.clock.run_for(300)
        act()
        stopped = time_of(still)
        still.clock.run_for(1_000)
        assert time_of(still) == stopped


def test_nothing_is_announced_while_it_plays_and_the_round_when_it_rests(still):
    still.evaluate("""() => {
      globalThis.announced = [];
      const watch = new MutationObserver((changes) => announced.push(...changes.map((each) => each.type)));
      const live = "[aria-live], [role=status], [role=alert], [role=log], output";
      for (const element of document.querySelectorAll(live))
        watch.observe(element, { childList: true, characterData: true, subtree: true, attributes: true });
    }""")
    still.focus(".rbl")
    still.keyboard.press("Space")
    still.clock.run_for(8_000)
    assert still.inner_text(".rbl-sentence").startswith("generation 3")
    assert still.evaluate("announced") == []
    still.keyboard.press("Space")
    assert still.evaluate("announced") != []
    assert (
        still.locator(".rbl-live").text_content()
        == f"cooperative-sticky: {still.inner_text('.rbl-sentence')}"
    )


def test_nothing_is_announced_while_the_slider_is_dragged(page):
    before = page.locator(".rbl-live").text_content()
    page.locator(".rbl-slider").evaluate("(s) => { s.value = 40000; s.dispatchEvent(new Event('input')); }")
    assert (time_of(page), page.locator(".rbl-live").text_content()) == (clock(40_000), before)
    page.locator(".rbl-slider").evaluate("(s) => { s.dispatchEvent(new Event('change')); }")
    assert "generation 3" in page.locator(".rbl-live").text_content()


def test_reduced_motion_goes_from_round_to_round(opened):
    page = opened(show(ran()), frozen=True, reduced_motion="reduce")
    page.focus(".rbl")
    page.keyboard.press("Space")
    seen = [time_of(page)]
    for _ in range(12):
        page.clock.run_for(500)
        seen.append(time_of(page))
    assert list(dict.fromkeys(seen)) == [clock(at_ms) for at_ms in (0, *STABLE, DURATION)]


# --- ownership


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_every_span_has_the_colour_of_its_owner(opened, strategy):
    trace = ran(strategy=strategy)
    page = opened(show(trace))
    for partition, owner, since, until in spans_of(trace):
        if until - since > 2_000:
            times = [since + (until - since) * part for part in (0.4, 0.5, 0.9)]
            assert pixels(page, partition, times) == [rgb(PALETTE[MEMBERS.index(owner)])] * 3


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_gaps_are_hatched_handovers_marked_and_nothing_is_drawn_before_the_first_owner(opened, strategy):
    trace = ran(strategy=strategy)
    page = opened(show(trace))
    spans = spans_of(trace)
    gaps = marks = 0
    for (p, owner, _, until), (q, heir, since, _) in pairwise(spans):
        if p == q and since - until > 2_000:
            times = [until + (since - until) * n / 40 for n in range(4, 35)]
            assert set(pixels(page, p, times)) <= HATCH
            gaps += 1
        if p == q and owner != heir:
            assert BORDER in pixels(page, p, [since, since + 200])
            marks += 1
    assert (gaps, marks) == (
        {"range": 2, "cooperative-sticky": 4}[strategy],
        {"range": 5, "cooperative-sticky": 4}[strategy],
    )
    assert pixels(page, 0, [0, 4_000, 8_000]) == [None] * 3


def test_what_nobody_owns_to_the_end_is_hatched_to_the_end(opened):
    trace = trace_of(
        (0, started("m", "t")),
        round_at(10_000, 1, {"m": {"t": [0]}}),
        (40_000, ev.MemberStopped(client="m", how="closed")),
        topics={"t": 1},
    )
    page = opened(show(trace))
    shown = pixels(page, 0, [20_000, *range(42_000, 100_000, 700)], duration=100_000)
    assert shown[0] == rgb(PALETTE[0])
    assert set(shown[1:]) == HATCH


def test_whoever_took_over_is_drawn_over_one_who_has_not_heard_yet(opened):
    trace = ran(CUT_OFF, "range")
    page = opened(show(trace))
    names = ["c-0", "c-1", "c-2"]
    both = 0
    for at_ms in range(83_500, 120_000, 4_000):
        for partition in range(4):
            owners = [
                o for p, o, since, until in spans_of(trace) if p == partition and since <= at_ms < until
            ]
            both += len(owners) > 1
            if owners:
                assert pixels(page, partition, [at_ms]) == [rgb(PALETTE[names.index(owners[-1])])]
    assert both > 3


def test_lanes_have_names_letters_and_marks(page):
    texts = svg_texts(page, ".rbl-stack >> nth=0 >> text")
    assert [text for text in texts if "clicks" in text] == [f"clicks-{n}clicks-{n}" for n in range(6)]
    wide = [owner for _, owner, since, until in spans_of(ran()) if until - since > 10_000]
    assert sorted(t for t in texts if len(t) == 1) == sorted("ABC"[MEMBERS.index(owner)] for owner in wide)
    assert svg_texts(page, ".rbl-mark title") == ["0:00:30.000 join c3", "0:01:30.000 crash c2"]
    assert svg_texts(page, ".rbl-happened") == ["↑ join c3", "↑ crash c2"]
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == ["A c1", "B c2", "C c3", "nobody"]


def lane_names(page):
    names = svg_texts(page, ".rbl-stack >> nth=0 >> text title")
    return [int(name.rpartition("-")[2]) for name in names]


def test_lanes_are_grouped_by_topic_or_by_member(page):
    for at_ms in (0, 20_000, 60_000, 100_000, DURATION - 1):
        go_to(page, at_ms)
        assert lane_names(page) == list(range(6))
        page.get_by_label("Lanes grouped by").select_option("member")
        owners = {p: owner_of(ran(), p, at_ms) or "" for p in range(6)}
        expected = sorted(range(6), key=lambda p: (owners[p], p))
        assert lane_names(page) == expected
        for row, partition in enumerate(expected):
            if owners[partition]:
                assert pixels(page, row, [at_ms]) == [rgb(PALETTE[MEMBERS.index(owners[partition])])]
        page.get_by_label("Lanes grouped by").select_option("topic")
        assert lane_names(page) == list(range(6))


def test_groups_by_member_follow_the_cursor_when_it_rests(page):
    page.get_by_label("Lanes grouped by").select_option("member")
    page.focus(".rbl")
    for at_ms in STABLE:
        page.keyboard.press("ArrowRight")
        owners = {p: owner_of(ran(), p, at_ms) or "" for p in range(6)}
        assert lane_names(page) == sorted(range(6), key=lambda p: (owners[p], p))


# --- a partition's history


def history_of(trace, partition):
    return [
        f"{clock(since)} to {clock(until)}: {owner}"
        for p, owner, since, until in spans_of(trace)
        if p == partition
    ]


def test_a_click_shows_the_history_and_goes_to_that_time(page):
    assert page.locator(".rbl-past").is_hidden()
    for partition in range(6):
        click_lane(page, partition, 60_000)
        assert shown_ms(page) == pytest.approx(60_000, abs=400)
        assert page.inner_text(".rbl-past strong") == f"clicks-{partition}, owner by owner"
        assert all_texts(page, ".rbl-past li") == history_of(ran(), partition)
        outline = page.locator(".rbl-selected").bounding_box()
        lanes = page.locator("canvas").first.bounding_box()
        assert outline["y"] + outline["height"] / 2 == pytest.approx(
            lanes["y"] + 18 * (partition + 0.5), abs=2
        )


def test_a_click_on_a_name_shows_the_history_and_leaves_the_time(page):
    go_to(page, 50_000)
    page.locator(".rbl-stack >> nth=0 >> text", has_text="clicks-3").click()
    assert page.inner_text(".rbl-past strong") == "clicks-3, owner by owner"
    assert time_of(page) == clock(50_000)


def test_a_click_on_members_or_states_goes_to_that_time(page):
    for canvas, selector in ((1, "canvas >> nth=1"), (1, ".rbl-band")):
        go_to(page, 0)
        lanes = page.locator("canvas").nth(canvas).bounding_box()
        page.mouse.click(lanes["x"] + lanes["width"] / 3, page.locator(selector).bounding_box()["y"] + 8)
        assert shown_ms(page) == pytest.approx(60_000, abs=400)


def test_up_and_down_choose_a_partition(page):
    page.focus(".rbl")
    for key, partition in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert all_texts(page, ".rbl-past li") == history_of(ran(), partition)


def test_a_partition_that_nobody_ever_owned(opened):
    page = opened(show(ran(NOBODY)))
    click_lane(page, 1, 5_000, duration=20_000)
    assert page.inner_text(".rbl-past strong") == "t-1: nobody ever owned it"
    assert all_texts(page, ".rbl-past li") == []


# --- members


def generation_at(trace, client, at_ms):
    joins = [
        e.event.generation
        for e in trace.events
        if isinstance(e.event, ev.Joined) and e.event.client == client and e.at_ms <= at_ms
    ]
    return joins[-1] if joins else None


def lag_at(trace, client, at_ms):
    measures = [
        e.event.by_client[client]
        for e in trace.events
        if isinstance(e.event, ev.LagMeasured) and client in e.event.by_client and e.at_ms <= at_ms
    ]
    return measures[-1] if measures else None


def test_members_have_their_figures(page):
    for at_ms in (0, 2_400, 8_332, 29_000, 31_000, 32_360, 60_000, 100_000, 150_000, DURATION):
        go_to(page, at_ms)
        labels = page.locator(".rbl-row").evaluate_all(
            "(rows) => rows.map((row) => row.getAttribute('aria-label'))"
        )
        for name, label in zip(MEMBERS, labels, strict=True):
            generation = generation_at(ran(), name, at_ms)
            assert label.startswith(f"{name}: ")
            if name == "c2" and at_ms >= 90_000:
                assert label == "c2: crashed"
            elif name == "c3" and at_ms < 30_000:
                assert label == "c3: not started"
            elif generation is None:
                assert "·" not in label
            else:
                owned, lag = len(owned_at(ran(), name, at_ms)), lag_at(ran(), name, at_ms)
                shown = math.floor(round(lag, 1) + 0.5)
                assert re.fullmatch(rf"{name}: \w+ g{generation} · {owned} · lag {shown:,}", label)


def test_lanes_of_members_have_the_colours_of_the_legend(page):
    colours = dict(
        page.locator(".rbl-legend >> nth=1 >> span").evaluate_all(
            """(found) => found.map((each) =>
              [each.textContent, getComputedStyle(each.firstChild).backgroundColor])"""
        )
    )
    assert set(colours) == {"joining", "waiting", "stable", "crashed"}
    drawn = [pixels(page, i, [5_000, 60_000, 150_000], canvas=LANES, lane=16) for i in range(3)]
    expected = [["joining", "stable", "stable"], ["joining", "stable", "crashed"], [None, "stable", "stable"]]
    named = {tuple(map(int, re.findall(r"\d+", colour))): state for state, colour in colours.items()}
    assert [[named.get(colour) for colour in row] for row in drawn] == expected


def test_callbacks_are_ticks_above_and_below_the_lanes(page):
    width = page.locator("canvas").first.bounding_box()["width"]
    drawn = page.locator(".rbl-calls").evaluate_all("(found) => found.map((each) => each.getAttribute('d'))")
    for i, (member, path) in enumerate(zip(view_model(ran()).document["members"], drawn, strict=True)):
        ticks = [tuple(map(float, tick)) for tick in re.findall(r"M([\d.]+) ([\d.]+)h3", path)]
        assert len(ticks) == len(member["calls"]) > 0
        for (left, top), (at_ms, kind, _) in zip(ticks, member["calls"], strict=True):
            assert left - ticks[0][0] == pytest.approx(
                (at_ms - member["calls"][0][0]) / DURATION * width, abs=0.2
            )
            assert top == 16 * i + (0 if kind == "assigned" else 12)


# --- coordinator


def test_the_state_at_the_cursor_is_lit_and_named(page):
    for at_ms, state in view_model(ran()).document["states"]:
        go_to(page, at_ms)
        assert svg_texts(page, ".rbl-lit text") == [state]
        assert state in svg_texts(page, ".rbl-band > text")


def test_the_band_has_the_states_with_their_times(page):
    states = view_model(ran()).document["states"]
    expected = [f"{clock(at_ms)} {state}" for at_ms, state in states]
    assert svg_texts(page, ".rbl-band rect title") == expected
    lanes = page.locator("canvas").first.bounding_box()
    boxes = page.locator(".rbl-band > rect").evaluate_all(
        "(found) => found.map((each) => each.getBoundingClientRect().left)"
    )
    assert boxes == pytest.approx([lanes["x"] + at / DURATION * lanes["width"] for at, _ in states], abs=1)


def test_the_machine_has_all_states_and_moves_and_no_arrow_crosses_a_box(page):
    machine = view_model(ran()).document["machine"]
    assert svg_texts(page, ".rbl-state text") == [name for name, *_ in machine["states"]]
    assert page.locator(".rbl-edge").count() == len(machine["moves"])
    inside = page.evaluate("""() => {
      const boxes = [...document.querySelectorAll(".rbl-state rect")].map((each) => each.getBBox());
      const lines = [...document.querySelectorAll(".rbl-edge")];
      return lines.filter((line) => [0.05, 0.25, 0.5, 0.75, 0.95].some((part) => {
        const x = line.x1.baseVal.value * (1 - part) + line.x2.baseVal.value * part;
        const y = line.y1.baseVal.value * (1 - part) + line.y2.baseVal.value * part;
        return boxes.some((b) => b.x < x && x < b.x + b.width && b.y < y && y < b.y + b.height);
      })).length;
    }""")
    assert inside == 0


# --- this round


def test_each_round_has_its_sentence_counts_causes_and_flows(page):
    rounds = view_model(ran()).document["rounds"]
    for number, each in enumerate(rounds):
        for at_ms in (each["began"], each["stable"]):
            go_to(page, at_ms)
            assert page.inner_text("h4 >> nth=3") == f"Round {number + 1} of {len(rounds)}"
            assert page.inner_text(".rbl-sentence") == each["sentence"]
            counts = ", ".join(f"{what} {count}" for what, count in each["counts"].items() if count)
            assert page.inner_text(".rbl-counts") == f"{counts} · because {'; '.join(each['causes'])}"
            assert page.locator(".rbl-gave").count() == len(each["flows"])
            assert svg_texts(page, ".rbl-flow > text") == [str(count) for _, _, count in each["flows"]]
        go_to(page, each["began"] - 1)
        assert page.inner_text(".rbl-sentence") != each["sentence"]


def test_the_flow_says_what_each_member_gave_and_got(page):
    for each in view_model(ran(strategy="cooperative-sticky")).document["rounds"]:
        go_to(page, each["stable"])
        labels = svg_texts(page, ".rbl-node text:nth-of-type(2)")
        for i, name in enumerate(MEMBERS):
            own = each["members"].get(str(i))
            gave = own["revoked"] + own["lost"] if own else 0
            got = own["assigned"] if own else 0
            assert labels[i] == f"{name}{f' −{gave}' if gave else ''}{f' +{got}' if got else ''}"
        absent = page.locator(".rbl-absent").count()
        assert absent == len(MEMBERS) - len(each["members"])


# --- hover and focus link the panels


def hot(page):
    """By panel: names of hot members; which partitions; how many rounds."""
    rows = svg_texts(page, ".rbl-row.rbl-hot title")
    nodes = svg_texts(page, ".rbl-node.rbl-hot title")
    tops = page.locator(".rbl-highlights .rbl-hot").evaluate_all(
        "(found) => found.map((each) => each.y.baseVal.value)"
    )
    return rows, nodes, [round(top / 18) for top in tops], page.locator(".rbl-took .rbl-hot").count()


def expected_hot(name, at_ms):
    rounds = view_model(ran()).document["rounds"]
    number = str(MEMBERS.index(name))
    owned = [p for p in range(6) if owner_of(ran(), p, at_ms) == name]
    return [name], [name], owned, sum(number in each["members"] for each in rounds)


def test_to_point_at_a_partition_links_its_owner_in_every_panel(page):
    go_to(page, 60_000)
    for partition, at_ms in ((0, 60_000), (1, 20_000), (1, 160_000), (4, 100_000)):
        hover_lane(page, partition, at_ms)
        assert hot(page) == expected_hot(owner_of(ran(), partition, at_ms), 60_000)
    hover_lane(page, 1, 100_000)  # nobody's
    assert hot(page) == ([], [], [], 0)
    hover_lane(page, 0, 60_000)
    page.mouse.move(1, 1)
    assert hot(page) == ([], [], [], 0)


def test_to_point_at_a_member_links_it_in_every_panel(page):
    for selector in (".rbl-row", ".rbl-node"):
        go_to(page, 60_000)
        for i, name in enumerate(MEMBERS):
            page.locator(selector).nth(i).hover(force=True)
            assert hot(page) == expected_hot(name, 60_000)


def test_focus_links_too_and_members_are_walked_with_up_and_down(page):
    go_to(page, 60_000)
    page.locator(".rbl-row").first.focus()
    for name, key in (
        ("c1", "ArrowDown"),
        ("c2", "ArrowDown"),
        ("c3", "ArrowDown"),
        ("c3", "ArrowUp"),
        ("c2", "Tab"),
    ):
        assert hot(page) == expected_hot(name, 60_000)
        page.keyboard.press(key)
    assert hot(page) == ([], [], [], 0)
    assert page.locator(".rbl-row[tabindex='0']").count() == 1


def test_what_is_linked_follows_the_cursor(page):
    page.locator(".rbl-row").first.focus()
    for at_ms in (0, *STABLE, DURATION - 1):
        go_to(page, at_ms)
        page.locator(".rbl-row").first.focus()
        assert hot(page) == expected_hot("c1", at_ms)


def test_to_choose_a_partition_by_key_links_its_owner(page):
    go_to(page, 60_000)
    page.focus(".rbl")
    page.keyboard.press("ArrowDown")
    assert hot(page) == expected_hot("c1", 60_000)


# --- several strategies


@pytest.fixture
def both(opened):
    return opened(compare_view([ran(strategy="range"), ran()], errors=["broken: it <failed>"]))


def test_strategies_stand_one_above_another_in_step(both):
    assert all_texts(both, "h3") == ["range", "cooperative-sticky"]
    tops = [view.bounding_box()["y"] for view in both.locator(".rbl-view").all()]
    assert tops == sorted(tops)
    models = [view_model(ran(strategy=name)).document for name in ("range", "cooperative-sticky")]
    stops = sorted({each["stable"] for model in models for each in model["rounds"]})
    both.focus(".rbl")
    for at_ms in stops:
        both.keyboard.press("ArrowRight")
        assert time_of(both) == clock(at_ms)
        expected = [[r for r in model["rounds"] if r["began"] <= at_ms] for model in models]
        shown = [rounds[-1]["sentence"] if rounds else "before the first round" for rounds in expected]
        assert all_texts(both, ".rbl-sentence") == shown
        states = [[state for when, state in model["states"] if when <= at_ms][-1] for model in models]
        assert svg_texts(both, ".rbl-lit text") == states
    cursors = both.locator(".rbl-cursor").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('x1'))"
    )
    assert (len(cursors), len(set(cursors))) == (6, 1)


def test_metrics_are_below_with_the_difference_to_the_best(both):
    figures = compare_view([ran(strategy="range"), ran()]).figures
    assert all_texts(both, ".rbl-figures thead th") == ["metric", "range", "cooperative-sticky"]
    for row, shown in zip(figures["metrics"], both.locator(".rbl-figures tbody tr").all(), strict=True):
        assert shown.locator("th").inner_text() == row["name"]
        for cell, drawn in zip(row["cells"], shown.locator("td").all(), strict=True):
            assert drawn.inner_text() == f"{cell['text']} {cell['difference']}".strip()
            assert (drawn.get_attribute("class") == "rbl-best") == cell["best"]


def test_a_member_is_linked_in_every_strategy(both):
    both.locator(".rbl-row").nth(1).hover(force=True)
    assert svg_texts(both, ".rbl-row.rbl-hot title") == ["c2", "c2"]
    assert svg_texts(both, ".rbl-node.rbl-hot title") == ["c2", "c2"]


def test_what_failed_is_said_below(both):
    assert all_texts(both, ".rbl-error") == ["broken: it <failed>"]


def test_ids_are_unique_and_used(both):
    both.focus(".rbl")
    both.keyboard.press("End")
    ids = both.locator("[id]").evaluate_all("(found) => found.map((each) => each.id)")
    used = both.locator("[marker-end]").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('marker-end'))"
    )
    assert len(ids) == len(set(ids))
    assert {use.removeprefix("url(#").removesuffix(")") for use in used} <= set(ids)
    assert len(set(used)) == 4  # two machines, two flows


def test_the_second_view_of_a_document_has_other_ids(opened):
    ids = []
    for _ in range(2):
        page = opened(show(ran()))
        ids.append(page.locator("svg [id]").evaluate_all("(found) => found.map((each) => each.id)"))
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])


# --- small, failed, and large


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_nobody_at_all(opened, strategy):
    page = opened(show(ran(NOBODY, strategy)))
    assert page.inner_text("h3") == f"{strategy}; ended Empty"
    assert "No member ever started." in page.inner_text(".rbl")
    assert page.inner_text(".rbl-sentence") == "nobody ever asked to join: there was no round"
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
    assert page.inner_text("h3") == "cooperative-sticky; ended PreparingRebalance"
    assert page.inner_text(".rbl-sentence") == "a round that nobody got through"
    assert svg_texts(page, ".rbl-lit text") == ["PreparingRebalance"]


def test_only_failures(opened):
    page = opened(compare_view([], errors=["range: it failed", "sticky: so did it"]))
    assert page.inner_text("h2") == "nothing to show"
    assert all_texts(page, ".rbl-error") == ["range: it failed", "sticky: so did it"]


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


def test_more_members_than_colours_show_what_is_new_and_letters(opened):
    trace = ran(CROWD)
    page = opened(show(trace))
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == ["new owner", "kept", "nobody"]
    rounds = view_model(trace).document["rounds"]
    second = rounds[1]["began"]
    fresh, kept = rgb(PALETTE[1]), rgb(PALETTE[4])
    changes = {(p, since): [] for p, _, since, _ in spans_of(trace)}
    for partition, owner, since, until in spans_of(trace):
        before = [o for p, o, _, end in spans_of(trace) if p == partition and end <= since]
        changes[partition, since] = before
        middle = (since + until) / 2
        expected = fresh if (not before or before[-1] != owner) and middle < second else None
        if since < second - 2_000 and until > second + 2_000:
            assert pixels(page, partition, [since + 1_000, second + 1_500], lane=15, duration=60_000) == [
                fresh,
                kept,
            ]
        elif expected:
            assert pixels(page, partition, [middle], lane=15, duration=60_000) == [expected]
    letters = [text for text in svg_texts(page, ".rbl-stack >> nth=0 >> text") if len(text) == 1]
    assert set("ABCDEFGHIJKLMN") == set(letters)


def test_ten_thousand_partitions_are_mixed_into_the_height_of_a_screen(opened):
    trace = large(10_000, "cooperative-sticky", members=20, rounds=5)
    page = opened(show(trace))
    box = page.locator("canvas").first.bounding_box()
    assert box["height"] == 600
    duration = trace.started.duration_ms
    (settled,) = page.evaluate(PIXEL, [OWNERSHIP, [0.99], 300])
    assert tuple(settled[:3]) == rgb(PALETTE[4])
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


def test_letters_on_lanes_can_be_read_on_every_colour(opened):
    clients = [f"m{i}" for i in range(8)]
    owned = {client: {"t": [i]} for i, client in enumerate(clients)}
    begun = [(0, started(client, "t")) for client in clients]
    page = opened(show(trace_of(begun, round_at(1_000, 1, owned), topics={"t": 8})))
    letters = page.locator(".rbl-stack >> nth=0 >> text[text-anchor=middle]")
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
    controls = [each.bounding_box() for each in page.locator(".rbl-controls > *").all()]
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


def test_a_view_that_is_made_wider_is_drawn_anew(page):
    page.set_viewport_size({"width": 1_300, "height": 800})
    page.wait_for_function("document.querySelector('canvas').width > 900")
    go_to(page, 60_000)
    assert pixels(page, 0, [60_000]) == [rgb(PALETTE[0])]


def test_everything_has_a_name_for_screen_readers(both):
    unnamed = both.evaluate("""() =>
      [...document.querySelectorAll("button, input, select, svg, section, [tabindex]")]
      .filter((each) => !each.getAttribute("aria-label"))
      .map((each) => each.outerHTML.slice(0, 80))""")
    assert unnamed == []
    assert both.get_by_role("region", name="Rebalances of scale-out").count() == 1
    assert (
        both.get_by_role("slider", name="Time").get_attribute("aria-valuetext")
        == "0:00:00.000, No round yet, No round yet"
    )
    assert both.get_by_role("button").count() == 5
    assert both.locator("th:not([scope])").count() == 0


def test_the_focus_can_be_seen(page):
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.locator(".rbl-row").nth(0).focus()
    assert page.locator(".rbl-row rect").first.evaluate("(each) => getComputedStyle(each).stroke") != "none"
