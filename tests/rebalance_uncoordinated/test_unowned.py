"""Why partitions have no owner at the end of a run, as members without a coordinator say."""

from coordinator_core.protocol import events as ev
from rebalance_uncoordinated.events import ClaimFailed
from rebalance_uncoordinated.peers.family import PEERS
from rebalance_uncoordinated.watcher.family import WATCHER


def unowned(family, *events):
    return family.unowned(events).get("unassigned")


def test_peers_name_subscriptions_that_differ():
    started = [
        ev.MemberStarted(client=client, instance_id=None, topics=topics, process_rate=None)
        for client, topics in (("a", ["t"]), ("b", ["t", "u"]))
    ]
    assert unowned(PEERS, *started)[1] == "let all members subscribe to the same topics"
    assert unowned(PEERS, *started, ev.MemberStopped(client="b", how="crashed")) is None
    assert unowned(PEERS, *started, ev.SubscriptionChanged(client="a", topics=["u", "t"])) is None


def test_watchers_name_members_that_have_no_retries_left_and_no_share():
    failed = [ClaimFailed(client=client, held={"t": [0]}, retry=0, retries=4) for client in ("b", "a")]
    assert "and a, b have no retries left" in unowned(WATCHER, *failed)[0]
    took = ev.Assigned(client="b", generation=1, added={"t": [0]}, owned={"t": [0]})
    assert "and a has no retries left" in unowned(WATCHER, *failed, took)[0]
    nothing = ev.Assigned(client="b", generation=1, added={}, owned={})
    assert "and a, b have" in unowned(WATCHER, *failed, nothing)[0]
    again = ClaimFailed(client="a", held={"t": [0]}, retry=3, retries=4)
    assert unowned(WATCHER, again) is None
