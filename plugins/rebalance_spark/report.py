"""The report of decisions: a summary and a table for a terminal, and one page with two plots."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lab.scoring.rows import printable
from rebalance_lab.verdicts.aims import BALANCE, COLUMNS, STOPS
from rebalance_lab.verdicts.choices_per_group import COUNTED_BALANCE
from rebalance_lab.verdicts.grid import Aim
from rebalance_lab.verdicts.tables import Cell, Table, as_text, brief, html_table, page, percent
from rebalance_lab.verdicts.words import agreeing, counted, listed_names
from rebalance_spark.decisions import SHORT

ROWS = 10
"""The rows of the table on a terminal."""

_HEADS = {
    "stopped": "stopped\npartition s",
    "moved": "moved",
    "balance": "busiest\n/mean",
    "load": "busiest\nmember",
}
"""The headings of figures by the names of columns of decisions."""


class Decided(NamedTuple):
    """Decisions (`decisions.decision_schema`), and figures of strategies (`figures_of`)."""

    decisions: pa.Table
    strategies: pa.Table
    fidelity: str

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        names = self.decisions.column_names
        keys = self.decisions.select(names[: names.index("today")]).to_pylist()
        return ["/".join(str(value) for value in key.values()) for key in keys]

    @property
    def today(self) -> str:
        """The strategy that runs."""
        return str(self.decisions["today"][0])

    @property
    def figures(self) -> list[str]:
        """The names of the figures that have columns of today and of a change, and are known."""
        rows = self.decisions
        known = [name for name in rows.column_names if rows[name].null_count < len(rows)]
        return [name.removesuffix("_today") for name in known if name.endswith("_today")]


def figures_of(scores: pa.Table) -> pa.Table:
    """Return a row for each strategy: its scenarios, those that failed, and means of the headline metrics.

    Means are of the scenarios that all strategies completed.
    """
    metrics = [aim.metric for aim in _aims(scores.column_names)]
    done = scores.filter(pc.equal(scores["status"], "ok"))
    counts = done.group_by("scenario_id").aggregate([("strategy", "count_distinct")])
    having = len(pc.unique(done["strategy"]))
    whole = counts.filter(pc.equal(counts["strategy_count_distinct"], having))["scenario_id"]
    common = done.filter(pc.is_in(done["scenario_id"], whole.combine_chunks()))
    means = common.group_by("strategy").aggregate([(name, "mean") for name in metrics])
    failed = scores.append_column("failed", pc.cast(pc.not_equal(scores["status"], "ok"), pa.int64()))
    found = failed.group_by("strategy").aggregate([("scenario_id", "count"), ("failed", "sum")])
    found = found.join(means, "strategy").sort_by("strategy")
    names = {"scenario_id_count": "scenarios", "failed_sum": "failed"} | {f"{m}_mean": m for m in metrics}
    return found.rename_columns([names.get(name, name) for name in found.column_names])


def _aims(columns: Sequence[str]) -> list[Aim]:
    """Return the headlines that scores have. Balance is by partitions where there is none by rates."""
    aims = [*COLUMNS, *([] if BALANCE.metric in columns else [replace(BALANCE, metric=COUNTED_BALANCE)])]
    return [aim for aim in aims if aim.metric in columns]


def title(decided: Decided) -> str:
    """Return the line with what was scored."""
    rows = decided.strategies.to_pylist()
    groups = counted(len(decided.decisions), "group")
    most = max(row["scenarios"] for row in rows)
    return f"{groups}, {counted(most, 'scenario')}, {decided.fidelity} fidelity · today {decided.today}"


def summary(decided: Decided) -> list[str]:
    """Return what to do: how many groups switch to what, and how many stay, and why."""
    rows, names, today = decided.decisions.to_pylist(), decided.groups, decided.today
    switches = Counter(row["advised"] for row in rows if row["advised"] != today)
    kept = [(name, row) for name, row in zip(names, rows, strict=True) if row["advised"] == today]
    open_ = [name for name, row in kept if row["needed"] is not None]
    failed = [name for name, row in kept if not row["scenarios"]]
    over = [n for n, row in zip(names, rows, strict=True) if _load(row) > 1]
    parts = [f"{counted(number, 'group')} to {strategy}" for strategy, number in switches.most_common()]
    stay = len(kept) - len(open_) - len(failed)
    said = [f"Switch {', '.join(parts)}."] if parts else []
    if stay:
        said.append(f"Keep {today} in {stay if parts else counted(stay, 'group')}.")
    for some, what in ((open_, "too few scenarios to know: {}."), (failed, "no figures: {} (column error).")):
        if some:
            said.append(f"{len(some)} {agreeing('has', len(some))} {what.format(listed_names(some))}")
    lines = [" ".join(said)]
    if over:
        need = agreeing("needs", len(over))
        lines.append(
            f"{listed_names(over)} {need} more members or capacity: the busiest member has more than it can"
            " handle, also under the strategy that is advised."
        )
    return lines


def _load(row: dict[str, Any]) -> float:
    """Return the greatest load of the busiest member under the advised strategy, 0 if it is not known."""
    return (row.get("load_today") or 0.0) + (row.get("load_change") or 0.0)


def decision_table(decided: Decided, most: int | None = ROWS, *, undecided: bool = False) -> Table:
    """Return the decisions as a table: those that switch, or all, or those that are not decided."""
    rows, names = decided.decisions.to_pylist(), decided.groups
    pairs = list(zip(names, rows, strict=True))
    if undecided:
        pairs = [(name, row) for name, row in pairs if row["needed"] is not None]
    elif most is not None:
        pairs = [(name, row) for name, row in pairs if row["advised"] != decided.today][:most]
    shorts, is_short = decided.figures, any(row.get("missing_members") for _, row in pairs)
    head = ["group", "advised", "reason", *(_HEADS.get(name, name) for name in shorts)]
    head += ["more\nmembers"] * is_short
    return Table([*head, "p", "scenarios"], [_row(name, row, shorts, is_short) for name, row in pairs], 3)


def _row(name: str, row: dict[str, Any], shorts: Sequence[str], is_short: bool) -> list[Cell]:
    cells = [_change(row[f"{short}_today"], row[f"{short}_change"], short) for short in shorts]
    if is_short:
        more = row["missing_members"]
        cells.append("-" if more is None else "never" if more == inf else as_text(more))
    p = "-" if row["p"] is None else "<0.001" if row["p"] < 0.001 else f"{row['p']:.3f}"
    texts = [*cells, p, f"{row['scenarios']:,}"]
    return [
        *(Cell(text, left=True) for text in (printable(name), row["advised"], row["reason"])),
        *map(Cell, texts),
    ]


def _change(now: float | None, change: float | None, short: str) -> str:
    write: Callable[[float], str] = percent if short == "load" else brief
    if now is None:
        return "-"
    texts = [write(now), *([] if change is None else [write(max(0.0, now + change))])]
    return " -> ".join(dict.fromkeys(texts))


def strategy_table(figures: pa.Table) -> Table:
    """Return the figures of strategies as a table."""
    aims = _aims([name for name in figures.column_names if figures[name].null_count < len(figures)])
    heads = ["stopped\npartition s" if aim is STOPS else aim.head for aim in aims]
    rows = [
        [
            Cell(row["strategy"], left=True),
            Cell(f"{row['scenarios']:,}"),
            Cell(f"{row['failed']:,}"),
            *(Cell("-" if row[a.metric] is None else brief(row[a.metric] * a.scale)) for a in aims),
        ]
        for row in figures.to_pylist()
    ]
    return Table(["mean", "scenarios", "failed", *heads], rows)


# --- the page

_TEXT = "#010203"
"""Stands for the colour of the page's text, which matplotlib does not know."""

