"""The commands of the document about batch evaluation, on a few rows."""

import re
import shlex

import pytest

from tests.documents import blocks
from tests.places import ROOT

SHOWN = [
    block.text
    for block in blocks(ROOT / "plugins" / "rebalance_spark" / "README.md", "console")
    if "$ rebalance-lab generate" in block.text
]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark", "few_tasks", "search_path")]


def arguments(line, folder):
    """The arguments of a command line, with two rows, and with its folders in another folder."""
    words = shlex.split(re.sub(r"--rows \d+", "--rows 2", line))[2:]
    ours = ("traffic", "groups", "traffic-scores", "group-scores")
    return [folder / word if word in ours else word for word in words]


def first_words(text):
    """The first word of each row of a table: metrics and strategies."""
    return re.findall(r"^(\(?[\w-]+\)?)  ", text, re.MULTILINE)


def test_there_are_two_sequences():
    assert [text.count("$ rebalance-lab") for text in SHOWN] == [3, 3]


@pytest.mark.parametrize("shown", SHOWN, ids=["replay", "microservices"])
def test_a_workload_is_generated_scored_and_reported_as_the_document_shows(shown, lab, tmp_path):
    lines = [line for line in shown.splitlines() if line.startswith("$ rebalance-lab")]
    answers = [lab(*arguments(line, tmp_path)) for line in lines]
    assert [(answer.status, answer.err) for answer in answers] == [(0, "")] * 3
    assert answers[-1].out.startswith("2 scenarios, ")
    assert {w.strip("()") for w in first_words(answers[-1].out)} == {
        w.strip("()") for w in first_words(shown)
    }
