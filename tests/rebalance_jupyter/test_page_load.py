"""The page's plots of lag and load, its tooltip and the line at the pointer."""

import re
from itertools import pairwise

import pytest

from coordinator_core.protocol import events as ev
from rebalance_jupyter import compare_view, show
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    DURATION,
    LANES,
    MEMBER,
    all_texts,
    drawn,
    go_to,
    hover_lane,
    pixels,
    rgb,
    svg_texts,
    wait_until,
)
from tests.rebalance_jupyter.samples import ALONE, NOBODY, clock, ran, spans_of

pytestmark = pytest.mark.slow


def tip(page):
    """The lines of the tooltip, without the time."""
    drawn(page)
    wait_until(page, "!document.querySelector('.rbl-tip').hidden")
    return all_texts(page, ".rbl-tip div")[1:]


def test_to_point_at_a_lane_tells_its_owner_and_rate_and_draws_a_line_at_that_time(page):
    hover_lane(page, 2, 60_000)
    (span,) = [each for each in spans_of(ran()) if each[0] == 2 and each[2] <= 60_000 < each[3]]
    lines = tip(page)
    assert lines[0] == "clicks-2"
    assert lines[1].startswith(f"{'ABC'[('c1', 'c2', 'c3').index(span[1])]} {span[1]} since {clock(span[2])}")
    assert lines[2] == "100 records/s"
    lanes = page.locator("canvas").first.bounding_box()
    for line in page.locator(".rbl-cross").all():
        assert line.bounding_box()["x"] == pytest.approx(lanes["x"] + lanes["width"] / 3, abs=1)
    page.mouse.move(1, 1)
    wait_until(page, "document.querySelector('.rbl-tip').hidden")
    assert page.locator(".rbl-cross:visible").count() == 0


LONG = "cooperative-sticky+delay=300s"


def lag_at(trace, at_ms):
    measured = [(e.at_ms, e.event.lag) for e in trace.events if isinstance(e.event, ev.LagMeasured)]
    return [lag for when, lag in measured if when <= at_ms][-1]


def test_the_lag_of_each_strategy_is_a_line_with_its_value_at_the_cursor_in_the_heading(both):
    go_to(both, 135_000)
    names = ("range", "cooperative-sticky")
    when, *values = all_texts(both, ".rbl-key >> nth=0 >> span")
    assert when == "shaded: rounds of any strategy; at 0:02:15.000:"
    for name, text in zip(names, values, strict=True):
        (shown,) = re.findall(rf"^{name} ([\d,]+)$", text.strip())
        assert float(shown.replace(",", "")) == pytest.approx(lag_at(ran(strategy=name), 135_000), rel=0.05)
    dashes = both.locator(".rbl-lag > .rbl-line:has(title)").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('stroke-dasharray'))"
    )
    assert dashes == ["", "7 3"] * 2


def test_the_headings_keep_their_lines_while_the_values_change(both):
    places, values = set(), set()
    for at_ms in (0, 8_000, 135_000):
        go_to(both, at_ms)
        drawn(both)
        places.add(str([each.bounding_box() for each in both.locator(".rbl-key > span").all()]))
        values.add(str(all_texts(both, ".rbl-key strong")))
    assert len(values) > 1
    assert len(places) == 1


def test_rounds_are_shaded_over_the_lag_and_told_of(page):
    rounds = view_model(ran()).document["rounds"]
    assert page.locator(".rbl-lag >> nth=0 >> .rbl-shade").count() == len(rounds)
    lanes, plot = (page.locator(each).first.bounding_box() for each in ("canvas", ".rbl-lag"))
    middle = (rounds[0]["began"] + rounds[0]["stable"]) / 2
    page.mouse.move(lanes["x"] + middle / DURATION * lanes["width"], plot["y"] + 20)
    assert f"Round 1 of {len(rounds)}" in tip(page)


def marks_of(page):
    """The middles of the marks of events in pixels, and the names beside them."""
    middles = page.locator(".rbl-scenario rect").evaluate_all(
        "(all) => all.map((each) => each.getBoundingClientRect().x + each.width.baseVal.value / 2)"
    )
    return middles, svg_texts(page, ".rbl-scenario g:last-child text")


