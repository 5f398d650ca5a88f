"""A data frame as a table for people: readable figures, in text and HTML."""

from math import nan

import pytest

from rebalance_spark.tables import table


class Frame:
    """As much of a data frame as a table needs."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows

    def limit(self, count):
        return Frame(self.columns, self.rows[:count])

    def collect(self):
        return self.rows


FRAME = Frame(
    ["strategy", "mean", "rows", "on_front", "note"],
    [
        ("range", 7.386363636363637, 20_000, True, None),
        ("cooperative-sticky", 6.525, 200, False, "<b>"),
        ("sticky", nan, 12_345.678, True, "x"),
    ],
)


def test_figures_have_three_digits_and_columns_are_aligned():
    assert str(table(FRAME)).splitlines() == [
        "strategy            mean    rows  on_front  note",
        "range               7.39  20,000       yes     -",
        "cooperative-sticky  6.53     200        no   <b>",
        "sticky                 -  12,346       yes     x",
    ]


def test_a_notebook_shows_the_same_as_html():
    page = table(FRAME)._repr_html_()
    assert "<td>7.39</td><td>20,000</td><td>yes</td><td>-</td>" in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize(("rows", "is_cut"), [(2, True), (3, False)])
def test_a_table_that_is_cut_says_so(rows, is_cut):
    made = table(FRAME, rows)
    assert (len(made.rows), made.is_cut) == (rows, is_cut)
    note = f"the first {rows} rows; there are more"
    assert (note in repr(made)) == (note in made._repr_html_()) == is_cut
