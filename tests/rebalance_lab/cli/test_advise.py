"""`rebalance-lab advise` as JSON."""

import json


def test_json_has_every_change_that_was_tried(lab, small):
    document = json.loads(lab("advise", small, "--seeds", "1", "--jobs", "1", "--format", "json").out)
    labels = [each["label"] for each in document["strategies"]]
    assert (document["now"], document["strategies"][0]["metrics"]["rounds"]) == ("range", 1)
    assert {"range with heartbeat.interval.ms=1s", "cooperative-sticky", "kip-848"} <= set(labels)