_COLOUR = "#0f7ac0"
_MOST_DRAWN = 40


def as_page(decided: Decided) -> str:
    """Return the report as a static page, which fetches nothing and runs no script."""
    lines = "".join(f"<p><b>{escape(line)}</b></p>" for line in summary(decided))
    plots = "".join(f"<figure>{svg}</figure>" for svg in _plots(decided))
    tables = [decision_table(decided, None), strategy_table(decided.strategies)]
    shown = "".join(f'<div class="wide">{html_table(t.head, t.rows)}</div>' for t in tables)
    head = title(decided)
    return page(head, f'<h1>{escape(head)}</h1>{lines}<div class="plots">{plots}</div>{shown}')


def _plots(decided: Decided) -> Iterator[str]:
    """Yield two plots: strategies by their first metric and balance, and the changes of the switches."""
    aims = _aims(decided.strategies.column_names)
    metrics = {SHORT.get(aim.metric, aim.metric): aim.metric for aim in aims}
    name, *others = decided.figures or ["", ""]
    first, other = metrics.get(name, ""), metrics.get(others[0] if others else "load", "")
    rows = decided.strategies.to_pylist()
    known = [row for row in rows if row.get(first) is not None and row.get(other) is not None]
    if known:
        yield _scatter([(row[first], row[other], row["strategy"]) for row in known], first, other)
    switches = decided.decisions.filter(pc.not_equal(decided.decisions["advised"], decided.today))
    if len(switches):
        yield _intervals(switches.slice(0, _MOST_DRAWN).to_pylist(), decided.groups, name)


def _scatter(points: Sequence[tuple[float, float, str]], first: str, other: str) -> str:
    figure, axes = _figure(4.2)
    axes.margins(0.2)
    axes.set_xlabel(f"mean {first}")
    axes.set_ylabel(f"mean {other}")
    for place, names in _by_place(points).items():
        axes.scatter(*place, s=36, color=_COLOUR)
        axes.annotate(", ".join(names), place, (6, 5), textcoords="offset points", fontsize=9, color=_TEXT)
    return _svg(figure, f"Strategies by {first} and {other}")


def _by_place(points: Sequence[tuple[float, float, str]]) -> dict[tuple[float, float], list[str]]:
    found: dict[tuple[float, float], list[str]] = {}
    for x, y, name in points:
        found.setdefault((round(x, 6), round(y, 6)), []).append(name)
    return found


def _intervals(rows: Sequence[dict[str, Any]], groups: Sequence[str], short: str) -> str:
    figure, axes = _figure(1.2 + 0.24 * len(rows))
    places = np.arange(len(rows))[::-1]
    change, low, high = (
        np.array([row[n] for row in rows], dtype=float) for n in (f"{short}_change", "low", "high")
    )
    axes.errorbar(change, places, xerr=[change - low, high - change], fmt="o", color=_COLOUR, capsize=2)
    axes.axvline(0, color="#888888", linewidth=1)
    axes.set_yticks(places, [f"{printable(g)} -> {r['advised']}" for g, r in zip(groups, rows, strict=False)])
    axes.set_xlabel(f"change of {short} in a scenario, with 95 % intervals")
    return _svg(figure, f"Changes of {short} of the groups that switch")


def _figure(height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color("#888888")
    axes.tick_params(labelsize=8, color="#888888", labelcolor=_TEXT)
    axes.xaxis.label.set_color(_TEXT)
    axes.yaxis.label.set_color(_TEXT)
    axes.grid(color="#8888884d", linewidth=0.6)
    return figure, axes


def _svg(figure: Any, label: str) -> str:
    """Return a plot as an SVG element, which has the same bytes for the same plot."""
    import io

    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": label, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    drawn = text.getvalue().replace(_TEXT, "currentColor")
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
