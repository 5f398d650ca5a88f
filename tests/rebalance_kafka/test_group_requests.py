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


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_a_sync_has_type_and_assignor_from_version_5_on(stand, missing):
    """Without one of them nothing else is looked at, not even the id of the group (KIP-559)."""
    named = {"protocol_type": "consumer", "protocol_name": "range", "group_id": "", missing: None}
    assert stand.asked(Api.SYNC_GROUP, 5, **named).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stand.asked(Api.SYNC_GROUP, 4, group_id="").error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_an_assignor_without_a_name_is_null_from_version_7_on(stand, version, name):
    protocols = ({"name": "", "metadata": b""},)
    joined = stand.asked(
        Api.JOIN_GROUP, version, group_id="unnamed", group_instance_id="i", protocols=protocols
    )
    assert (joined.error_code, joined.protocol_name) == (ErrorCode.NONE, name)
