"""The answer of a command as JSON, CSV and HTML."""

from collections.abc import Mapping, Sequence
from html import escape
from math import isnan
from typing import Any

import msgspec

from rebalance_lab.verdicts.aims import FRONT
from rebalance_lab.verdicts.finding import Finding
from rebalance_lab.verdicts.grid import Grid
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.screen import Screen, all_tables, definition, head, legend, rest, table, title
from rebalance_lab.verdicts.tables import Table, csv_text, page


def as_page(screen: Screen) -> str:
    """Write a page: the answer, all metrics below, and their definitions."""
    metrics = [f"<dt>{escape(n)}</dt><dd>{escape(text)}</dd>" for n, text in map(definition, screen.metrics)]
    parts = [
        as_html(screen),
        "<details><summary>All metrics</summary>",
        *(made.as_html() for made in all_tables(screen)),
        f"<dl>{''.join(metrics)}</dl></details>",
    ]
    return page(screen.scenario, "\n".join(parts))


def as_html(screen: Screen) -> str:
    """Write the answer as HTML."""
    first, *verdict = map(escape, head(screen))
    lines = [f"<b>{name}</b> {escape(text)}" for name, text in rest(screen)]
    faults = [f'<b style="color:#b00020">{escape(text)}</b>' for text in (*screen.faults, *screen.errors)]
    made = table(screen)
    rows = [[cell._replace(text=cell.text.strip()) for cell in row] for row in made.rows]
    flat = Table([name.replace("\n", " ") for name in made.head], rows, hints=made.hints)
    body = [f"<b>{' '.join(verdict)}</b>", *faults]
    texts = [first, *body, flat.as_html(), *lines, f"<small>{escape(legend(screen))}</small>"]
    return "\n".join(text if text.startswith("<table") else f"<p>{text}</p>" for text in texts)


class Said(msgspec.Struct, frozen=True):
    """A finding, and the sentence that says it."""

    kind: str
    facts: Mapping[str, Any]
    text: str


class StrategyDocument(msgspec.Struct, frozen=True):
    """A candidate: the medians of its metrics, their spread, and their values by seeds."""

    label: str
    strategy: str
    settings: Mapping[str, Any]
    front: bool | None
    metrics: Mapping[str, float | None]
    spread: Mapping[str, tuple[float | None, float | None]]
    values: Mapping[str, list[float | None]]
    findings: Sequence[str]
    error: str


class ScreenDocument(msgspec.Struct, frozen=True):
    """The answer of `compare` and `advise`. Figures that a run does not have are null."""

    scenario: str
    seed: int | str
    seeds: Sequence[int | str]
    title: str
    decision: str
    choice: str
    now: str
    verdict: Sequence[Said]
    why: Sequence[Said]
    tries: Sequence[Said]
    know: Sequence[Said]
    load: Load | None
    as_seen: Mapping[str, Any] | None
    strategies: Sequence[StrategyDocument]
    errors: Sequence[str]
    definitions: Mapping[str, Mapping[str, str]]


def as_document(screen: Screen) -> ScreenDocument:
    """Return the answer as a document for programs."""
    grid = screen.grid
    front = grid.front(FRONT)
    return ScreenDocument(
        screen.scenario,
        grid.units[0],
        list(grid.units),
        title(screen),
        screen.choice.decision.name.lower(),
        grid.label(screen.choice.chosen),
        grid.label(grid.now),
        _said(screen.verdict),
        _said(screen.why),
        _said(screen.tries),
        _said(screen.know),
        screen.load,
        None if screen.seen is None else screen.seen.as_document(),
        [_strategy(grid, i, front) for i in range(len(grid.setups))],
        list(screen.errors),
        {
            m.name: {"definition": m.doc, "unit": m.unit, "group": m.group, "better": m.better}
            for m in screen.metrics
        },
    )


def _said(findings: Sequence[Finding]) -> list[Said]:
    return [Said(each.kind, each.facts, str(each)) for each in findings]


def _strategy(grid: Grid, number: int, front: Sequence[int]) -> StrategyDocument:
    setup = grid.setups[number]
    return StrategyDocument(
        grid.label(number),
        setup.strategy,
        {name: value for name, (_, value) in setup.settings.items()},
        number in front if grid.is_decided else None,
        {name: _number(grid.median(name, number)) for name in grid.metrics},
        {name: tuple(map(_number, grid.spread(name, number))) for name in grid.metrics},  # type: ignore[misc]
        {name: [_number(v) for v in grid.values(name)[:, number].tolist()] for name in grid.metrics},
        list(setup.findings),
        setup.error,
    )


def _number(value: float) -> float | None:
    return None if isnan(value) else value


def as_csv(screen: Screen) -> str:
    """Write a row for each candidate, a column for each metric. Figures that a run does not have are empty.

    A figure is the median of the seeds, and ``seed`` the first one. Several seeds add the ends of the spread.
    """
    grid, rows = screen.grid, []
    front = grid.front(FRONT)
    for i, setup in enumerate(grid.setups):
        row: dict[str, Any] = {"scenario": screen.scenario, "seed": grid.units[0], "seeds": len(grid.units)}
        row["strategy"] = setup.strategy
        row["front"] = ("yes" if i in front else "no") if grid.is_decided else ""
        row |= {name: "" if value is None else value for name, (_, value) in setup.settings.items()}
        for name in grid.metrics:
            row[name] = grid.median(name, i)
            if len(grid.units) > 1:
                row[f"{name}_low"], row[f"{name}_high"] = grid.spread(name, i)
        row["findings"] = "; ".join(setup.findings)
        rows.append(row)
    return csv_text(list(rows[0]), (list(row.values()) for row in rows))