def test_events_of_the_scenario_have_marks_and_names_above_the_lag_in_the_time_that_is_shown(both):
    lanes = both.locator("canvas").first.bounding_box()
    events = dict(view_model(ran()).document["marks"])
    assert [*events.values()] == ["join c3", "crash c2"]
    middles, names = marks_of(both)
    assert middles == pytest.approx([lanes["x"] + at / DURATION * lanes["width"] for at in events], abs=0.6)
    assert names == [*events.values()]
    row = both.locator(".rbl-scenario rect").first.bounding_box()
    assert row["y"] + row["height"] <= both.locator(".rbl-lag").first.bounding_box()["y"] + 1
    both.mouse.move(middles[1], row["y"] + 4)
    assert tip(both) == [f"{clock(max(events))} crash c2"]
    both.focus(".rbl")
    go_to(both, min(events))
    both.keyboard.press("w")
    both.keyboard.press("w")
    drawn(both)
    assert marks_of(both)[1] == ["join c3"]


def test_a_view_without_events_has_no_row_for_them(opened):
    page = opened(show(ran(ALONE)))
    assert page.locator(".rbl-scenario rect").count() == 0
    assert page.locator(".rbl-scenario > text").is_hidden()


def test_a_gap_of_a_moment_is_two_pixels_of_the_partitions_that_are_not_worked_on(opened):
    trace = ran(strategy="range")
    page = opened(show(trace))
    counts = page.locator(".rbl-lag >> nth=1 >> .rbl-line >> nth=0").evaluate("""(path) => {
      const found = [];
      for (const [, x, y] of path.getAttribute("d").matchAll(/H([\\d.]+)V([\\d.]+)/g)) found.push([+x, +y]);
      return found;
    }""")
    tops = [y for _, y in counts]
    narrow = [(b[0] - a[0]) for a, b in pairwise(counts) if a[1] == min(tops)]
    assert narrow
    assert min(narrow) >= 2


def test_to_point_at_members_states_and_names_tells_of_them(page):
    page.locator(".rbl-band").scroll_into_view_if_needed()
    lanes, band = page.locator("canvas").nth(1).bounding_box(), page.locator(".rbl-band").bounding_box()
    x = lanes["x"] + 60_000 / DURATION * lanes["width"]
    page.mouse.move(x, lanes["y"] + 8)
    lines = tip(page)
    assert lines[0] == "c1"
    assert lines[1].startswith("stable for ")
    assert lines[2].startswith("load 200 of 398/s")
    page.mouse.move(x, band["y"] + 8)
    assert tip(page)[0].startswith("Stable for ")
    page.mouse.move(lanes["x"] + 30_000 / DURATION * lanes["width"] + 1, band["y"] + 8)
    assert "0:00:30.000 join c3" in tip(page)


def test_without_members_the_lag_is_drawn_and_no_owner_is_told(opened):
    page = opened(show(ran(NOBODY)))
    hover_lane(page, 1, DURATION / 2)
    assert tip(page) == ["t-1", "nobody owns it, until the end", "3.3 records/s"]


# --- load and amounts

HOT = """\
name: hot
duration: 3m
topics:
  clicks: {partitions: 6, rates: [100, 100, 500, 50, 100, 100]}
members:
  - {id: c1, topics: [clicks], process_rate: 400}
  - {id: c2, topics: [clicks], process_rate: 600}
"""


@pytest.fixture
def hot(opened):
    """c1 owns clicks-0 to clicks-2, which are more than it can handle."""
    return opened(show(ran(HOT, "range")))


def test_the_load_of_a_member_is_beside_what_it_can_handle_and_more_than_that_is_hatched(hot):
    go_to(hot, 100_000)
    assert svg_texts(hot, ".rbl-row text:nth-of-type(3)") == ["load 700 of 398/s, 176 %", "load 250 of 596/s"]
    assert svg_texts(hot, ".rbl-row .rbl-over") == ["load 700 of 398/s, 176 %"]

    def column(member, y):
        return set(pixels(hot, member, range(60_000, 100_000, 100), canvas=LANES, lane=MEMBER, y=y))

    assert column(0, MEMBER - 4) == {rgb(PALETTE[0])}
    assert len(column(0, MEMBER - 12)) > 1
    assert column(1, MEMBER - 4) == {rgb(PALETTE[1])}
    assert column(1, MEMBER - 9) == {None}


