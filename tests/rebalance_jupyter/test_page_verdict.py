"""The comparison above the views: the answer, the table of figures and the scatter."""

import pytest

from rebalance_jupyter import compare_view, run, show
from tests.rebalance_jupyter.browser import all_texts, drawn, svg_texts, wait_until
from tests.rebalance_jupyter.samples import SCALE_OUT, ran

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
    parts = (".rbl-workload", ".rbl-answer", ".rbl-figures", ".rbl-view")
    places = [both.locator(name).first.bounding_box()["y"] for name in parts]
    assert places == sorted(places)


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
    assert head.locator("small").inner_text() == "bold: best of the row; +n: difference from it"


def test_main_figures_that_are_the_same_are_one_line(both, figures):
    same = wanted_rows(figures, lambda row: row["headline"] and not row["differs"])
    said = both.inner_text(".rbl-verdict .rbl-wide p")
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


@pytest.mark.parametrize(("width", "fits"), [(1_300, True), (700, False)])
def test_the_scatter_begins_folded_unless_it_is_beside_the_table(opened, width, fits):
    page = opened(compare_view([ran(strategy="range"), ran()]), viewport={"width": width, "height": 700})
    assert page.locator(".rbl-scatter").is_visible() == fits
    page.get_by_text("Two figures against each other").click()
    page.set_viewport_size({"width": width - 20, "height": 700})
    drawn(page)
    assert page.locator(".rbl-scatter").is_visible() != fits  # a reader's choice stays


def test_a_point_of_the_scatter_selects_its_strategy(both):
    both.locator(".rbl-point").nth(1).click()
    assert both.locator(CHOSEN).first.inner_text().startswith("cooperative-sticky")
    assert svg_texts(both, ".rbl-point.rbl-chosen text") == ["cooperative-sticky"]
    wait_until(both, IN_SIGHT)


@pytest.mark.parametrize(("front", "told"), [([0], True), ([0, 1], False)])
def test_the_scatter_tells_what_filled_points_are_if_there_are_others(opened, figures, front, told):
    view = compare_view([ran(strategy="range"), ran()])
    view.figures = figures | {"front": front}
    page = opened(view, viewport={"width": 1_300, "height": 700})
    assert page.get_by_text("filled: Pareto front").count() == told


def test_the_axes_of_the_scatter_can_be_chosen(both, figures):
    name = wanted_rows(figures, lambda row: row["differs"])[-1]["name"]
    both.get_by_label("Upward axis").select_option(name)
    across = figures["axes"][0]
    rows = {row["name"]: row["cells"] for row in wanted_rows(figures, lambda row: True)}
    said = both.locator(".rbl-point").evaluate_all("(all) => all.map((each) => each.ariaLabel)")
    assert said == [
        f"{strategy}: {across} {rows[across][i]['text']}, {name} {rows[name][i]['text']}"
        for i, strategy in enumerate(figures["strategies"])
    ]


def test_the_name_of_a_strategy_in_the_table_goes_to_it(both):
    assert not both.evaluate(IN_SIGHT)
    both.locator(".rbl-figures thead button").nth(1).click()
    wait_until(both, IN_SIGHT)


@pytest.mark.parametrize(("width", "columns"), [(1_300, 1), (1_700, 2)])
def test_on_a_wide_screen_two_strategies_are_beside_each_other(opened, width, columns):
    view = compare_view([ran(strategy="range"), ran()])
    page = opened(view, viewport={"width": width, "height": 900})
    first, second = (each.bounding_box() for each in page.locator(".rbl-view").all())
    assert (first["y"] == second["y"]) == (columns == 2)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width


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
    axes = [metric["name"] for group in groups for metric in group["metrics"]]
    view.figures = figures | {"groups": groups, "axes": axes}
    page = opened(view)
    assert page.locator(".rbl-error").count() == 0
    assert page.locator(".rbl-view").count() == 2
    assert page.locator(".rbl-verdict").count() == count
