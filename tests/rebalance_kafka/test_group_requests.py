"""Requests about several groups: their offsets (KIP-709), and lists by type (KIP-848)."""

import pytest

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.damage import TOPIC


@pytest.mark.parametrize("version", [8, 9])
def test_offsets_of_several_groups_are_fetched(stand, version):
    assert stand.commit("g") == stand.commit("h", partition=2) == ErrorCode.NONE
    wanted = ({"name": TOPIC, "partition_indexes": (0, 1, 0)},)
    groups = (
        {"group_id": "g", "topics": wanted},
        {"group_id": "h", "topics": None},
        {"group_id": "unknown", "topics": wanted},
        {"group_id": "g", "topics": wanted},
    )
    found = [
        (
            group.group_id,
            [
                (row.partition_index, row.committed_offset, row.error_code)
                for topic in group.topics
                for row in topic.partitions
            ],
        )
        for group in stand.asked(Api.OFFSET_FETCH, version, groups=groups).groups
    ]
    assert found == [
        ("g", [(0, 5, 0), (1, -1, 0), (0, 5, 0)]),
        ("h", [(2, 5, 0)]),
        ("unknown", [(0, -1, 0), (1, -1, 0), (0, -1, 0)]),
        ("g", [(0, 5, 0), (1, -1, 0), (0, 5, 0)]),
    ]


def test_groups_are_listed_by_their_type(stand):
    listed = [
        [(group.group_id, group.group_type) for group in stand.asked(Api.LIST_GROUPS, 5, **wanted).groups]
        for wanted in (
            {"states_filter": (), "types_filter": ()},
            {"states_filter": (), "types_filter": ("Classic",)},
            {"states_filter": (), "types_filter": ("consumer",)},
        )
    ]
    classic, consumer = ("neighbours", "classic"), ("consumer neighbours", "consumer")
    assert listed == [[consumer, classic], [classic], [consumer]]
