"""Why partitions have no owner at the end of a run, as each family says."""

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.reconcile import JOINS, LEAVES, ConsumerGroupHeartbeatRequest
from coordinator_core.registry.registry import default_registry

REGISTRY = default_registry()


def unowned(protocol, *events):
    return REGISTRY.protocol(protocol).unowned(events).get("unassigned")


def computed(**report):
    return ev.AssignmentComputed(
        client="a",
        generation=1,
        assignor="range",
        members={},
        payload_bytes=0,
        report=report,
    )


def test_the_classic_family_says_how_long_a_group_waits_for_lost_members():
    assert unowned("classic", computed(delay_left_ms=5_000)) == (
        "the group rested, and for 5 s after the last round it waits for lost members",
        "make the duration of the scenario longer, or the delay shorter",
    )
    assert unowned("classic", computed(delay_left_ms=5_000), computed()) is None
    assert unowned("classic") is None


@pytest.mark.parametrize(("epoch", "repeats"), [(LEAVES, False), (JOINS, False), (1, True)])
def test_a_heartbeat_repeats_if_it_says_nothing_and_its_member_has_joined(epoch, repeats):
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    assert request.repeats is repeats
