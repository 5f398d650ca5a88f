"""The lens on time in the page: zoom, pan, and what is drawn in a part of the time."""

import pytest

from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    DURATION,
    HATCH,
    MEMBERS,
    OPENS,
    comes_to,
    go_to,
    owner_of,
    pixels_within,
    rgb,
    shown_ms,
    svg_texts,
    time_of,
    wait_until,
    window_of,
)
from tests.rebalance_jupyter.samples import clock, ran

pytestmark = pytest.mark.slow


def drag(page, from_ms, to_ms, *, selector="canvas >> nth=0"):
    """Drag over a panel that shows the whole time."""
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator("canvas").first.bounding_box()
    y = page.locator(selector).bounding_box()["y"] + 8
    ends = [box["x"] + at_ms / DURATION * box["width"] for at_ms in (from_ms, to_ms)]
    page.mouse.move(ends[0], y)
    page.mouse.down()
    page.mouse.move(sum(ends) / 2, y)
    page.mouse.move(ends[1], y)
    page.mouse.up()


def test_a_drag_zooms_to_its_stretch_and_a_double_click_shows_all(page):
    go_to(page, 30_000)
    drag(page, 28_000, 40_000)
    window = window_of(page)
    assert window == pytest.approx((28_000, 40_000), abs=400)
    assert time_of(page) == clock(30_000)
    assert page.locator(".rbl-past").is_hidden()
    times = range(29_000, 39_500, 500)
    for partition in range(6):
        for at_ms, colour in zip(times, pixels_within(page, partition, times, window), strict=True):
            owner = owner_of(ran(), partition, at_ms)
            expected = {rgb(PALETTE[MEMBERS.index(owner)])} if owner else HATCH
            assert colour in expected | {(0x33,) * 3}
    assert svg_texts(page, ".rbl-times text")[:2] == ["0:00:30", "0:00:32"]
    box = page.locator("canvas").first.bounding_box()
    page.mouse.dblclick(box["x"] + 40, box["y"] + 8)
    wait_until(page, "document.querySelector('.rbl').rbl.lens.isWhole")


@pytest.mark.parametrize("selector", ["canvas >> nth=1", ".rbl-band"])
def test_a_drag_on_every_panel_zooms_and_selects_nothing(page, selector):
    drag(page, 60_000, 100_000, selector=selector)
    assert window_of(page) == pytest.approx((60_000, 100_000), abs=400)
    assert (time_of(page), page.locator(".rbl-past").is_hidden()) == (clock(OPENS), True)


def test_keys_zoom_pan_and_show_all(page):
    page.focus(".rbl")
    go_to(page, 90_000)
    for key, window in (
        ("w", (45_000, 135_000)),
        ("W", (67_500, 112_500)),
        ("d", (78_750, 123_750)),
        ("a", (67_500, 112_500)),
        ("s", (45_000, 135_000)),
        ("0", (0, DURATION)),
        ("w", (45_000, 135_000)),
        ("Escape", (0, DURATION)),
    ):
        page.keyboard.press(key)
        assert window_of(page) == pytest.approx(window)


def test_z_shows_the_round_at_the_cursor_with_a_margin(page):
    for entry in view_model(ran()).document["rounds"]:
        go_to(page, entry["began"])
        page.focus(".rbl")
        page.keyboard.press("z")
        from_ms, to_ms = window_of(page)
        took_ms = entry["stable"] - entry["began"]
        margin = max(20, took_ms / 4)
        assert from_ms == pytest.approx(max(0, entry["began"] - margin))
        assert to_ms == pytest.approx(from_ms + took_ms + 2 * margin)


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
    page.mouse.wheel(box["width"] / 9, 0)
    comes_to(lambda: window_of(page), pytest.approx((50_000, 95_000), abs=200))


def test_the_axis_names_milliseconds_when_few_are_shown_and_the_window_has_a_least_length(page):
    page.focus(".rbl")
    go_to(page, 60_000)
    for _ in range(20):
        page.keyboard.press("w")
    from_ms, to_ms = window_of(page)
    assert to_ms - from_ms == pytest.approx(20)
    assert "0:01:00.000" in svg_texts(page, ".rbl-times text")


def test_the_window_follows_the_cursor(page):
    page.focus(".rbl")
    go_to(page, 60_000)
    for _ in range(6):
        page.keyboard.press("w")
    page.keyboard.press("ArrowRight")
    from_ms, to_ms = window_of(page)
    assert from_ms < shown_ms(page) < to_ms
    assert page.locator(".rbl-cursor[visibility=visible]").count() == 5
    page.keyboard.press("d")
    page.keyboard.press("d")
    page.keyboard.press("d")
    window_of(page)
    assert page.locator(".rbl-cursor[visibility=visible]").count() == 0


def test_a_zoom_sets_no_attribute_to_the_value_it_has(page):
    """The browser lays out a drawing again for an equal value, too."""
    equal = page.evaluate("""async () => {
      const root = document.querySelector(".rbl");
      const equal = [];
      const watch = new MutationObserver((changes) => {
        for (const { target, attributeName: name, oldValue } of changes)
          if (target.getAttribute(name) === oldValue) equal.push(`${name} of ${target.classList}`);
      });
      watch.observe(root, { attributes: true, attributeOldValue: true, subtree: true });
      const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      root.rbl.lens.zoom(30_000, 60_000);
      await shown();
      return equal;
    }""")
    assert equal == []
