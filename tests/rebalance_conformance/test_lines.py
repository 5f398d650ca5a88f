"""A group as a line: it comes back as it was, and the command takes it."""

import json

from hypothesis import given, settings

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from rebalance_conformance.groups import ordinary_groups
from rebalance_conformance.lines import group_document, group_line
from rebalance_lab.scenarios.groups import parse_group
from tests.examples import scaled

CLUSTER = Cluster({"t": TopicInfo(2, (("r1", "r2"), ()), (1.5, 0.0)), "größe": 1})
FULL = Subscription(("t", "größe"), Partitions({"t": [1], "größe": [0]}), 7, "r1", "i-1", None, 2.5)


def fields(case):
    cluster, group = case
    members = [
        [
            (f, list(v) if f == "owned" else v)
            for f, v in zip(s.__struct_fields__, map(s.__getattribute__, s.__struct_fields__), strict=True)
        ]
        for s in group.values()
    ]
    return list(cluster.topics.items()), list(group), members


def test_every_field_has_its_place():
    document = group_document(CLUSTER, GroupSubscription({"a": FULL, "b": Subscription(())}), "range")
    assert document == {
        "assignor": "range",
        "topics": {
            "t": {"partitions": 2, "racks": [["r1", "r2"], []], "weights": [1.5, 0.0]},
            "größe": {"partitions": 1},
        },
        "members": [
            {
                "id": "a",
                "topics": ["t", "größe"],
                "owned": [["t", 1], ["größe", 0]],
                "generation": 7,
                "rack": "r1",
                "instance_id": "i-1",
                "capacity": 2.5,
            },
            {"id": "b", "topics": []},
        ],
    }


@settings(max_examples=scaled(60))
@given(case=ordinary_groups())
def test_a_group_comes_back_as_it_was(case):
    line = group_line(case.cluster, case.group, "sticky")
    parsed = parse_group(json.loads(line), "line")
    assert "\n" not in line
    assert parsed.assignor == "sticky"
    assert fields((parsed.cluster, parsed.group)) == fields(case)


def test_a_full_group_comes_back_as_it_was():
    group = GroupSubscription({"a": FULL, "b": Subscription(())})
    parsed = parse_group(json.loads(group_line(CLUSTER, group)), "line")
    assert parsed.assignor is None
    assert fields((parsed.cluster, parsed.group)) == fields((CLUSTER, group))
