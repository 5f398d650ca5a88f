"""Tables as text, HTML and CSV."""

import io
from math import nan

import pytest
from rich.console import Console

from rebalance_lab.verdicts.tables import (
    BEST,
    COLOURS,
    Cell,
    csv_text,
    html_table,
    json_text,
    text_table,
    text_tables,
)

HEAD = ["metric", "range", "sticky"]
ROWS = [[Cell("rounds"), Cell("3"), Cell("2", BEST)], [Cell("lag", hint='"most"'), Cell("-"), Cell("1")]]


def printed(*tables, width=80):
    text = io.StringIO()
    console = Console(file=text, width=width)
    for table in tables:
        console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_html_has_headings_bold_cells_hints_and_a_caption():
    assert html_table(HEAD, ROWS, "the <caption>") == (
        "<table><caption>the &lt;caption&gt;</caption>"
        "<thead><tr><th scope=col>metric</th><th scope=col>range</th><th scope=col>sticky</th></tr></thead>\n"
        "<tbody>\n"
        "<tr><th scope=row>rounds</th><td>3</td><td><b>2</b></td></tr>\n"
        '<tr><th scope=row title="&quot;most&quot;">lag</th><td>-</td><td>1</td></tr>\n'
        "</tbody></table>"
    )


def test_html_without_a_head_has_no_headings():
    table = html_table((), [[Cell("<a>"), Cell("x", left=True)]])
    assert table == (
        '<table><tbody>\n<tr><td>&lt;a&gt;</td><td style="text-align:left">x</td></tr>\n</tbody></table>'
    )


def test_csv_has_twelve_digits_and_nothing_for_nan():
    assert csv_text(["a", "b", "c"], [[1, 1 / 3, nan], ["x,y", 2.0, 0.5]]) == (
        'a,b,c\n1,0.333333333333,\n"x,y",2,0.5\n'
    )


def test_json_is_indented():
    assert json_text({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'


def test_text_is_aligned_to_the_right_but_for_the_first_column():
    assert printed(text_table(HEAD, ROWS)) == [
        "metric  range  sticky",
        "rounds      3       2",
        "lag         -       1",
    ]


def test_a_table_that_just_fits_is_one_and_a_column_less_makes_it_two():
    width = len("metric  range  sticky  ")
    assert printed(*text_tables(HEAD, ROWS, width - 2), width=width) == printed(text_table(HEAD, ROWS))
    assert printed(*text_tables(HEAD, ROWS, width - 3)) == [
        "metric  range",
        "rounds      3",
        "lag         -",
        "metric  sticky",
        "rounds       2",
        "lag          1",
    ]


def test_a_cell_of_two_lines_is_as_wide_as_the_longer_one():
    rows = [[Cell("one\ntwo three"), Cell("1"), Cell("2")]]
    assert len(list(text_tables(["", "a", "b"], rows, len("two three  1  2")))) == 1
    assert len(list(text_tables(["", "a", "b"], rows, len("two three  1  2") - 1))) == 2


@pytest.mark.parametrize("width", [1, 8, 200])
def test_every_column_is_in_one_table(width):
    tables = list(text_tables(HEAD, ROWS, width))
    assert [str(column.header) for table in tables for column in table.columns[1:]] == HEAD[1:]


def test_a_table_of_one_column_is_none():
    assert list(text_tables(["metric"], [[Cell("rounds")]], 80)) == []


def test_html_marks_parts_of_a_text_and_colours_a_cell():
    row = [Cell("a"), Cell("t-0, <t>-1, t-2", marked=("<t>-1",)), Cell("x", "red", left=True)]
    page = html_table(("", "", ""), [row])
    mark = f'<mark style="background:none;color:{COLOURS["red"]};font-weight:bold">&lt;t&gt;-1</mark>'
    assert f"<td>t-0, {mark}, t-2</td>" in page
    assert f'<td style="text-align:left;color:{COLOURS["red"]}">x</td>' in page
