"""What leaves the page: its address, notes, and images of what one sees."""

from xml.etree import ElementTree as ET

import pytest

from coordinator_core.errors import InputError
from rebalance_jupyter import RebalanceView, show
from tests.rebalance_jupyter.browser import (
    all_texts,
    drawn,
    go_to,
    rgb,
    svg_texts,
    time_of,
    wait_until,
    window_of,
)
from tests.rebalance_jupyter.samples import ran

SVG = "{http://www.w3.org/2000/svg}"


def hash_of(page):
    return page.evaluate("location.hash")


def zoom_to(page, from_ms, to_ms):
    page.evaluate("([from, to]) => document.querySelector('.rbl').rbl.lens.zoom(from, to)", [from_ms, to_ms])
    drawn(page)  # the address follows


def go_to_address(page, address):
    page.evaluate(
        """(address) => new Promise((done) => {
          addEventListener("hashchange", done, { once: true }); // after the listener of the page
          location.hash = address;
        }).then(() => true)""",
        address,
    )


DOZEN = """\
name: dozen
duration: 1m
topics: {t: {partitions: 12, rate: 120}}
members:
  - {id: c, count: 12, topics: [t]}
"""
OTHERS = DOZEN.replace("dozen", "others").replace("id: c, count: 12", "id: b, count: 3")
LEGEND = """() => [...document.querySelector(".rbl-legend").querySelectorAll("span")].map((each) =>
  [each.textContent, getComputedStyle(each.querySelector("i")).backgroundColor])"""


def test_members_have_the_letters_and_colours_of_the_saved_picture(opened):
    """Also after ten, and beside those of another scenario."""
    view = RebalanceView([ran(DOZEN, "range"), ran(OTHERS, "range")])
    page = opened(view)
    shown = [(label, colour) for label, colour in page.evaluate(LEGEND) if label != "nobody"]
    picture = ET.fromstring(view.to_svg())
    boxes = [box for box in picture.iter(f"{SVG}rect") if box.get("width") == "12"]
    labels = [text.text for text in picture.iter(f"{SVG}text")][-len(boxes) :]
    saved = [(label, f"rgb{rgb(box.get('fill'))}") for label, box in zip(labels[:-1], boxes, strict=False)]
    assert [label for label, _ in saved[:3]] == ["A c-0", "B c-1", "C c-2"]
    assert shown == saved
    assert len(saved) == 15


@pytest.mark.slow
def test_the_address_has_the_time_the_zoom_and_the_partition(opened):
    page = opened(show(ran()))
    go_to(page, 60_000)
    zoom_to(page, 30_000, 90_000)
    page.focus(".rbl")
    page.keyboard.press("ArrowDown")
    assert hash_of(page) == "#t=60&zoom=30-90&partition=clicks-0"
    page.keyboard.press("0")
    drawn(page)
    assert hash_of(page) == "#t=60&partition=clicks-0"


@pytest.mark.slow
def test_a_page_goes_to_the_place_of_its_address(opened):
    page = opened(show(ran()))
    go_to_address(page, "#t=45.5&zoom=40-50&partition=clicks-3")
    assert time_of(page) == "0:00:45.500"
    assert page.evaluate("(({ from, to }) => [from, to])(document.querySelector('.rbl').rbl.lens)") == [
        40_000,
        50_000,
    ]
    assert page.inner_text(".rbl-past strong").startswith("clicks-3")
    go_to_address(page, "#t=never&partition=no-such")
    assert time_of(page) == "0:00:45.500"


@pytest.mark.slow
def test_notes_are_pinned_to_moments_and_removed(opened):
    view = show(ran())
    view.notes = [(90_000, "c2 <crashes>")]
    page = opened(view)
    assert "⚑ c2 <crashes>" in view.to_svg().replace("&lt;", "<").replace("&gt;", ">")
    go_to(page, 30_000)
    page.focus(".rbl")
    page.keyboard.press("n")
    page.keyboard.type("n 0 joins")
    page.keyboard.press("Enter")
    assert all_texts(page, ".rbl-pinned button:first-child") == [
        "⚑ 0:00:30.000 n 0 joins",
        "⚑ 0:01:30.000 c2 <crashes>",
    ]
    assert svg_texts(page, ".rbl-scenario g:last-child text") == [
        "join c3, ⚑ n 0 joins",
        "crash c2, ⚑ c2 <crashes>",
    ]
    page.locator(".rbl-pinned button").nth(2).click()
    assert time_of(page) == "0:01:30.000"
    page.locator(".rbl-pinned button").nth(1).click()
    assert svg_texts(page, ".rbl-scenario g:last-child text") == ["join c3", "crash c2, ⚑ c2 <crashes>"]


@pytest.mark.parametrize("note", [5, "text", ["1s", "text"], [-1, "text"], [1, 2], [1, "text", 3]])
def test_what_is_no_note_is_an_error(note):
    view = show(ran())
    with pytest.raises(InputError, match=r"notes\[1\]: .* expected \[milliseconds, text\]"):
        view.notes = [[0, "a note"], note]
    assert view.notes == []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<svg "), ("png", b"\x89PNG")])
def test_a_button_saves_what_one_sees(opened, tmp_path, kind, begins):
    page = opened(show(ran()))
    with page.expect_download() as begun:
        page.get_by_role("button", name=f"Save what one sees as {kind.upper()}").click()
    assert begun.value.suggested_filename == f"scale-out.{kind}"
    saved = tmp_path / "saved"
    begun.value.save_as(saved)
    assert saved.read_bytes().startswith(begins)


def test_what_is_shown_is_known_to_the_program_and_can_be_set_by_it(opened):
    """``zoom`` and ``selected`` of the model, as a program in the kernel reads and sets them."""
    page = opened(show(ran()))
    zoom_to(page, 30_000, 60_000)
    wait_until(page, "String(document.querySelector('.rbl').rbl.model.get('zoom')) === '30000,60000'")
    page.evaluate("document.querySelector('.rbl').rbl.model.set('zoom', [100_000, 150_000])")
    drawn(page)
    assert window_of(page) == (100_000, 150_000)
    page.evaluate("document.querySelector('.rbl').rbl.model.set('selected', 'clicks-2')")
    assert page.inner_text(".rbl-past strong").startswith("clicks-2")
    page.focus(".rbl")
    page.keyboard.press("Escape")
    assert page.evaluate("document.querySelector('.rbl').rbl.model.get('selected')") == ""
