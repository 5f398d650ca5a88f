"""Strategies side by side in the page: the answer, the table, the runs in step, and the whole time."""

from itertools import pairwise

import pytest

from rebalance_jupyter import compare_view, run
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    DURATION,
    LANES,
    all_texts,
    go_to,
    history_of,
    pixels,
    rgb,
    shown_ms,
    svg_texts,
    wait_until,
)
from tests.rebalance_jupyter.samples import TOO_SHORT, TWO_TOPICS, at, ran, told_at
from tests.rebalance_jupyter.take_pictures import COMPARISON
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

pytestmark = pytest.mark.slow

NAMES = ("range", "cooperative-sticky")
IN_SIGHT = "document.querySelectorAll('.rbl-view h3')[1].getBoundingClientRect().y < innerHeight"


@pytest.fixture
def figures():
    return compare_view([ran(strategy=name) for name in NAMES]).figures


@pytest.fixture
def models():
    return [view_model(ran(strategy=name)).document for name in NAMES]


def wanted_rows(figures, wanted):
    return [row for group in figures["groups"] for row in group["metrics"] if wanted(row)]


# --- the answer


def test_what_failed_and_the_answer_are_above_the_table_and_the_runs(both, figures):
    assert all_texts(both, ".rbl-error") == ["broken: it <failed>"]
    assert both.inner_text(".rbl-answer") == figures["answer"]
    assert all_texts(both, ".rbl-because") == figures["reasons"]
    assert both.inner_text(".rbl-workload") == figures["workload"]
    parts = (".rbl-workload", ".rbl-error", ".rbl-answer", ".rbl-because", ".rbl-lag", ".rbl-view")
    places = [both.locator(name).first.bounding_box()["y"] for name in parts]
    assert places == sorted(places)
    both.get_by_text("Definitions").click()
    rows = wanted_rows(figures, lambda row: row["headline"])
    assert all_texts(both, ".rbl-verdict dt") == [row["name"] for row in rows]
    assert all_texts(both, ".rbl-verdict dd") == [row["definition"] for row in rows]


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("main", lambda row: row["headline"] and row["differs"]),
        ("differ", lambda row: row["differs"]),
        ("all", lambda row: True),
    ],
)
def test_the_table_has_the_figures_that_are_asked_for(both, figures, choice, wanted):
    both.get_by_label("Figures shown").select_option(choice)
    rows = wanted_rows(figures, wanted)
    heads = both.locator(".rbl-figures th[scope=row]")
    assert heads.count() == len(rows) > 0
    for row, head in zip(rows, heads.all(), strict=True):
        assert head.inner_text() == f"{row['name']} {row['unit']}".strip()
        drawn = head.locator("xpath=following-sibling::td").all()
        for cell, shown in zip(row["cells"], drawn, strict=True):
            assert shown.inner_text() == f"{cell['text']} {cell['difference']}".strip()


def test_what_is_best_and_what_is_on_the_front_is_explained_where_it_stands(opened):
    runs = [run(COMPARISON, name, seed=seed) for name in ("range", "sticky") for seed in range(1, 7)]
    view = compare_view(runs)
    page = opened(view)
    best = [
        cell["best"]
        for row in wanted_rows(view.figures, lambda row: row["headline"] and row["differs"])
        for cell in row["cells"]
    ]
    assert page.locator(".rbl-best").count() == best.count(True) > 0
    said = page.locator(".rbl-figures thead th small").first.inner_text()
    assert said == "bold: best of the row; +n: difference from it"
    titles = page.locator(".rbl-on-front").evaluate_all("(all) => all.map((each) => each.title)")
    assert len(titles) == len(view.figures["front"]) > 0
    assert all(title.endswith(f"{view.figures['front_line']}.") for title in titles)


def test_a_comparison_of_two_strategies_over_24_partitions_fits_one_screen(opened):
    view = compare_view([run(COMPARISON, strategy) for strategy in NAMES])
    page = opened(view, whole=False, viewport={"width": 1_400, "height": 900})
    assert page.evaluate("document.scrollingElement.scrollHeight") <= 900
    for part in (".rbl-workload", ".rbl-answer", ".rbl-figures", ".rbl-times", ".rbl-scenario", ".rbl-lag"):
        assert page.locator(part).first.is_visible()


def test_only_failures_and_few_metrics_are_shown_too(opened, figures):
    page = opened(compare_view([], errors=["range: it failed", "sticky: so did it"]))
    assert page.inner_text("h2") == "nothing to show"
    assert all_texts(page, ".rbl-error") == ["range: it failed", "sticky: so did it"]
    view = compare_view([ran(TOO_SHORT, "range"), ran()])
    view.figures = figures | {"groups": []}
    page = opened(view)
    assert page.inner_text(".rbl-view .rbl-head + .rbl-error") == view.faults[0].removeprefix("range: ")
    assert page.locator(".rbl-verdict").count() == 0


