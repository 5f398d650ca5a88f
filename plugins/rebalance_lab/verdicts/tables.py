"""Tables as text, HTML and CSV, documents as JSON, and figures as text."""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from math import isinf, isnan
from typing import Any, NamedTuple

import msgspec
from rich.table import Table as TextTable
from rich.text import Text

COLOURS = {
    "green": "var(--jp-success-color1,#2e7d32)",
    "red": "var(--jp-error-color1,#b00020)",
    "yellow": "var(--jp-warn-color1,#8a5a00)",
}
"""The colours of HTML for styles. Notebooks have a light and a dark one of each."""

BEST = "bold green"
"""The style of the best figure of a row."""


class Cell(NamedTuple):
    """A cell of a table. ``style`` is one of rich; a bold one is bold in HTML, too.

    In HTML ``hint`` is shown when the pointer is over the cell, and ``left`` aligns the text to the left.
    ``marked`` are those of the parts of the text, separated by commas, that HTML shows as errors. ``link`` is
    the address to which the text leads in HTML.
    """

    text: str
    style: str = ""
    hint: str = ""
    left: bool = False
    marked: Collection[str] = ()
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table with the number of its columns that are headings of the rows, and hints for columns."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    headings: int = 1
    title: str = ""
    hints: Sequence[str] = ()

    def as_html(self) -> str:
        """Write the table as HTML."""
        return html_table(self.head, self.rows, self.title, self.hints)


def as_text(value: float) -> str:
    """Write a figure for people: integers with separators, other figures with three significant digits."""
    if isnan(value):
        return "-"
    if isinf(value):
        return f"{value}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def brief(value: float) -> str:
    """Write a figure of a table: two digits of one that is less than 10, no fraction of 100 and more."""
    if isnan(value) or isinf(value):
        return as_text(value)
    return as_text(
        float(f"{value:.2g}") if abs(value) < 10 else round(value, 1 if abs(value) < 100 else None)
    )


def percent(share: float) -> str:
    """Write a share in whole percent."""
    return "-" if isnan(share) else f"{100 * float(share):.0f} %"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>:root {{ color-scheme: light dark }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums }} pre {{ white-space: pre-wrap }}
th, td {{ padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #8884 }}
th[scope=row] {{ text-align: left; white-space: nowrap }} .wide {{ overflow-x: auto }}
.plots {{ display: flex; flex-wrap: wrap; gap: 2rem }} svg {{ max-width: 100%; height: auto }}
figure {{ margin: 0; flex: 1 1 28rem; max-width: 40rem }}</style></head>
<body>{body}</body></html>
"""


def page(title: str, body: str) -> str:
    """Return a static page of HTML, which fetches nothing and runs no script."""
    return _PAGE.format(title=escape(title), body=body)


def json_text(document: Any) -> str:
    """Write a document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write rows as CSV. Floats have twelve significant digits, and NaN is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_csv_value(value) for value in row] for row in rows)
    return text.getvalue()


def _csv_value(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "" if isnan(value) else f"{value:.12g}"


_LEFT = ' style="text-align:left"'


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str = "", hints: Sequence[str] = ()
) -> str:
    """Write a table as HTML. The first cell of a row is its heading, unless the table has no head.

    The heading of a column is at the left if all its cells are. ``hints`` are shown when the pointer is over
    the headings of columns.
    """
    rows = [tuple(row) for row in rows]
    at_left = [all(cell.left for cell in column) for column in zip(*rows, strict=False)]
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    columns = "".join(
        f"<th scope=col{_hint(hint)}{_LEFT * bool(left)}>{escape(name)}</th>" if name else "<th></th>"
        for name, hint, left in zip_longest(head, hints[: len(head)], at_left[: len(head)], fillvalue="")
    )
    top = f"<thead><tr>{columns}</tr></thead>\n" if head else ""
    heading = "th scope=row" if head else "td"
    body = "".join(
        f"<tr>{_html_cell(first, heading)}{''.join(_html_cell(cell, 'td') for cell in rest)}</tr>\n"
        for first, *rest in rows
    )
    return f"<table>{title}{top}<tbody>\n{body}</tbody></table>"


def _html_cell(cell: Cell, element: str) -> str:
    parts = cell.text.split(", ") if cell.marked else [cell.text]
    text = ", ".join(_marked(part) if part in cell.marked else escape(part) for part in parts)
    text = f'<a href="{escape(cell.link)}">{text}</a>' if cell.link else text
    text = f"<b>{text}</b>" if "bold" in cell.style else text
    align = ["text-align:left"] if cell.left else []
    colour = [f"color:{COLOURS[cell.style]}"] if cell.style in COLOURS else []
    style = f' style="{";".join([*align, *colour])}"' if align or colour else ""
    return f"<{element}{_hint(cell.hint)}{style}>{text}</{element.partition(' ')[0]}>"


def _marked(text: str) -> str:
    return f'<mark style="background:none;color:{COLOURS["red"]};font-weight:bold">{escape(text)}</mark>'


def _hint(text: str) -> str:
    return f' title="{escape(text)}"' if text else ""


def text_table(head: Sequence[str], rows: Iterable[Sequence[Cell]], headings: int = 1) -> TextTable:
    """Return a table for a terminal: headings of rows on the left, the other columns aligned to the right.

    The first columns, as many as ``headings``, are headings. A heading of a column may have several lines.
    """
    table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in head[:headings]:
        table.add_column(Text(name), no_wrap=True, vertical="bottom")
    for name in head[headings:]:  # one that is wider than the terminal is folded: its neighbours are not cut
        table.add_column(Text(name), justify="right", overflow="fold", vertical="bottom")
    for row in rows:
        table.add_row(*(Text(cell.text, style=cell.style) for cell in row))
    return table


def text_tables(
    head: Sequence[str], rows: Sequence[Sequence[Cell]], width: int, headings: int = 1
) -> Iterator[TextTable]:
    """Split a table for a terminal of a width: columns that do not fit go into the next table.

    Each table has the headings of the rows.
    """
    texts = [[_widest(name) for name in head], *([_widest(cell.text) for cell in row] for row in rows)]
    widths = [2 + max(map(len, column)) for column in zip(*texts, strict=True)]
    room = width + 2 - sum(widths[:headings])
    first, count = headings, len(head)
    while first < count:
        end, used = first + 1, widths[first]
        while end < count and used + widths[end] <= room:
            used += widths[end]
            end += 1
        shown = [*range(headings), *range(first, end)]
        yield text_table([head[i] for i in shown], [[row[i] for i in shown] for row in rows], headings)
        first = end


def _widest(text: str) -> str:
    return max(text.split("\n"), key=len)
