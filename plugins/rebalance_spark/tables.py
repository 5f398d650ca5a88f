"""A data frame as a table for people: as text, and as HTML in a notebook."""

from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rebalance_lab.verdicts.tables import Cell, as_text, html_table, text_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS = 20


@dataclass(frozen=True)
class Table:
    """Rows of a data frame as texts. ``is_cut``: the frame has more rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_cut: bool = False

    def __str__(self) -> str:
        """Return the table as text; the columns are as wide as their longest text."""
        text = StringIO()
        console = Console(file=text, width=10_000, color_system=None)
        console.print(text_table(self.columns, self.rows))
        lines = [line.rstrip() for line in text.getvalue().splitlines()]
        return "\n".join([*lines, *([_more(len(self.rows))] if self.is_cut else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        more = f"<p>{_more(len(self.rows))}</p>" if self.is_cut else ""
        return html_table(self.columns, self.rows) + more


def table(frame: "DataFrame", rows: int = MOST_ROWS) -> Table:
    """Return the first rows of a frame with figures of three significant digits. It runs the query."""
    taken = frame.limit(rows + 1).collect()
    cells = [tuple(_cell(value) for value in row) for row in taken[:rows]]
    return Table(tuple(frame.columns), tuple(cells), len(taken) > rows)


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell("-")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(as_text(value))
    return Cell(str(value), left=True)


def _more(count: int) -> str:
    return f"the first {count:,} rows; there are more"
