"""Time in the page: steps, keys, playing, and what is announced."""

import pytest

from rebalance_jupyter import show
from tests.rebalance_jupyter.browser import (
    DURATION,
    STEPS,
    click_lane,
    go_to,
    keys_that_left,
    shown_ms,
    time_of,
)
from tests.rebalance_jupyter.samples import clock, ran

pytestmark = pytest.mark.slow

# --- time


def test_the_cursor_stands_at_its_time_in_every_panel(page):
    for at_ms in (0, 8_330, 61_234, DURATION):
        go_to(page, at_ms)
        box = page.locator("canvas").first.bounding_box()
        expected = box["x"] + at_ms / DURATION * box["width"]
        cursors = page.locator(".rbl-cursor").evaluate_all(
            """(found) => found.map((line) =>
              line.ownerSVGElement.getBoundingClientRect().left + line.x1.baseVal.value)"""
        )
        assert len(cursors) == 5
        assert cursors == pytest.approx([expected] * 5, abs=0.6)


def test_home_and_end(page):
    go_to(page, 50_000)
    page.focus(".rbl")
    page.keyboard.press("End")
    assert time_of(page) == clock(DURATION)
    page.keyboard.press("Home")
    assert time_of(page) == clock(0)


def test_buttons_do_what_the_keys_do(page):
    for name, at_ms in (
        ("To the beginning (Home)", 0),
        ("One step on (right arrow)", STEPS[0]),
        ("One step on (right arrow)", STEPS[1]),
        ("One step back (left arrow)", STEPS[0]),
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
        assert time_of(page) == clock(STEPS[0])


def test_what_asks_for_keys_itself_has_them(page):
    go_to(page, 0)
    page.get_by_label("Lanes grouped by").focus()
    page.keyboard.press("ArrowDown")
    assert (page.get_by_label("Lanes grouped by").input_value(), time_of(page)) == ("member", clock(0))


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


TAKING = """() => {
  globalThis.taken = [];
  const kept = "[data-lm-suppress-shortcuts]"; // keys are of what has the focus, chords of all around it
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey ? event.target.closest(kept) : event.target.matches(kept)) return;
    event.stopPropagation();
    taken.push(event.key);
  }, true);
}"""


@pytest.mark.parametrize("inside", [".rbl", ".rbl-slider", ".rbl-row >> nth=0", "button >> nth=2"])
def test_keys_of_the_notebook_are_not_taken_from_the_widget_but_its_chords_are(page, inside):
    """As JupyterLab's and Notebook's shortcuts are looked for: in whoever comes first, at the document."""
    go_to(page, 0)
    page.evaluate(TAKING)
    page.focus(inside)
    page.keyboard.press("ArrowRight")
    assert time_of(page) == clock(STEPS[0])
    page.keyboard.press("Control+s")
    page.keyboard.press("ArrowLeft")
    assert time_of(page) == clock(0)
    assert page.evaluate("taken") == ["Control", "s"] or page.evaluate("taken") == ["s"]


# --- playing; the browser's clock is the test's


@pytest.fixture
def still(opened):
    page = opened(show(ran()), frozen=True)
    go_to(page, 0)
    return page


def test_space_plays_and_stops(still):
    still.focus(".rbl")
    still.keyboard.press("Space")
    still.clock.run_for(1_000)
    assert shown_ms(still) == pytest.approx(DURATION / 20, rel=0.05)
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
    go_to(page, 0)
    page.focus(".rbl")
    page.keyboard.press("Space")
    seen = [time_of(page)]
    for _ in range(20):
        page.clock.run_for(500)
        seen.append(time_of(page))
    assert list(dict.fromkeys(seen)) == [clock(at_ms) for at_ms in (0, *STEPS, DURATION)]


QUIET_HOURS = """\
name: quiet-hours
duration: 24h
topics:
  t: {partitions: 2, rate: 0}
members:
  - {id: c, count: 2, topics: [t]}
events:
  - {at: 12h, leave: c-1}
"""


def test_playing_skips_what_is_quiet_and_says_so(opened):
    page = opened(show(ran(QUIET_HOURS)), frozen=True)
    go_to(page, 60_000)
    page.focus(".rbl")
    page.keyboard.press("Space")
    page.clock.run_for(700)
    assert page.inner_text(".rbl-note") == "skipping 12 h"
    assert shown_ms(page) > 11 * 3_600_000
    page.clock.run_for(3_000)
    assert 12 * 3_600_000 - 5_000 <= shown_ms(page) < 12.1 * 3_600_000
    page.clock.run_for(30_000)
    assert time_of(page) == clock(24 * 3_600_000)
