"""A person plays a run, steps through its rounds, looks closer, points at members, and leaves with a link."""

from functools import partial

import pytest

from rebalance_jupyter import show
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    DURATION,
    LANES,
    MEMBER,
    MEMBERS,
    OPENS,
    STEPS,
    all_texts,
    click_lane,
    comes_to,
    drawn,
    go_to,
    history_of,
    hover_lane,
    keys_that_left,
    owner_of,
    pixels,
    rgb,
    shown_ms,
    svg_texts,
    time_of,
    tip,
    wait_until,
    window_of,
)
from tests.rebalance_jupyter.samples import clock, ran, spans_of, told_at

MODEL = "document.querySelector('.rbl').rbl.model"

# --- rounds


def test_it_opens_at_the_first_round_after_the_start(page):
    assert page.title() == page.inner_text("h2") == "scale-out"
    assert page.inner_text(".rbl-view h3") == "cooperative-sticky"
    assert time_of(page) == clock(OPENS)
    assert page.inner_text(".rbl-sentence").startswith("generation 2")
    assert page.locator(".rbl-verdict").count() == 0


def test_steps_land_where_rounds_began_and_ended_and_each_has_its_sentence_counts_flows_and_state(page):
    document = view_model(ran()).document
    rounds = document["rounds"]
    page.focus(".rbl")
    page.keyboard.press("Home")
    for number, each in enumerate(rounds):
        for at_ms in (each["began"], each["stable"]):
            page.keyboard.press("ArrowRight")
            assert time_of(page) == clock(at_ms)
            assert page.inner_text(".rbl-number") == f"Round {number + 1} of {len(rounds)}, with the start"
            assert page.inner_text(".rbl-sentence") == told_at(each, at_ms)
            state = [name for when, name in document["states"] if when <= at_ms][-1]
            assert svg_texts(page, ".rbl-lit text") == [state]
        counts = ", ".join(f"{what} {count}" for what, count in each["counts"].items() if count)
        said = [counts, f"because {'; '.join(each['causes'])}", *filter(None, [each["waited"]])]
        assert page.inner_text(".rbl-counts") == " · ".join(said)
        assert svg_texts(page, ".rbl-flow > text") == [str(count) for _, _, count in each["flows"]]
    page.keyboard.press("ArrowRight")
    for at_ms in (DURATION, *reversed(STEPS), 0):
        assert time_of(page) == clock(at_ms)
        page.keyboard.press("ArrowLeft")


def test_every_span_has_the_colour_of_its_owner(page):
    for partition, owner, since, until in spans_of(ran()):
        if until - since > 2_000:
            times = [since + (until - since) * part for part in (0.4, 0.5, 0.9)]
            assert pixels(page, partition, times) == [rgb(PALETTE[MEMBERS.index(owner)])] * 3


@pytest.mark.slow
def test_the_cursor_stands_at_its_time_in_every_panel(page):
    for at_ms in (0, 61_234, DURATION):
        go_to(page, at_ms)
        box = page.locator("canvas").first.bounding_box()
        cursors = page.locator(".rbl-cursor, .rbl-at").evaluate_all(
            """(found) => found.map((line) =>
              line.ownerSVGElement.getBoundingClientRect().left + line.x1.baseVal.value)"""
        )
        expected = box["x"] + at_ms / DURATION * box["width"]
        assert cursors == pytest.approx([expected] * 6, abs=0.6)


# --- playing; the browser's clock is the test's


@pytest.fixture
def still(opened):
    page = opened(show(ran()), frozen=True)
    go_to(page, 0)
    page.focus(".rbl")
    return page


@pytest.mark.slow
def test_space_plays_and_a_step_or_a_click_stops_and_the_end_too(still):
    for act in ("Space", "ArrowRight", "Home", None):
        still.keyboard.press("Space")
        before = shown_ms(still)
        still.clock.run_for(1_000)
        assert shown_ms(still) == pytest.approx(before + DURATION / 20, rel=0.05)
        still.keyboard.press(act) if act else click_lane(still, 0, 20_000)
        stopped = time_of(still)
        still.clock.run_for(1_000)
        assert time_of(still) == stopped
    play = still.get_by_role("button", name="Play or pause")
    play.click()
    still.clock.run_for(21_000)
    assert (time_of(still), play.get_attribute("aria-pressed")) == (clock(DURATION), "false")


