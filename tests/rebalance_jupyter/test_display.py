"""Traces, comparisons and assignments where no widget runs."""

import re
import xml.etree.ElementTree as ET

import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell

from coordinator_core.model import GroupAssignment, GroupSubscription, Partitions, Subscription
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import advise
from rebalance_jupyter.display import MOST_LANES, in_lines, picture, register_formatters, words
from rebalance_lab.verdicts.explaining import explain
from rebalance_lab.verdicts.of_traces import screen_of_traces
from rebalance_lab.verdicts.screen import head
from tests.approved import approved
from tests.rebalance_jupyter.samples import ALONE, SCALE_OUT, ran

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def formats():
    """What IPython shows of an object by MIME type."""
    shell = InteractiveShell.__new__(InteractiveShell)
    shell.display_formatter = DisplayFormatter()
    register_formatters(shell)
    return lambda thing: shell.display_formatter.format(thing)[0]


def cells(table):
    """The texts of a table, row by row. Its HTML is XML but for attributes without quotes."""
    root = ET.fromstring(re.sub(r" scope=(\w+)", r' scope="\1"', table))
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def test_of_many_partitions_some_are_drawn_and_the_picture_says_so():
    svg = picture([ran(SCALE_OUT.replace("partitions: 6", "partitions: 70"), "range")])
    listed = [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]
    assert f"({MOST_LANES} of 70 partitions" in listed[0]
    assert len([text for text in listed if text.startswith("clicks-")]) == MOST_LANES


FULL = Subscription(("t",), Partitions.of([("t", 1), ("t", 0)]), 3, rack="r", instance_id="i", capacity=2.5)
PLAIN = Subscription(("t",))
SHOWN = {
    "an assignment": GroupAssignment({"b<1>": [("t", n) for n in range(45)], "a": []}),
    "a group": GroupSubscription({"b": Subscription(("t", "u")), "a": Subscription(("<t>",))}),
    "a group that owns partitions": GroupSubscription({"m": FULL, "n": PLAIN}),
    "a group of nobody": GroupSubscription({}),
}


def test_assignments_and_groups_are_tables_by_member(formats):
    tables = {title: cells(formats(thing)["text/html"]) for title, thing in SHOWN.items()}
    approved("groups", {t: "\n".join(" | ".join(row).strip() for row in rows) for t, rows in tables.items()})


def test_traces_comparisons_explanations_and_advice_are_shown_wherever_they_are_displayed(formats):
    shown = formats(ran())
    assert (shown["image/svg+xml"], shown["text/plain"]) == (picture([ran()]), words(ran()))
    traces = [ran(strategy="range"), ran()]
    screen, explanation, advice = (
        screen_of_traces(traces, default_registry()),
        explain(traces),
        advise(ALONE, seeds=1),
    )
    for answer in (screen, advice):
        shown = formats(answer)
        assert shown["text/plain"] == in_lines(answer)
        assert shown["text/plain"].splitlines()[:2] == head(answer)
        assert f"<b>{head(answer)[1]}</b>" in shown["text/html"]
    shown = formats(explanation)
    assert shown["text/plain"] == "\n".join(explanation.lines)
    assert shown["text/html"].count("<ul>") == 2
    assert shown["text/html"].startswith(f"<p>{explanation.differences[0]}</p>")
    costs, *_ = explanation.sentences["cooperative-sticky"]
    assert f"<b>cooperative-sticky</b>: {costs}" in shown["text/html"]
