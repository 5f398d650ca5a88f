"""The comparison above the views: the answer, and beside it the table of figures."""

import pytest

from rebalance_jupyter import compare_view, run, show
from tests.rebalance_jupyter.browser import all_texts, wait_until
from tests.rebalance_jupyter.samples import SCALE_OUT, ran
from tests.rebalance_jupyter.take_pictures import COMPARISON

pytestmark = pytest.mark.slow

IN_SIGHT = "document.querySelectorAll('.rbl-view h3')[1].getBoundingClientRect().y < innerHeight"
CHOSEN = ".rbl-figures .rbl-chosen"


@pytest.fixture
def figures():
    return compare_view([ran(strategy="range"), ran()]).figures


def wanted_rows(figures, wanted):
    return [row for group in figures["groups"] for row in group["metrics"] if wanted(row)]


def test_the_answer_is_above_the_table(both, figures):
    assert both.inner_text(".rbl-answer") == figures["answer"]
    assert all_texts(both, ".rbl-because") == figures["reasons"]
    assert both.inner_text(".rbl-workload") == figures["workload"]
    parts = (".rbl-workload", ".rbl-answer", ".rbl-because", ".rbl-lag", ".rbl-view")
    places = [both.locator(name).first.bounding_box()["y"] for name in parts]
    assert places == sorted(places)


def test_a_comparison_of_two_strategies_over_24_partitions_fits_one_screen(opened):
    view = compare_view([run(COMPARISON, strategy) for strategy in ("range", "cooperative-sticky")])
    page = opened(view, whole=False, viewport={"width": 1_400, "height": 900})
    assert page.evaluate("document.scrollingElement.scrollHeight") <= 900
    first, second = (canvas.bounding_box() for canvas in page.locator(".rbl-view canvas:visible").all())
    assert (first["x"], first["width"]) == (second["x"], second["width"])
    for part in (".rbl-workload", ".rbl-answer", ".rbl-figures", ".rbl-times", ".rbl-scenario", ".rbl-lag"):
        assert page.locator(part).first.is_visible()
    assert page.locator(".rbl-figures tbody tr").count() >= 4


@pytest.mark.parametrize("width", [400, 700, 1_000, 1_400])
def test_no_text_of_the_heads_of_strategies_covers_another_one(opened, width):
    page = opened(compare_view([ran(strategy="range"), ran()]), viewport={"width": width, "height": 800})
    for view in page.locator(".rbl-view").all():
        sentence, summary = (
            view.locator(part).bounding_box() for part in (".rbl-sentence", ".rbl-more summary")
        )
        beside = sentence["x"] + sentence["width"] <= summary["x"]
        assert beside or sentence["y"] + sentence["height"] <= summary["y"]


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
        assert head.get_attribute("title") == row["definition"]
        drawn = head.locator("xpath=following-sibling::td").all()
        for cell, shown in zip(row["cells"], drawn, strict=True):
            assert shown.inner_text() == f"{cell['text']} {cell['difference']}".strip()
            assert ("rbl-best" in (shown.get_attribute("class") or "")) == cell["best"]


def test_the_head_of_the_table_tells_what_bold_and_the_second_number_of_a_cell_are(both):
    head = both.locator(".rbl-figures thead th").first
    said = "+n: difference from the least; which is best is not known"
    assert head.locator("small").inner_text() == said


def test_bold_is_explained_where_something_is(opened):
    texts = [f"{SCALE_OUT}seed: {seed}\n" for seed in range(1, 7)]
    view = compare_view([run(text, strategy) for strategy in ("range", "sticky") for text in texts])
    page = opened(view)
    assert page.locator(".rbl-best").count() > 0
    said = page.locator(".rbl-figures thead th small").first.inner_text()
    assert said == "bold: best of the row; +n: difference from it"


def test_main_figures_that_are_the_same_are_one_line(both, figures):
    same = wanted_rows(figures, lambda row: row["headline"] and not row["differs"])
    said = both.inner_text(".rbl-same")
    assert same
    assert all(f"{row['name']} {row['cells'][0]['text']}" in said for row in same)


def test_what_is_shown_is_defined(both, figures):
    both.get_by_text("Definitions").click()
    rows = wanted_rows(figures, lambda row: row["headline"])
    assert all_texts(both, ".rbl-verdict dt") == [row["name"] for row in rows]
    assert all_texts(both, ".rbl-verdict dd") == [row["definition"] for row in rows]


def test_front_is_explained_where_it_stands(opened):
    """Six seeds are enough for a front."""
    texts = [f"{SCALE_OUT}seed: {seed}\n" for seed in range(1, 7)]
    view = compare_view([run(text, strategy) for strategy in ("range", "sticky") for text in texts])
    figures = view.figures
    titles = opened(view).locator(".rbl-on-front").evaluate_all("(all) => all.map((each) => each.title)")
    assert len(titles) == len(figures["front"]) > 0
    assert all(title.startswith("No other strategy is better in one") for title in titles)
    assert all(title.endswith(f"{figures['front_line']}.") for title in titles)


def test_the_name_of_a_strategy_in_the_table_goes_to_it(both):
    both.set_viewport_size({"width": 1_000, "height": 300})
    assert not both.evaluate(IN_SIGHT)
    both.locator(".rbl-figures thead button").nth(1).click()
    wait_until(both, IN_SIGHT)


def test_transfers_and_states_of_a_comparison_are_folded(both):
    assert not both.locator(".rbl-machine").first.is_visible()
    both.locator(".rbl-more summary").first.click()
    assert both.locator(".rbl-machine").first.is_visible()


def test_one_run_has_no_table_and_nothing_is_folded(opened):
    page = opened(show(ran()))
    assert page.locator(".rbl-verdict").count() == 0
    assert page.locator(".rbl-machine").is_visible()


@pytest.mark.parametrize("count", [0, 1])
def test_a_comparison_of_few_metrics_is_shown(opened, figures, count):
    """As with ``REBALANCE_LAB_NO_PLUGIN``, which switches the plugin of metrics off."""
    view = compare_view([ran(strategy="range"), ran()])
    groups = [group | {"metrics": group["metrics"][:1]} for group in figures["groups"][:count]]
    view.figures = figures | {"groups": groups}
    page = opened(view)
    assert page.locator(".rbl-error").count() == 0
    assert page.locator(".rbl-view").count() == 2
    assert page.locator(".rbl-verdict").count() == count
