"""The strip of the whole time, the selection in all strategies, and the controls, in the page."""

import pytest

from rebalance_jupyter import compare_view, show
from rebalance_jupyter.view_model import view_model
from tests.rebalance_jupyter.browser import (
    DURATION,
    all_texts,
    click_lane,
    go_to,
    history_of,
    shown_ms,
    svg_texts,
    window_of,
)
from tests.rebalance_jupyter.samples import TWO_TOPICS, ran

pytestmark = pytest.mark.slow


def plots(page):
    """The left edge and the width of the plots."""
    box = page.locator("canvas").first.bounding_box()
    return box["x"], box["width"]


@pytest.mark.parametrize("width", [1_000, 700])
def test_the_slider_and_its_cursor_are_in_the_columns_of_the_plots(opened, width):
    page = opened(show(ran()), viewport={"width": width, "height": 800})
    left, wide = plots(page)
    slider = page.locator(".rbl-slider").bounding_box()
    assert (slider["x"], slider["width"]) == pytest.approx((left, wide), abs=0.6)
    for at_ms in (0, 61_234, DURATION):
        go_to(page, at_ms)
        place = page.locator(".rbl-at").evaluate(
            "(line) => line.ownerSVGElement.getBoundingClientRect().left + line.x1.baseVal.value"
        )
        assert place == pytest.approx(left + wide * at_ms / DURATION, abs=0.6)


def test_the_marks_of_the_strip_are_named_and_explained_beside_it(page):
    names = page.locator(".rbl-strip > svg").first.locator("> text:has(title)")
    shown = names.evaluate_all("(found) => found.map((each) => [each.firstChild.data, each.textContent])")
    assert [name for name, _ in shown] == ["rounds", "stops"]
    explained = [text.removeprefix(name) for name, text in shown]
    assert explained == [
        "grey, above: a round of any strategy",
        "below: partitions that are not worked on with any strategy, the higher the more",
    ]
    assert page.get_by_role("img", name=f"Whole time: {', '.join(explained)}").count() == 1


def test_rounds_of_several_strategies_are_one_shade_of_which_the_strip_tells_whose_they_are(both):
    assert svg_texts(both, ".rbl-strip > svg:first-child > text:has(title)")[0].startswith(
        "rounds, any strategy"
    )
    for group, each in ((".rbl-rounds", ".rbl-round"), (".rbl-shades", ".rbl-shade")):
        shades = both.locator(f"{group} >> nth=0 >> {each}").evaluate_all(
            "(all) => all.map((each) => [getComputedStyle(each).opacity, getComputedStyle(each).fillOpacity])"
        )
        assert len(shades) > len(view_model(ran()).document["rounds"])
        assert {*map(tuple, shades)} == {("1", "1")}
        assert float(both.locator(group).first.evaluate("(it) => getComputedStyle(it).opacity")) < 1


def test_a_click_on_the_strip_goes_to_the_time_above_which_it_is(page):
    left, wide = plots(page)
    slider = page.locator(".rbl-slider").bounding_box()
    for part in (0.1, 0.5, 0.93):
        page.mouse.click(left + part * wide, slider["y"] + 12)
        assert shown_ms(page) == pytest.approx(part * DURATION, abs=700)  # two pixels


def test_the_strip_has_every_round_of_every_strategy_at_least_two_pixels_wide(both):
    left, wide = plots(both)
    boxes = [box.bounding_box() for box in both.locator(".rbl-round").all()]
    models = [view_model(ran(strategy=name)).document for name in ("range", "cooperative-sticky")]
    began = [entry["began"] for model in models for entry in model["rounds"]]
    assert [box["x"] for box in boxes] == pytest.approx(
        [left + wide * at_ms / DURATION for at_ms in began], abs=1
    )
    assert all(box["width"] >= 2 for box in boxes)


def drag_bar(page, from_x, to_x):
    y = page.locator(".rbl-bar").bounding_box()["y"] + 4
    page.mouse.move(from_x, y)
    page.mouse.down()
    page.mouse.move((from_x + to_x) / 2, y)
    page.mouse.move(to_x, y)
    page.mouse.up()


def test_the_bar_above_the_strip_moves_the_window_and_its_ends_change_it(page):
    page.focus(".rbl")
    go_to(page, 90_000)
    page.keyboard.press("w")
    assert window_of(page) == pytest.approx((45_000, 135_000))
    left, wide = plots(page)
    drag_bar(page, left + wide / 2, left + wide / 2 + wide / 9)
    assert window_of(page) == pytest.approx((65_000, 155_000), abs=600)
    drag_bar(page, left + wide * 155 / 180 - 2, left + wide * 145 / 180 - 2)
    assert window_of(page) == pytest.approx((65_000, 145_000), abs=600)
    drag_bar(page, left + wide * 10 / 180, left + wide * 10 / 180)
    assert window_of(page) == pytest.approx((0, 80_000), abs=600)


# --- the selection


def pasts(page):
    return [past.is_visible() for past in page.locator(".rbl-past").all()]


def test_a_partition_is_selected_in_all_strategies_and_escape_undoes_it_before_the_zoom(both):
    both.focus(".rbl")
    both.keyboard.press("w")
    zoomed = window_of(both)
    both.keyboard.press("ArrowDown")
    both.keyboard.press("ArrowDown")
    assert pasts(both) == [True, True]
    assert all_texts(both, ".rbl-past strong") == ["clicks-1, owner by owner"] * 2
    histories = [
        line for name in ("range", "cooperative-sticky") for line in history_of(ran(strategy=name), 1)
    ]
    assert all_texts(both, ".rbl-past li") == histories
    both.keyboard.press("Escape")
    assert pasts(both) == [False, False]
    assert both.locator(".rbl-selected[visibility=visible]").count() == 0
    assert window_of(both) == zoomed
    both.keyboard.press("Escape")
    assert window_of(both) == (0, DURATION)


def test_a_second_click_on_a_partition_undoes_the_first(page):
    for shown in (True, False, True):
        click_lane(page, 2, 60_000)
        assert pasts(page) == [shown]


def test_a_partition_that_a_strategy_does_not_have_is_selected_in_the_others(opened):
    page = opened(compare_view([ran(), ran(TWO_TOPICS)]))
    page.focus(".rbl")
    page.keyboard.press("ArrowDown")
    assert pasts(page) == [True, False]


def test_a_button_lists_the_keys(page):
    assert page.locator(".rbl-keys").is_hidden()
    page.get_by_role("button", name="Keys").click()
    assert "zoom to the round at the cursor" in page.inner_text(".rbl-keys")
    assert page.get_by_role("button", name="Keys").get_attribute("aria-expanded") == "true"
