"""Why partitions have no owner at the end of a run, as each family says."""

import pytest

from coordinator_core.client.watcher.events import ClaimFailed
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


def test_peers_name_subscriptions_that_differ():
    started = [
        ev.MemberStarted(client=client, instance_id=None, topics=topics, process_rate=None)
        for client, topics in (("a", ["t"]), ("b", ["t", "u"]))
    ]
    assert unowned("peers", *started)[1] == "let all members subscribe to the same topics"
    assert unowned("peers", *started, ev.MemberStopped(client="b", how="crashed")) is None
    assert unowned("peers", *started, ev.SubscriptionChanged(client="a", topics=["u", "t"])) is None


def test_watchers_name_members_that_have_no_retries_left_and_no_share():
    failed = [ClaimFailed(client=client, held={"t": [0]}, retry=0, retries=4) for client in ("b", "a")]
    assert "and a, b have no retries left" in unowned("watcher", *failed)[0]
    took = ev.Assigned(client="b", generation=1, added={"t": [0]}, owned={"t": [0]})
    assert "and a has no retries left" in unowned("watcher", *failed, took)[0]
    nothing = ev.Assigned(client="b", generation=1, added={}, owned={})
    assert "and a, b have" in unowned("watcher", *failed, nothing)[0]
    again = ClaimFailed(client="a", held={"t": [0]}, retry=3, retries=4)
    assert unowned("watcher", again) is None


@pytest.mark.parametrize(("epoch", "repeats"), [(LEAVES, False), (JOINS, False), (1, True)])
def test_a_heartbeat_repeats_if_it_says_nothing_and_its_member_has_joined(epoch, repeats):
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    assert request.repeats is repeats
