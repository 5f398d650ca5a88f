"""`rebalance-lab advise`: text, JSON, and wrong use."""

import json

from tests.rebalance_lab.cli.commands import rows_in


def test_the_advice_is_a_verdict_and_a_table(lab, small):
    answer = lab("advise", small, "--seeds", "1", "--jobs", "1")
    assert (answer.status, answer.err) == (0, "")
    title, verdict, *_ = answer.out.split("\n\n")
    assert title == "small · 2 members, 4 partitions, 40 records/s · seed 4"
    assert verdict.startswith("Keep range: ")
    assert rows_in(answer)[0][0] == "range (now)"


def test_json_and_the_table_of_all_have_every_change_that_was_tried(lab, small):
    options = ("advise", small, "--seeds", "6", "--jobs", "1")
    document = json.loads(lab(*options, "--format", "json").out)
    labels = [each["label"] for each in document["strategies"]]
    assert (document["now"], document["strategies"][0]["metrics"]["rounds"]) == ("range", 1)
    assert {"range with heartbeat.interval.ms=1s", "cooperative-sticky", "kip-848"} <= set(labels)
    few, every = (rows_in(lab(*options, *more)) for more in ((), ("--all",)))
    assert len(few) < len(every) == len(labels)


def test_a_strategy_that_fails_has_no_advice(lab, small, tmp_path):
    (tmp_path / "bad.py").write_text(
        "class Bad:\n    name = 'bad'\n    def assign(self, cluster, group):\n        raise KeyError('x')\n"
    )
    answer = lab("advise", small, "-s", f"{tmp_path / 'bad.py'}:Bad")
    assert (answer.status, answer.out) == (1, "")
    assert "KeyError" in answer.err
