"""`rebalance-lab explain`: why strategies differ, as text and as JSON."""

import json

from tests.places import SCENARIOS

BOUNCE = SCENARIOS / "bounce.yaml"


def test_the_difference_comes_before_the_reasons_of_each_strategy(lab):
    answer = lab("explain", BOUNCE, "-s", "range", "-s", "cooperative-sticky")
    assert (answer.status, answer.err) == (0, "")
    title, verdict, *rest = answer.out.splitlines()
    assert title == "bounce, seed 0"
    assert verdict.startswith("range stops partitions for ")
    assert any(line.startswith("cooperative-sticky: 27.9 partition seconds stopped") for line in rest)


def test_json_has_the_sentences_and_the_figures(lab):
    document = json.loads(lab("explain", BOUNCE, "-s", "range", "--format", "json").out)
    (run,) = document["strategies"]
    assert (run["strategy"], run["moved_partitions"], document["differences"]) == ("range", 4, [])


def test_a_strategy_that_fails_does_not_stop_the_others(lab, tmp_path):
    (tmp_path / "bad.py").write_text(
        "class Bad:\n    name = 'bad'\n    def assign(self, cluster, group):\n        raise KeyError('x')\n"
    )
    answer = lab("explain", BOUNCE, "-s", f"{tmp_path / 'bad.py'}:Bad", "-s", "range")
    assert answer.status == 1
    assert "KeyError" in answer.err
    assert "range: 22.3 partition seconds stopped" in answer.out
