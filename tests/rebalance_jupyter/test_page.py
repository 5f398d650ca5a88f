"""The page in short: it opens, steps from round to round, and shows owners and states."""

import pytest

from rebalance_jupyter import show
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    DURATION,
    MEMBERS,
    OPENS,
    STABLE,
    STEPS,
    go_to,
    pixels,
    rgb,
    svg_texts,
    time_of,
)
from tests.rebalance_jupyter.samples import clock, ran, spans_of


def test_it_opens_at_the_first_round_after_the_start(page):
    assert page.title() == "scale-out"
    assert page.inner_text("h2") == "scale-out"
    assert page.inner_text(".rbl-view h3") == "cooperative-sticky"
    assert time_of(page) == clock(OPENS)
    assert page.inner_text(".rbl-sentence").startswith("generation 2")
    assert svg_texts(page, ".rbl-lit text") == ["PreparingRebalance"]


def test_steps_land_where_rounds_began_and_ended(page):
    rounds = view_model(ran()).document["rounds"]
    assert [entry["stable"] for entry in rounds] == STABLE
    assert [at_ms for entry in rounds for at_ms in (entry["began"], entry["stable"])] == STEPS
    stops = [0, *STEPS, DURATION]
    go_to(page, 0)
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


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_every_span_has_the_colour_of_its_owner(opened, strategy):
    trace = ran(strategy=strategy)
    page = opened(show(trace))
    for partition, owner, since, until in spans_of(trace):
        if until - since > 2_000:
            times = [since + (until - since) * part for part in (0.4, 0.5, 0.9)]
            assert pixels(page, partition, times) == [rgb(PALETTE[MEMBERS.index(owner)])] * 3


def test_the_state_at_the_cursor_is_lit_and_named(page):
    for at_ms, state in view_model(ran()).document["states"]:
        go_to(page, at_ms)
        assert svg_texts(page, ".rbl-lit text") == [state]
        assert state in svg_texts(page, ".rbl-band > text")
