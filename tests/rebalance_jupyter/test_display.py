"""Traces, comparisons and assignments where no widget runs."""

import re
import xml.etree.ElementTree as ET

import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell

from coordinator_core.model import GroupAssignment, GroupSubscription, Partitions, Subscription
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import advise
from rebalance_jupyter.display import (
    MOST_LANES,
    alert,
    assignment_html,
    explanation_html,
    group_html,
    in_lines,
    picture,
    register_formatters,
    words,
)
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.explaining import explain
from rebalance_lab.verdicts.of_traces import screen_of_traces
from rebalance_lab.verdicts.screen import head
from tests.rebalance_jupyter.samples import ALONE, LATE_VIEW, NOBODY, SCALE_OUT, TOO_SHORT, ran

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def formats():
    """What IPython shows of an object by MIME type."""
    shell = InteractiveShell.__new__(InteractiveShell)
    shell.display_formatter = DisplayFormatter()
    register_formatters(shell)
    return lambda thing: shell.display_formatter.format(thing)[0]


def texts(svg):
    return [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]


def cells(table):
    """The texts of a table, row by row. Its HTML is XML but for attributes without quotes."""
    root = ET.fromstring(re.sub(r" scope=(\w+)", r' scope="\1"', table))
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def test_a_picture_is_an_svg_with_a_lane_for_each_partition():
    svg = picture([ran()])
    assert texts(svg)[0] == "scale-out under cooperative-sticky"
    assert [text for text in texts(svg) if text.startswith("clicks-")] == [f"clicks-{n}" for n in range(6)]
    assert {"join c3", "crash c2"} <= set(texts(svg))


def test_of_many_partitions_the_first_are_drawn_and_the_picture_says_so():
    many = SCALE_OUT.replace("partitions: 6", "partitions: 70")
    listed = texts(picture([ran(many, "range")]))
    assert f"({MOST_LANES} of 70 partitions" in listed[0]
    assert len([text for text in listed if text.startswith("clicks-")]) == MOST_LANES


@pytest.mark.parametrize("scenario", [NOBODY, ALONE, TOO_SHORT])
def test_small_traces_have_a_picture(scenario):
    assert len(texts(picture([ran(scenario)]))) >= 1


def test_words_are_the_sentences_of_the_rounds():
    lines = words(ran()).splitlines()
    assert lines[0] == "scale-out under cooperative-sticky, seed 0"
    assert [line.strip() for line in lines[1:-1]] == [
        r["sentence"] for r in view_model(ran()).document["rounds"]
    ]
    assert lines[-1] == "ended Stable in generation 4"


@pytest.mark.parametrize(
    ("scenario", "last"),
    [
        (NOBODY, "no member tried to join"),
        (TOO_SHORT, "ended PreparingRebalance in generation 0"),
        (ALONE, "ended Stable in generation 1"),
    ],
)
def test_words_of_small_traces(scenario, last):
    assert words(ran(scenario)).splitlines()[-1] == last


def test_words_name_the_state_in_which_a_group_of_the_protocol_rests():
    late = LATE_VIEW.replace("duration: 1m", "duration: 35s")
    *_, last, end = words(ran(late, "watcher")).splitlines()
    assert last == "  generation 4 never became Settled"
    assert end == "ended Rebalancing in generation 4"


def test_an_assignment_is_a_table_by_member():
    given = GroupAssignment({"b<1>": [("t", n) for n in range(45)], "a": []})
    table = assignment_html(given)
    assert "b&lt;1&gt;" in table
    assert cells(table) == [
        ["member", "partitions", ""],
        ["b<1>", "45", ", ".join(f"t-{n}" for n in range(40)) + " and 5 more"],
        ["a", "0", ""],
    ]


def test_a_group_is_a_table_of_what_its_members_said():
    plain = GroupSubscription({"b": Subscription(("t", "u")), "a": Subscription(("<t>",))})
    assert cells(group_html(plain)) == [["member", "topics"], ["b", "t, u"], ["a", "<t>"]]
    owned = Partitions.of([("t", 1), ("t", 0)])
    full = Subscription(("t",), owned, 3, rack="r", instance_id="i", capacity=2.5)
    assert cells(group_html(GroupSubscription({"m": full, "n": Subscription(("t",))}))) == [
        ["member", "topics", "owned", "generation", "instance id", "rack", "capacity"],
        ["m", "t", "t-1, t-0", "3", "i", "r", "2.5"],
        ["n", "t", "", "", "", "", ""],
    ]


def test_a_group_of_nobody_is_a_table_too():
    assert cells(group_html(GroupSubscription({}))) == [["member", "topics"]]


def test_an_explanation_is_text_with_the_reasons_of_each_run_as_a_list():
    explanation = explain([ran(strategy="range"), ran()])
    html = explanation_html(explanation)
    assert html.count("<ul>") == 2
    assert f"<b>cooperative-sticky</b>: {explanation.sentences['cooperative-sticky'][0]}" in html
    assert html.startswith(f"<p>{explanation.differences[0]}</p>")


def test_advice_is_text_and_html_wherever_it_is_displayed(formats):
    advice = advise(ALONE, seeds=1)
    shown = formats(advice)
    title, verdict, *_, know = shown["text/plain"].splitlines()
    assert [title, verdict] == head(advice)
    assert verdict.startswith("Keep range: ")
    assert know == f"Know: {advice.know[0]}"
    assert f"<b>{verdict}</b>" in shown["text/html"]
    assert "<th scope=row>kip-848</th>" in shown["text/html"]


def test_what_is_wrong_is_text():
    assert "&lt;b&gt;" in alert("<b>")
    assert 'role="alert"' in alert("x")


def test_formatters_show_them_wherever_they_are_displayed(formats):
    screen = screen_of_traces([ran(strategy="range"), ran()], default_registry())
    assert formats(ran())["image/svg+xml"] == picture([ran()])
    assert formats(ran())["text/plain"] == words(ran())
    assert "<th scope=row>cooperative-sticky</th>" in formats(screen)["text/html"]
    assert formats(screen)["text/plain"] == in_lines(screen)
    explanation = explain([ran()])
    assert formats(explanation)["text/plain"] == "\n".join(explanation.lines)
    assert formats(explanation)["text/html"] == explanation_html(explanation)
    for thing in (GroupAssignment({"m": [("t", 0)]}), GroupSubscription({"m": Subscription(("t",))})):
        assert cells(formats(thing)["text/html"])[1][0] == "m"