def test_a_hot_partition_is_named_beside_its_lane(hot):
    assert svg_texts(hot, ".rbl-hottest text") == ["hot: 500 records/s"]
    lane = hot.locator(".rbl-stack >> nth=0").locator("text", has_text="clicks-2").first
    named = hot.locator(".rbl-hottest text")
    assert named.bounding_box()["y"] == pytest.approx(lane.bounding_box()["y"], abs=1)


def test_lanes_are_coloured_by_rate_and_by_the_lag_of_their_owner(hot):
    def legend():
        found = hot.locator(".rbl-legend >> nth=0 >> span").evaluate_all("""(all) => all.map((each) =>
          [each.textContent, getComputedStyle(each.firstChild).backgroundColor])""")
        return {text: tuple(map(int, re.findall(r"\d+", colour))) for text, colour in found}

    by_rate = hot.get_by_label("Lanes coloured by")
    by_rate.select_option("rate")
    classes = legend()
    assert list(classes) == [
        "0 to 100",
        "to 200",
        "to 300",
        "to 400",
        "to 500 records/s",
        "not known",
        "nobody",
    ]
    shown = [pixels(hot, partition, [100_500])[0] for partition in range(6)]
    low, high = classes["0 to 100"], classes["to 500 records/s"]
    assert shown == [low, low, high, low, low, low]
    by_rate.select_option("lag")
    classes = legend()
    late = pixels(hot, 0, [40_500, 170_500])
    assert pixels(hot, 2, [40_500, 170_500]) == late
    assert late[1] == [*classes.values()][-3]
    assert late[0] != late[1]
    assert pixels(hot, 4, [170_500]) == [next(iter(classes.values()))]
    by_rate.select_option("owner")
    assert pixels(hot, 0, [100_500]) == [rgb(PALETTE[0])]


def test_no_hue_of_a_member_stands_for_anything_else(opened):
    page = opened(compare_view([ran(strategy="range"), ran()]))
    fills = page.evaluate("""() => [...document.querySelectorAll(".rbl svg *, .rbl i")].flatMap((each) => {
      const { fill, stroke, backgroundColor } = getComputedStyle(each);
      const owns = each.closest(".rbl-node, .rbl-legend span")
        ?? (each.matches(".rbl-owner, .rbl-several") ? each : null);
      return owns ? [] : [fill, stroke, backgroundColor];
    })""")
    hues = {f"rgb{rgb(colour)}" for colour in PALETTE}
    assert hues & set(fills) == set()


def test_with_forced_colours_the_legend_keeps_its_colours_and_patterns(opened):
    page = opened(show(ran()), forced_colors="active")
    grounds = page.locator(".rbl-legend >> nth=0 >> i").evaluate_all(
        "(all) => all.map((each) => getComputedStyle(each).backgroundColor)"
    )
    assert grounds[:3] == [f"rgb{rgb(colour)}" for colour in PALETTE[:3]]
    fills = page.locator(".rbl-swatch rect").evaluate_all(
        "(all) => all.map((each) => getComputedStyle(each).fill)"
    )
    assert len(set(fills)) >= 3


def test_the_start_that_the_figures_leave_out_is_shaded_and_named(both, opened):
    counts = min(
        view_model(ran(strategy=name)).document["counts"] for name in ("range", "cooperative-sticky")
    )
    shade, lanes = (both.locator(each).first.bounding_box() for each in (".rbl-uncounted", "canvas"))
    assert shade["x"] + shade["width"] == pytest.approx(
        lanes["x"] + counts / DURATION * lanes["width"], abs=2
    )
    named = [text.startswith("← not counted") for text in svg_texts(both, ".rbl-lag text")]
    assert named == [True] + [False] * (len(named) - 1)
    assert opened(show(ran())).locator(".rbl-uncounted").count() == 0


def test_of_lines_that_coincide_each_shows_those_below_it(both):
    widths, opacities = (
        both.locator(".rbl-lag > .rbl-line:has(title)").evaluate_all(
            "(found, name) => found.map((each) => parseFloat(getComputedStyle(each)[name]))", name
        )
        for name in ("strokeWidth", "strokeOpacity")
    )
    assert widths[0] == widths[2] > widths[1] == widths[3]
    assert opacities[0] == opacities[2] < opacities[1] == opacities[3] == 1
