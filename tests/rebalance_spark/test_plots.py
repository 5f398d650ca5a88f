"""The plots of a page, and when there is a sentence in their place."""

from dataclasses import replace
from itertools import combinations

from rebalance_spark.findings import OnFront
from rebalance_spark.page import as_page
from rebalance_spark.plots import is_heavy, label, overlap, plot
from tests.rebalance_spark.made_findings import TWO, texts_of


def test_a_metric_with_one_figure_is_a_sentence_in_place_of_a_plot():
    same = {key: each._replace(curve=[3.0, 3.0]) for key, each in TWO.figures.items() if key[0] == "rounds"}
    page = as_page(replace(TWO, figures=TWO.figures | same))
    assert "The same in all scenarios and under all strategies: rounds." in texts_of(page)
    assert "Distribution of rounds" not in page


def test_a_heavy_tail_has_a_logarithmic_axis():
    assert is_heavy(1_000.0, 10.0, 1.0)
    assert not is_heavy(100.0, 10.0, 1.0)
    assert not is_heavy(15.0, 0.0, 1.0)


def test_labels_of_close_points_do_not_overlap():
    front = [OnFront(f"a-strategy-{n}", 10 + n * 1e-3, 1 + n * 1e-3, False) for n in range(8)]
    labels = [(point.moves, point.balance, point.strategy) for point in front]
    figure, axes = plot(7.2, 3.8)
    axes.scatter([x for x, _, _ in labels], [y for _, y, _ in labels])
    boxes = label(figure, axes, labels)
    assert len(boxes) == 8
    assert not any(overlap(one, other) for one, other in combinations(boxes, 2))