@pytest.mark.slow
def test_nothing_is_announced_while_it_plays_and_the_round_when_it_rests(still):
    still.evaluate("""() => {
      globalThis.announced = 0;
      const watch = new MutationObserver((changes) => { announced += changes.length; });
      for (const element of document.querySelectorAll("[aria-live], [role=status], [role=alert], output"))
        watch.observe(element, { childList: true, characterData: true, subtree: true, attributes: true });
    }""")
    still.keyboard.press("Space")
    still.clock.run_for(8_000)
    assert still.evaluate("announced") == 0
    still.keyboard.press("Space")
    said = f"cooperative-sticky: {still.inner_text('.rbl-sentence')}"
    assert still.locator(".rbl-live").text_content() == said


# --- keys


@pytest.mark.slow
@pytest.mark.parametrize("inside", [".rbl", ".rbl-slider", ".rbl-row >> nth=0", "button >> nth=2"])
def test_keys_do_not_leave_the_widget_but_chords_of_the_browser_do(page, inside):
    go_to(page, 0)
    left = keys_that_left(page)
    page.locator(inside).focus()
    page.keyboard.press("ArrowRight")
    assert time_of(page) == clock(STEPS[0])
    for key in ("ArrowUp", "ArrowDown", "ArrowLeft", "Home", "End", "d", "Enter", "Escape"):
        page.keyboard.press(key)
    assert left() == []
    page.keyboard.press("Control+s")
    assert left()[-1] == "s"


@pytest.mark.slow
def test_what_asks_for_keys_itself_has_them(page):
    go_to(page, 0)
    page.get_by_label("Lanes grouped by").focus()
    page.keyboard.press("ArrowDown")
    assert (page.get_by_label("Lanes grouped by").input_value(), time_of(page)) == ("member", clock(0))


# --- looking closer


def drag(page, from_ms, to_ms, *, selector="canvas >> nth=0"):
    """Drag over a panel that shows the whole time."""
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator("canvas").first.bounding_box()
    y = page.locator(selector).bounding_box()["y"] + 4
    ends = [box["x"] + at_ms / DURATION * box["width"] for at_ms in (from_ms, to_ms)]
    page.mouse.move(ends[0], y)
    page.mouse.down()
    page.mouse.move(sum(ends) / 2, y)
    page.mouse.move(ends[1], y)
    page.mouse.up()


@pytest.mark.slow
def test_keys_zoom_pan_and_show_all(page):
    page.focus(".rbl")
    go_to(page, 90_000)
    for key, window in (
        ("w", (45_000, 135_000)),
        ("W", (67_500, 112_500)),
        ("d", (78_750, 123_750)),
        ("a", (67_500, 112_500)),
        ("s", (45_000, 135_000)),
        ("Escape", (0, DURATION)),
    ):
        page.keyboard.press(key)
        assert window_of(page) == pytest.approx(window)
    for entry in view_model(ran()).document["rounds"]:
        go_to(page, entry["began"])
        page.keyboard.press("z")
        from_ms, to_ms = window_of(page)
        assert from_ms < entry["began"] < entry["stable"] < to_ms
    for _ in range(20):
        page.keyboard.press("w")
    from_ms, to_ms = window_of(page)
    assert to_ms - from_ms == pytest.approx(20)


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["canvas >> nth=0", "canvas >> nth=1", ".rbl-band"])
def test_a_drag_on_every_panel_zooms_and_selects_nothing_and_the_bar_moves_the_window(page, selector):
    drag(page, 60_000, 100_000, selector=selector)
    window = window_of(page)
    assert window == pytest.approx((60_000, 100_000), abs=400)
    assert (time_of(page), page.locator(".rbl-past").is_hidden()) == (clock(OPENS), True)
    within = [at_ms - window[0] for at_ms in (64_000, 80_000)]
    colours = pixels(page, 0, within, duration=window[1] - window[0])
    assert colours == [rgb(PALETTE[MEMBERS.index(owner_of(ran(), 0, 64_000))])] * 2
    drag(page, 80_000, 100_000, selector=".rbl-bar")
    assert window_of(page) == pytest.approx((80_000, 120_000), abs=800)
    page.keyboard.press("0")
    assert window_of(page) == (0, DURATION)


