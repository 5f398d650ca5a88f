"""What a page draws is what its model says: random runs with faults, at random times, column by column.

The model of such runs is held against their traces in `test_view_model`.
"""

import math
import re
from random import Random

import pytest

from rebalance_jupyter import compare_view
from rebalance_jupyter.view_model import view_model
from tests.rebalance_jupyter.browser import PIXEL, all_texts, go_to, rgb
from tests.rebalance_jupyter.samples import at, lag_of, random_run, spans_of

pytestmark = pytest.mark.slow

TIMES = 16
COLUMNS = 60
MOST_LANES = 30
NOT_RUNNING = ("crashed", "stopped", None)


@pytest.mark.parametrize("number", range(10))
def test_labels_headings_and_lanes_are_those_of_the_model(number, opened):
    trace = random_run(number)
    document = view_model(trace).document
    page = opened(compare_view([trace]))
    random = Random(number)
    changes = sorted({edge for *_, since, until in spans_of(trace) for edge in (since, until)})
    times = [random.randrange(document["duration"]) for _ in range(TIMES)]
    for at_ms in sorted({*times, *random.sample(changes, min(TIMES, len(changes)))}):
        go_to(page, at_ms)
        members_have_their_figures(page, document, at_ms)
        headings_have_the_lag_and_what_nobody_works_on(page, document, at_ms)
    lanes_have_the_colours_of_their_owners(page, document, spans_of(trace))


def members_have_their_figures(page, document, at_ms):
    labels = page.locator(".rbl-row").evaluate_all(
        "(rows) => rows.map((row) => row.getAttribute('aria-label'))"
    )
    for member, label in zip(document["members"], labels, strict=True):
        assert label.startswith(f"{member['name']}: ")
        owned = at(member["owned"], at_ms)
        if at(member["states"], at_ms) in NOT_RUNNING:
            assert "·" not in label
            continue
        found = re.search(r" g(\d+) · (\d+)(?: · lag ([\d,]+))?", label)
        if found is None:
            assert not owned
            continue
        assert (int(found[1]), int(found[2])) == (at(member["generations"], at_ms), owned or 0)
        if found[3]:
            assert int(found[3].replace(",", "")) == math.floor(at(lag_of(member), at_ms) + 0.5)


def headings_have_the_lag_and_what_nobody_works_on(page, document, at_ms):
    name = document["strategy"]
    texts = [text.strip() for text in all_texts(page, ".rbl-key > span")]
    lag, idle = (amount_of(text.removeprefix(name)) for text in texts if text.startswith(name))
    assert lag == pytest.approx(height_at(document["lag"], at_ms), rel=0.005, abs=0.56)
    assert idle == at(document["idle"], at_ms)


def amount_of(text):
    """The number that a text such as ``1,234`` or ``12.3 k`` stands for."""
    number, unit = re.fullmatch(r" ([\d,.]+)(?: ([kMG]))?", text).groups()
    return float(number.replace(",", "")) * {None: 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


def height_at(points, at_ms):
    """The height at a time of the line through points."""
    from_ms, low = [point for point in points if point[0] <= at_ms][-1]
    to_ms, high = next((point for point in points if point[0] > at_ms), (from_ms + 1, low))
    return low + (high - low) * (at_ms - from_ms) / (to_ms - from_ms)


def lanes_have_the_colours_of_their_owners(page, document, spans):
    colours = {member["name"]: rgb(member["colour"]) for member in document["members"]}
    states = {member["name"]: member["states"] for member in document["members"]}
    count = sum(topic["partitions"] for topic in document["topics"])
    end_ms = document["duration"]
    width, height = page.evaluate(
        "(({clientWidth: w, clientHeight: h}) => [w, h])(document.querySelector('canvas'))"
    )
    changes = [edge for *_, since, until in spans for edge in (since, until)]
    changes += [when for series in states.values() for when, _ in series]
    columns = [round((n + 0.5) * end_ms / COLUMNS) for n in range(COLUMNS)]
    times = [t for t in columns if not any(abs(t - change) <= 2 * end_ms / width for change in changes)]
    seen = 0
    for lane in range(min(count, MOST_LANES)):
        # the upper part of a lane, where no letter is
        y = round(lane * height / count) + 1
        found = page.evaluate(PIXEL, [0, [at_ms / end_ms for at_ms in times], y])
        for at_ms, pixel in zip(times, found, strict=True):
            owners = [name for p, name, since, until in spans if p == lane and since <= at_ms < until]
            shown = tuple(pixel[:3]) if pixel[3] else None
            if not owners:
                assert shown not in colours.values()
            elif len(owners) == 1 and at(states[owners[0]], at_ms) != "paused":  # that is striped
                assert shown == colours[owners[0]]
                seen += 1
    assert seen or not spans
