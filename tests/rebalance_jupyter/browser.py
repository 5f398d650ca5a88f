"""Looking at a page: colours at a time, places to click, texts, and what keys do."""

import time

from coordinator_core.protocol.events import GroupStateChanged
from rebalance_jupyter.view_model import view_model
from tests.rebalance_jupyter.samples import clock, ran, spans_of

MEMBERS = ("c1", "c2", "c3")
DURATION = 180_000
STABLE = [
    line.at_ms
    for line in ran().events
    if isinstance(line.event, GroupStateChanged) and line.event.after == "Stable"
]
"""The times at which the group of the sample came to rest."""
STEPS = sorted(entry[end] for entry in view_model(ran()).document["rounds"] for end in ("began", "stable"))
"""The times at which rounds of the sample began and ended, to which the keys step."""
OPENS = view_model(ran()).document["opens"]
HATCH = {(0xDD,) * 3, (0x88,) * 3}
BORDER = (0x33,) * 3
OWNERSHIP, LANES = 0, 1
MEMBER, STATES = 30, 16
"""The height of a member with its load, and of its states alone."""

PIXEL = """([canvas, times, y]) => {
  const element = document.querySelectorAll("canvas")[canvas];
  const context = element.getContext("2d");
  const row = Math.floor(((y + 0.5) * element.height) / element.clientHeight);
  return times.map((x) => [...context.getImageData(Math.floor(x * element.width), row, 1, 1).data]);
}"""


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def pixels(page, partition, times, *, canvas=OWNERSHIP, lane=18, duration=DURATION, y=None):
    """Colours of a lane at times, None where nothing is drawn."""
    line = partition * lane + (lane // 2 if y is None else y)
    found = page.evaluate(PIXEL, [canvas, [at_ms / duration for at_ms in times], line])
    return [tuple(colour[:3]) if colour[3] else None for colour in found]


def tip(page):
    """The lines of the tooltip, without the time."""
    drawn(page)
    wait_until(page, "!document.querySelector('.rbl-tip').hidden")
    return all_texts(page, ".rbl-tip div")[1:]


def comes_to(found, expected, seconds=60):
    """Call a function until it returns what is expected."""
    until = time.monotonic() + seconds
    while (value := found()) != expected and time.monotonic() < until:
        time.sleep(0.05)
    assert value == expected


def drawn(page):
    """Wait until what was asked for the next frame has been drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def window_of(page):
    """The time that is shown, as it is drawn: from, to."""
    wait_until(page, "document.querySelector('.rbl').rbl.lens.request === null")
    lens = "document.querySelector('.rbl').rbl.lens"
    return tuple(page.evaluate(f"[{lens}.from, {lens}.to]"))


def wait_until(page, expression, seconds=60):
    """Wait until an expression is true.

    Playwright's `wait_for_function` evaluates it in the page later on, which the policy of the page forbids.
    """
    until = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < until, expression
        page.wait_for_timeout(50)


def time_of(page):
    return page.inner_text(".rbl-time")


def go_to(page, at_ms):
    page.locator(".rbl-slider").fill(str(at_ms))
    assert time_of(page) == clock(at_ms)


def click_lane(page, partition, at_ms, *, lane=18, duration=DURATION, view=0):
    canvas = page.locator(".rbl-view").nth(view).locator("canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
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


def shown_ms(page):
    hours, minutes, seconds = time_of(page).split(":")
    return round(1_000 * (3_600 * int(hours) + 60 * int(minutes) + float(seconds)))


def history_of(trace, partition):
    return [
        f"{clock(since)} to {clock(until)}: {owner}"
        for p, owner, since, until in spans_of(trace)
        if p == partition
    ]
