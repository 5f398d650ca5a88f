"""`rebalance-lab advise`: text, JSON, and wrong use."""

import json

from tests.rebalance_lab.cli.commands import rows_in


def test_json_and_the_table_of_all_have_every_change_that_was_tried(lab, small):
    options = ("advise", small, "--seeds", "1", "--jobs", "1")
    document = json.loads(lab(*options, "--format", "json").out)
    labels = [each["label"] for each in document["strategies"]]
    assert (document["now"], document["strategies"][0]["metrics"]["rounds"]) == ("range", 1)
    assert {"range with heartbeat.interval.ms=1s", "cooperative-sticky", "kip-848"} <= set(labels)
    assert len(rows_in(lab(*options, "--all"))) == len(labels) > 3
