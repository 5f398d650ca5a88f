"""The tutorial of the document about batch evaluation, from the table to the decisions."""

import shlex

import pytest

from tests.documents import blocks
from tests.places import ROOT

README = ROOT / "plugins" / "rebalance_spark" / "README.md"
PLACES = ("hours", "hour-scores", "decisions.parquet", "decisions.html")
"""What the tutorial writes, in the folder in which one is. That of Java is another one."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("search_path")]


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """A folder in which the lines of Python of the tutorial were run."""
    folder = tmp_path_factory.mktemp("tutorial")
    found = {}
    for block in blocks(README, "py"):
        text = block.text.replace('"hours"', repr(str(folder / "hours")))
        exec(compile(text, str(README), "exec"), found)
    assert found["decisions"].count() == 20
    assert [row.kind for row in found["w"].problems.collect()] == []
    return folder


def test_the_commands_of_the_tutorial_follow_its_lines_of_python(folder, lab):
    text = "".join(block.text for block in blocks(README, "console"))
    lines = [shlex.split(line)[2:] for line in text.splitlines() if line.startswith("$ rebalance-lab")]
    assert [words[0] for words in lines] == ["score", "report"]
    for words in lines:
        answer = lab(*(folder / word if word in PLACES else word for word in words))
        assert (answer.status, bool(answer.out)) == (0, True), answer.err
    assert (folder / "decisions.html").is_file()
