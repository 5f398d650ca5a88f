"""Findings made by hand, and what stands on a page of them."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np

from rebalance_spark.advising import Advice
from rebalance_spark.findings import Figures, Findings, OnFront
from rebalance_spark.gains import Gains
from rebalance_spark.paired import Difference
from rebalance_spark.parts import Subjects


def figures(mean, *, worst_scenario="day-7"):
    return Figures(
        10, mean, mean + 1, mean + 2, mean + 3, mean + 4, worst_scenario, [mean, mean + 1, mean + 5]
    )


def findings_of(means, **changes):
    """Findings of {strategy: {metric: mean}}."""
    strategies = list(means)
    metrics = list(dict.fromkeys(metric for each in means.values() for metric in each))
    made = {(m, s): figures(mean) for s, each in means.items() for m, mean in each.items()}
    plain = Findings(
        scenarios=1_234,
        fidelities=["protocol"],
        versions=["rebalance-lab 0.1.0"],
        strategies=strategies,
        metrics=metrics,
        figures=made,
        statuses={s: {"ok": 10, "error": 0, "timeout": 0} for s in strategies},
        wins={(m, s, o): (5, 3, 2) for m in metrics for s in strategies for o in strategies if s != o},
        common=10,
    )
    return replace(plain, **changes)


def constant(made):
    """The figures of findings without distributions."""
    return {key: each._replace(curve=[1.0]) for key, each in made.figures.items()}


TWO = findings_of(
    {
        "range": {"rounds": 3.0, "moved_partitions": 50.0, "imbalance": 1.25},
        "sticky": {"rounds": 3.0, "moved_partitions": 20.0, "imbalance": 1.5},
    },
    front=[OnFront("sticky", 20.0, 1.5, True), OnFront("range", 50.0, 1.25, False)],
)
PLAIN = replace(TWO, figures=constant(TWO), front=[])
"""The same without plots, which are most of the work on a page."""


class Page(HTMLParser):
    """Tables of a page by caption, as rows of cells with a star where one is best; and all attributes."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.attributes, self.elements = {}, [], []
        self._open, self._text, self._rows, self._caption = [], "", [], ""
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, key, value) for key, value in attributes]
        if tag != "meta":
            self._open.append(tag)
        self._text, self._best = "", tag == "b"
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])

    def handle_startendtag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, key, value) for key, value in attributes]

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        if tag in ("td", "th"):
            self._rows[-1].append(self._text + "*" * self._best)
        elif tag == "caption":
            self._caption = self._text
        elif tag == "table":
            self.tables[self._caption] = self._rows


def texts_of(page):
    return [unescape(t) for t in re.findall(r">([^<>]+)<", page)]


CHANGES = {
    ("moved_partitions", "sticky"): Difference(-30.0, -33.0, -27.0),
    ("imbalance", "sticky"): Difference(0.25, 0.2, 0.31),
    ("rounds", "sticky"): Difference(0.0, -0.1, 0.1),
}
CHANGED = {key: made._replace(change=CHANGES.get(key)) for key, made in TWO.figures.items()}
ADVICE = Advice(
    "range",
    ["moved_partitions", "imbalance"],
    ["range", "sticky"],
    Subjects("group", ["g-0", "g-1", "g-2"], np.array([0, 1, 1, 2])),
    np.array([0, 1, 1]),
    np.array([0, 8, 6]),
    np.array([np.nan, 0.75, 0.75]),
    np.array([np.nan, 0.01, 0.01]),
    np.array([0, 0, 0]),
    {
        "moved_partitions": Gains(np.array([np.nan, -30.0, -32.0]), np.array([np.nan, 1.0, 1.0])),
        "imbalance": Gains(np.array([np.nan, 0.0, 0.0]), np.array([np.nan, 0.0, 0.0])),
        "rounds": Gains(np.array([np.nan, 0.4, 0.4]), np.array([np.nan, 0.1, 0.1])),
    },
    {"sticky": ["rounds"]},
    (),
    0.05,
    np.array([0, 0, 0]),
    (),
)
ADVISED = replace(TWO, figures=CHANGED, advice=ADVICE)
