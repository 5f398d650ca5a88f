"""The example scenarios of notebooks: those that come with the package, and all of them run."""

import pytest

from rebalance_jupyter import examples
from rebalance_jupyter.examples import Examples
from rebalance_lab.scenarios.files import load_scenario
from tests.places import SCENARIOS


def test_they_are_the_scenarios_of_the_checkout_which_are_valid_and_say_what_they_are_about():
    assert list(examples()) == sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
    for name, path in examples().items():
        assert (path, load_scenario(path).name) == (SCENARIOS / f"{name}.yaml", name)
        assert len(examples().about(name)) > 10


def test_the_table_has_the_comment_at_the_top_of_each(tmp_path):
    (tmp_path / "b.yaml").write_text("# Two members,\n# one <leaves>.\nname: b\n# not this\n")
    (tmp_path / "a.yaml").write_text("name: a\n")
    found = Examples({name: tmp_path / f"{name}.yaml" for name in "ab"})
    assert repr(found) == "a  \nb  Two members, one <leaves>."
    assert "one &lt;leaves&gt;." in found._repr_html_()


def test_an_unknown_name_is_an_error():
    assert examples().get("no-such") is None
    with pytest.raises(KeyError, match="no example 'no-such': there are bounce, bounce-short, "):
        examples()["no-such"]