# --- the runs


def test_strategies_stand_one_above_another_in_step(both, models):
    assert all_texts(both, ".rbl-view h3") == list(NAMES)
    go_to(both, 0)
    both.focus(".rbl")
    steps = []
    while shown_ms(both) < DURATION:
        both.keyboard.press("ArrowRight")
        steps.append(at_ms := shown_ms(both))
        begun = [[each for each in model["rounds"] if each["began"] <= at_ms] for model in models]
        shown = [told_at(rounds[-1], at_ms) if rounds else "before the first round" for rounds in begun]
        assert all_texts(both, ".rbl-sentence") == shown
        assert svg_texts(both, ".rbl-lit text") == [at(model["states"], at_ms) for model in models]
    times = {each[end] for model in models for each in model["rounds"] for end in ("began", "stable")}
    assert {*steps} - {DURATION} <= times
    assert all(any(abs(at_ms - step) < 900 for step in steps) for at_ms in times)
    assert all(later - step >= 50 for step, later in pairwise(steps))


def test_a_member_and_a_partition_are_chosen_in_every_strategy(both, opened):
    assert not both.locator(".rbl-machine").first.is_visible()
    both.locator(".rbl-more summary").first.click()  # shows the members of all strategies
    both.locator(".rbl-row").nth(1).hover(force=True)
    assert svg_texts(both, ".rbl-row.rbl-hot title") == ["c2", "c2"]
    both.focus(".rbl")
    both.keyboard.press("ArrowDown")
    histories = [line for name in NAMES for line in history_of(ran(strategy=name), 0)]
    assert all_texts(both, ".rbl-past li") == histories
    page = opened(compare_view([ran(), ran(TWO_TOPICS)]))  # the second one has other topics
    page.focus(".rbl")
    page.keyboard.press("ArrowDown")
    assert [past.is_visible() for past in page.locator(".rbl-past").all()] == [True, False]


def test_the_name_of_a_strategy_in_the_table_goes_to_it(both):
    both.set_viewport_size({"width": 1_000, "height": 300})
    assert not both.evaluate(IN_SIGHT)
    both.locator(".rbl-figures thead button").nth(1).click()
    wait_until(both, IN_SIGHT)


def test_ids_are_unique_and_used(both):
    ids = both.locator("[id]").evaluate_all("(found) => found.map((each) => each.id)")
    used = both.locator("[marker-end]").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('marker-end'))"
    )
    assert len(ids) == len(set(ids))
    assert {use.removeprefix("url(#").removesuffix(")") for use in used} <= set(ids)


def test_a_trace_that_ends_earlier_is_drawn_up_to_its_end_and_told_apart(opened):
    begun = [(0, started(client, "t")) for client in "ab"]
    owned = round_at(1_000, 1, {"a": {"t": [0]}, "b": {"t": [1]}})
    short, long = (trace_of(begun, owned, topics={"t": 2}, duration_ms=ms) for ms in (50_000, 100_000))
    page = opened(compare_view([short, long]))
    page.locator(".rbl-more summary").first.click()
    assert all_texts(page, ".rbl-view h3") == ["range (1)", "range (2)"]
    assert pixels(page, 0, [40_000, 60_000], duration=100_000) == [rgb(PALETTE[0]), None]
    drawn = pixels(page, 0, [40_000, 60_000], canvas=LANES, y=8, duration=100_000)
    assert [colour is None for colour in drawn] == [False, True]


# --- the whole time


def test_the_strip_has_every_round_and_event_at_its_time(both, models):
    box = both.locator("canvas").first.bounding_box()

    def places(times):
        return pytest.approx([box["x"] + box["width"] * at_ms / DURATION for at_ms in times], abs=1)

    rounds = [each.bounding_box() for each in both.locator(".rbl-round").all()]
    assert [each["x"] for each in rounds] == places([r["began"] for model in models for r in model["rounds"]])
    assert all(each["width"] >= 2 for each in rounds)
    events = dict(models[0]["marks"])
    marks = [each.bounding_box() for each in both.locator(".rbl-scenario rect").all()]
    assert [each["x"] + each["width"] / 2 for each in marks] == places(events)
    assert svg_texts(both, ".rbl-scenario g:last-child text") == ["join c3", "crash c2"]
    slider = both.locator(".rbl-slider").bounding_box()
    both.mouse.click(box["x"] + box["width"] / 2, slider["y"] + 12)
    assert shown_ms(both) == pytest.approx(DURATION / 2, abs=700)  # two pixels
