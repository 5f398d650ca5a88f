"""A comparison as JSON, CSV and HTML, and its figures as text."""

import csv
import io
import json
from html.parser import HTMLParser
from math import inf, nan

import pytest

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.reports.comparison import Comparison, as_csv, as_html, as_json
from coordinator_core.reports.tables import as_text


def metric(name, better="lower", doc=""):
    return MetricSpec(name, "", lambda history: 0.0, better=better, doc=doc)


ROUNDS, LAG, SCORE = metric("rounds"), metric("lag", doc='less is "better" <b>'), metric("score", "higher")


def comparison(figures, *, metrics=(ROUNDS, LAG), scenario="day", seed=7):
    return Comparison(scenario, seed, metrics, figures)


TWO = comparison({"range": {"rounds": 3.0, "lag": nan}, "sticky": {"rounds": 2.0, "lag": 0.1}})


# --- which is best


@pytest.mark.parametrize(
    ("values", "better", "best"),
    [
        ([3.0, 2.0, 5.0], "lower", 2.0),
        ([3.0, 2.0, 5.0], "higher", 5.0),
        ([3.0, 2.0, 2.0], "lower", 2.0),
        ([nan, 2.0, 5.0], "lower", 2.0),
        ([2.0, 2.0, 2.0], "lower", None),
        ([nan, 2.0], "lower", None),
        ([nan, nan], "higher", None),
        ([4.0], "lower", None),
    ],
)
def test_the_best_is_the_least_or_most_and_nobody_where_all_are_alike(values, better, best):
    one = metric("x", better)
    figures = {f"s{i}": {"x": value} for i, value in enumerate(values)}
    assert comparison(figures, metrics=[one]).best(one) == best


# --- for people


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (nan, "-"),
        (0.0, "0"),
        (3.0, "3"),
        (-3.0, "-3"),
        (1234567.0, "1,234,567"),
        (1234.56, "1,235"),
        (132.44, "132.4"),
        (22.561, "22.6"),
        (0.09761, "0.0976"),
        (inf, "inf"),
        (-inf, "-inf"),
        (1e300, f"{1e300:,.0f}"),
    ],
)
def test_a_figure_is_as_long_as_it_needs_to_be(value, text):
    assert as_text(value) == text


# --- JSON


def test_json_has_the_scenario_the_seed_and_every_figure():
    assert json.loads(as_json(TWO)) == {
        "scenario": "day",
        "seed": 7,
        "strategies": [
            {"strategy": "range", "metrics": {"rounds": 3.0, "lag": None}},
            {"strategy": "sticky", "metrics": {"rounds": 2.0, "lag": 0.1}},
        ],
    }


def test_json_says_null_and_never_nan():
    assert '"lag": null' in as_json(TWO)
    assert "NaN" not in as_json(TWO)


# --- CSV


def test_csv_has_a_row_a_strategy_and_nothing_where_there_is_no_figure():
    assert list(csv.reader(io.StringIO(as_csv(TWO)))) == [
        ["scenario", "seed", "strategy", "rounds", "lag"],
        ["day", "7", "range", "3", ""],
        ["day", "7", "sticky", "2", "0.1"],
    ]


def test_csv_quotes_names_that_need_it():
    made = comparison({'a,"b"': {"rounds": 1.0, "lag": 1 / 3}}, scenario="two\nlines, and more")
    _, row = csv.reader(io.StringIO(as_csv(made), newline=""))
    assert row == ["two\nlines, and more", "7", 'a,"b"', "1", "0.333333333333"]


# --- HTML


class Page(HTMLParser):
    """The text of each cell of a page, with a star where it is bold, and the elements that were opened."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.opened, self.titles = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)
        self.titles += [value for name, value in attrs if name == "title"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        elif tag == "b":
            self.rows[-1][-1] += "*"

    def handle_data(self, data):
        if self.rows and self.rows[-1] and data.strip() and "p" not in self.opened:
            self.rows[-1][-1] += data


def test_html_has_a_row_a_metric_and_the_best_in_bold():
    page = Page(
        as_html(comparison({"range": {"rounds": 3.0, "lag": 1.0}, "sticky": {"rounds": 2.0, "lag": 1.0}}))
    )
    assert page.rows == [["", "range", "sticky"], ["rounds", "3", "*2"], ["lag", "1", "1"]]


def test_html_shows_a_dash_where_there_is_no_figure():
    assert Page(as_html(TWO)).rows[2] == ["lag", "-", "0.1"]


def test_html_escapes_names_and_docs():
    figures = {"<script>x</script>": {"rounds": 1.0, "lag": 2.0}}
    text = as_html(comparison(figures, scenario="</title><script>&"))
    page = Page(text)
    assert "script" not in page.opened
    assert page.rows[0] == ["", "<script>x</script>"]
    assert 'less is "better" <b>' in page.titles
    assert "<title>&lt;/title&gt;&lt;script&gt;&amp;</title>" in text
