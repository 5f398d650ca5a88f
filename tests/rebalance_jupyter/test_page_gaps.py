"""Stops that are shorter than a pixel, or of one partition among many, in the page."""

import re

import pytest

from coordinator_core.protocol import events as ev
from rebalance_jupyter import compare_view, show
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import BORDER, HATCH, go_to, rgb
from tests.rebalance_jupyter.samples import ran
from tests.rebalance_lab.traces.traces import revoked, round_at, started, trace_of

pytestmark = pytest.mark.slow

ROW = """([y]) => {
  const canvas = document.querySelector("canvas");
  const row = Math.floor(((y + 0.5) * canvas.height) / canvas.clientHeight);
  const { data } = canvas.getContext("2d").getImageData(0, row, canvas.width, 1);
  return Array.from({ length: canvas.width }, (_, x) => [...data.slice(4 * x, 4 * x + 4)]);
}"""
MINUTES = 60_000


def row_of(page, y):
    """The colours of a line of the lanes, from left to right."""
    return [tuple(colour[:3]) if colour[3] else None for colour in page.evaluate(ROW, [y])]


def runs_of(row, colours):
    """The lengths of the stretches of some colours."""
    found = "".join("x" if colour in colours else " " for colour in row).split()
    return [len(run) for run in found]


def stopped(partitions=1, *, gap_ms=17, owners=("a", "b"), given=None):
    """Two hours in which partitions have no owner for a moment, and then another one."""
    all_of = {"t": list(range(partitions))}
    moved = {"t": given} if given is not None else all_of
    rest = {"t": [p for p in all_of["t"] if p not in moved["t"]]}
    first, second = owners
    after = {first: rest, second: moved} if first != second else {first: all_of}
    return trace_of(
        [(0, started(client, "t")) for client in sorted({*owners})],
        round_at(5 * MINUTES, 1, {first: all_of}),
        (60 * MINUTES, revoked(first, moved)),
        round_at(60 * MINUTES + gap_ms, 2, after),
        topics={"t": partitions},
        duration_ms=120 * MINUTES,
    )


@pytest.mark.parametrize("scale", [1, 2, 1.5])
def test_a_gap_of_17_ms_in_two_hours_is_two_pixels_wide_and_the_new_owner_has_a_border(opened, scale):
    page = opened(show(stopped()), device_scale_factor=scale)
    row = row_of(page, 9)
    assert len(row) == round(page.locator("canvas").first.bounding_box()["width"] * scale)
    assert runs_of(row, HATCH) == [round(2 * scale)]
    assert runs_of(row, {BORDER}) == [round(2 * scale)]
    assert [colour for colour in dict.fromkeys(row) if colour not in HATCH] == [
        None,
        rgb(PALETTE[0]),
        BORDER,
        rgb(PALETTE[1]),
    ]


def test_a_gap_between_two_spans_of_one_owner_is_drawn_too(opened):
    page = opened(show(stopped(owners=("a", "a"))))
    assert runs_of(row_of(page, 9), HATCH) == [2]


def test_a_gap_at_the_very_end_is_drawn(opened):
    trace = trace_of(
        (0, started("a", "t")),
        round_at(1_000, 1, {"a": {"t": [0]}}),
        (99_999, ev.MemberStopped(client="a", how="closed")),
        topics={"t": 1},
    )
    row = row_of(opened(show(trace)), 9)
    assert runs_of(row, HATCH) == [2]
    assert row[-1] in HATCH


@pytest.mark.parametrize("scale", [1, 2])
def test_the_gap_and_the_move_of_one_partition_among_ten_thousand_are_drawn(opened, scale):
    page = opened(show(stopped(10_000, given=[5_000])), device_scale_factor=scale)
    line = 5_000 * 600 / 10_000 - 0.25  # the upper of two pixels of the device
    before, own, after = (row_of(page, y) for y in (line - 2, line, line + 2))
    assert len(set(before)) == len(set(after)) == 2
    assert before == after
    gap = runs_of(own, set(own) - set(before) - {BORDER} - {own[-1]})
    assert gap == [round(2 * scale)]
    assert runs_of(own, {BORDER}) == [round(2 * scale)]


def standing(page):
    """The steps of the plot: pixels from the left edge, and the height from there on."""
    path = page.locator(".rbl-lag").last.locator(".rbl-line").first.get_attribute("d")
    return [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path)]


def heights(page):
    """The numbers of partitions that are not worked on, from left to right, of the largest."""
    first = re.match(
        r"M[\d.]+ ([\d.]+)", page.locator(".rbl-lag").last.locator(".rbl-line").first.get_attribute("d")
    )
    tops = [float(first.group(1)), *(y for _, y in standing(page))]
    return [round((max(tops) - top) / (max(tops) - min(tops)), 2) for top in tops]


def test_partitions_that_are_not_worked_on_rise_for_two_pixels_at_a_short_stop(opened):
    page = opened(show(stopped(6)))
    assert heights(page) == [1, 0, 1, 0]
    _, stops, goes_on = standing(page)
    assert goes_on[0] - stops[0] == 2


def test_they_rise_by_the_part_that_stops(opened):
    assert heights(opened(show(stopped(8, given=[0, 1])))) == [1, 0, 0.25, 0]


def test_partitions_of_a_member_that_is_paused_are_not_worked_on(opened):
    trace = trace_of(
        (0, started("a", "t")),
        round_at(1_000, 1, {"a": {"t": [0, 1]}}),
        (40_000, ev.MemberPaused(client="a")),
        (60_000, ev.MemberResumed(client="a")),
        topics={"t": 2},
    )
    page = opened(show(trace))
    assert heights(page) == [1, 0, 1, 0]
    for at_ms, figure in ((20_000, "0"), (50_000, "2"), (100_000, "0")):
        go_to(page, at_ms)
        assert page.locator(".rbl-key").last.locator("strong").inner_text() == figure


def test_an_eager_strategy_stops_all_partitions_and_a_cooperative_one_only_those_that_move(opened):
    page = opened(compare_view([ran(strategy="range"), ran(strategy="cooperative-sticky")]))
    risen = []
    for number in (0, 1):
        path = page.locator(".rbl-lag").last.locator(".rbl-line").nth(number).get_attribute("d")
        steps = [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path)]
        risen.append(min(y for x, y in steps if 230 < x < 300))  # as the third member joins
    assert risen[0] < risen[1]
