"""A group as a line: it comes back as it was, and the command takes it."""

import json

from hypothesis import given, settings

from rebalance_conformance.groups import ordinary_groups
from rebalance_conformance.lines import group_line
from rebalance_lab.scenarios.groups import parse_group
from tests.examples import scaled


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


@settings(max_examples=scaled(60))
@given(case=ordinary_groups())
def test_a_group_comes_back_as_it_was(case):
    line = group_line(case.cluster, case.group, "sticky")
    parsed = parse_group(json.loads(line), "line")
    assert "\n" not in line
    assert parsed.assignor == "sticky"
    assert fields((parsed.cluster, parsed.group)) == fields(case)