@pytest.mark.slow
def test_the_wheel_zooms_at_the_pointer_only_if_the_view_has_the_focus_or_with_ctrl(page):
    box = page.locator("canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 30)
    page.mouse.wheel(0, -200)
    wait_until(page, "document.querySelector('.rbl-note').textContent.includes('Ctrl')")
    assert window_of(page) == (0, DURATION)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    comes_to(lambda: window_of(page), pytest.approx((30_000, 120_000), abs=200))
    page.keyboard.up("Control")
    page.focus(".rbl")
    page.mouse.wheel(0, -400)
    comes_to(lambda: window_of(page), pytest.approx((45_000, 90_000), abs=200))


# --- members and partitions


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


@pytest.mark.slow
def test_a_member_is_linked_in_every_panel_wherever_it_or_its_partition_is_pointed_at(page):
    go_to(page, 60_000)
    for partition, at_ms in ((0, 60_000), (1, 20_000), (1, 160_000), (4, 100_000)):
        hover_lane(page, partition, at_ms)
        assert hot(page) == expected_hot(owner_of(ran(), partition, at_ms), 60_000)
    hover_lane(page, 1, 100_000)  # nobody's
    assert hot(page) == ([], [], [], 0)
    for i, name in enumerate(MEMBERS):
        for selector in (".rbl-row", ".rbl-node"):
            page.locator(selector).nth(i).hover(force=True)
            assert hot(page) == expected_hot(name, 60_000)
    page.mouse.move(1, 1)
    page.locator(".rbl-row").first.focus()
    for name in MEMBERS:
        assert hot(page) == expected_hot(name, 60_000)
        page.keyboard.press("ArrowDown")


@pytest.mark.slow
def test_the_pointer_tells_of_owners_rates_loads_states_and_rounds(page):
    hover_lane(page, 2, 60_000)
    (span,) = [each for each in spans_of(ran()) if each[0] == 2 and each[2] <= 60_000 < each[3]]
    name, owner, rate, *_ = tip(page)
    assert (name, rate) == ("clicks-2", "100 records/s")
    assert owner.startswith(f"{'ABC'[MEMBERS.index(span[1])]} {span[1]} since {clock(span[2])}")
    lanes, band = page.locator("canvas").nth(LANES), page.locator(".rbl-band")
    band.scroll_into_view_if_needed()
    x = lanes.bounding_box()["x"] + lanes.bounding_box()["width"] / 3
    page.mouse.move(x, lanes.bounding_box()["y"] + 8)
    name, state, load, *_ = tip(page)
    assert (name, load.startswith("load 200 of 398/s")) == ("c1", True)
    assert state.startswith("stable for ")
    page.mouse.move(x, band.bounding_box()["y"] + 8)
    assert tip(page)[0].startswith("Stable for ")


@pytest.mark.slow
def test_a_click_shows_the_history_of_a_partition_and_goes_to_that_time_and_a_second_one_undoes_it(page):
    past = page.locator(".rbl-past")
    for partition in range(6):
        click_lane(page, partition, 60_000)
        assert shown_ms(page) == pytest.approx(60_000, abs=400)
        assert page.inner_text(".rbl-past strong") == f"clicks-{partition}, owner by owner"
        assert all_texts(page, ".rbl-past li") == history_of(ran(), partition)
    click_lane(page, 5, 60_000)
    assert past.is_hidden()
    page.focus(".rbl")
    for key, partition in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert all_texts(page, ".rbl-past li") == history_of(ran(), partition)
    page.keyboard.press("Escape")
    assert past.is_hidden()


@pytest.mark.slow
def test_lanes_are_grouped_by_member_at_the_cursor(page):
    page.get_by_label("Lanes grouped by").select_option("member")
    for at_ms in (0, 20_000, 60_000, 100_000, DURATION - 1):
        go_to(page, at_ms)
        owners = {p: owner_of(ran(), p, at_ms) or "" for p in range(6)}
        page.get_by_label("Lanes grouped by").select_option("topic")
        page.get_by_label("Lanes grouped by").select_option("member")
        names = svg_texts(page, ".rbl-stack >> nth=0 >> text title")
        grouped = sorted(range(6), key=lambda p: (owners[p], p))
        assert [int(name.rpartition("-")[2]) for name in names] == grouped


@pytest.mark.slow
def test_lanes_of_members_have_their_hues_and_the_patterns_of_the_legend(page):
    """At rest the hue is plain; in a round it is pale with lines, and nothing of it is left after a crash."""

    def during(member, from_ms, to_ms):
        times = range(from_ms, to_ms, 100)
        return set(pixels(page, member, times, canvas=LANES, lane=MEMBER, y=8))

    patterns = page.locator(".rbl-legend >> nth=1 >> span").evaluate_all(
        "(found) => found.map((each) => [each.textContent, each.firstChild.dataset.pattern])"
    )
    assert dict(patterns) == {"joining": "round", "waiting": "wait", "stable": "rest", "crashed": "ended"}
    assert [during(i, 60_000, 80_000) for i in range(3)] == [{rgb(hue)} for hue in PALETTE[:3]]
    pale = tuple(round(part + (255 - part) * 0.6) for part in rgb(PALETTE[0]))
    assert pale in during(0, 6_000, 11_000)
    assert all(max(colour) - min(colour) <= 30 for colour in during(1, 100_000, 170_000))


# --- what leaves the page


def test_a_program_sets_the_zoom_and_the_partition_and_the_address_has_them(opened):
    page = opened(show(ran()))
    go_to(page, 60_000)
    page.evaluate(f"{MODEL}.set('zoom', [30_000, 90_000])")
    page.evaluate(f"{MODEL}.set('selected', 'clicks-2')")
    drawn(page)
    assert window_of(page) == (30_000, 90_000)
    assert page.inner_text(".rbl-past strong").startswith("clicks-2")
    page.focus(".rbl")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("location.hash") == "#t=60&zoom=30-90&partition=clicks-3"
    page.keyboard.press("Escape")
    assert page.evaluate(f"{MODEL}.get('selected')") == ""


@pytest.mark.slow
def test_a_page_goes_to_the_place_of_its_address(opened):
    page = opened(show(ran()))
    go = partial(
        page.evaluate,
        """(address) => new Promise((done) => {
          addEventListener("hashchange", done, { once: true }); // after the listener of the page
          location.hash = address;
        }).then(() => true)""",
    )
    go("#t=45.5&zoom=40-50&partition=clicks-3")
    assert (time_of(page), window_of(page)) == ("0:00:45.500", (40_000, 50_000))
    assert page.inner_text(".rbl-past strong").startswith("clicks-3")
    go("#t=never&partition=no-such")
    assert time_of(page) == "0:00:45.500"


@pytest.mark.slow
def test_notes_are_pinned_to_moments_and_removed(opened):
    view = show(ran())
    view.notes = [(90_000, "c2 <crashes>")]
    page = opened(view)
    go_to(page, 30_000)
    page.focus(".rbl")
    page.keyboard.press("n")
    page.keyboard.type("n 0 joins")
    page.keyboard.press("Enter")
    pinned = ["⚑ 0:00:30.000 n 0 joins", "⚑ 0:01:30.000 c2 <crashes>"]
    assert all_texts(page, ".rbl-pinned button:first-child") == pinned
    marks = ["join c3, ⚑ n 0 joins", "crash c2, ⚑ c2 <crashes>"]
    assert svg_texts(page, ".rbl-scenario g:last-child text") == marks
    page.locator(".rbl-pinned button").nth(2).click()
    assert time_of(page) == "0:01:30.000"
    page.locator(".rbl-pinned button").nth(1).click()
    assert all_texts(page, ".rbl-pinned button:first-child") == pinned[1:]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<svg "), ("png", b"\x89PNG")])
def test_a_button_saves_what_one_sees(opened, tmp_path, kind, begins):
    page = opened(show(ran()))
    with page.expect_download() as begun:
        page.get_by_role("button", name=f"Save what one sees as {kind.upper()}").click()
    assert begun.value.suggested_filename == f"scale-out.{kind}"
    begun.value.save_as(tmp_path / "saved")
    assert (tmp_path / "saved").read_bytes().startswith(begins)
