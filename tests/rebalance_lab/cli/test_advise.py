"""`rebalance-lab advise`: text, JSON, and wrong use."""

import json


def test_the_advice_is_sentences_and_a_table(lab, small):
    answer = lab("advise", small, "--seeds", "1", "--jobs", "1")
    assert (answer.status, answer.err) == (0, "")
    title, now, *rest = answer.out.splitlines()
    assert title.startswith("small, seed 4, ")
    assert now.startswith("Now, range: ")
    assert "No known help:" in rest
    assert any(line.startswith("range (now) ") for line in rest)


def test_json_has_the_sentences_and_the_figures_of_all_changes(lab, small):
    document = json.loads(lab("advise", small, "--seeds", "6", "--jobs", "1", "--format", "json").out)
    assert document["now"]["figures"]["rounds"] == 1
    frequent = "range with heartbeat.interval.ms=1s"
    assert document["no_help"][frequent].startswith("not known from 6 seeds: ")
    dear = next(c for c in document["changes"] if c["strategy"] == "range" and c["price"])
    assert dear["settings"]


def test_a_strategy_that_fails_has_no_advice(lab, small, tmp_path):
    (tmp_path / "bad.py").write_text(
        "class Bad:\n    name = 'bad'\n    def assign(self, cluster, group):\n        raise KeyError('x')\n"
    )
    answer = lab("advise", small, "-s", f"{tmp_path / 'bad.py'}:Bad")
    assert (answer.status, answer.out) == (1, "")
    assert "KeyError" in answer.err
