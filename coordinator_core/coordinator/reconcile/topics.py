"""Topics that come, grow and go. A group notices with its next heartbeat."""

from collections.abc import Mapping

import msgspec

from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import ReconcileGroup
from coordinator_core.coordinator.reconcile.state import CURRENT, SHARE, TARGET, Listed
from coordinator_core.coordinator.shard import Step
from coordinator_core.model import TopicPartition


def on_topics(_: Step, group: ReconcileGroup) -> None:
    """Let the next heartbeat look at the partitions of the group's topics, and at regular expressions."""
    group.topic_changes += 1


def on_deleted(step: Step, group: ReconcileGroup, ids: Mapping[str, str]) -> None:
    """Name deleted topics by their ids, ``ids`` by name.

    Members have yet to give them up, and a topic of the same name may be created meanwhile.
    """

    def task(changes: Changes) -> None:
        for member_id, share in list(changes.state.shares.items()):
            if any(tp.topic in ids for tp in share):
                changes.put(SHARE, member_id, tuple(sorted(_renamed(share, ids))))
        for member_id, current in list(changes.state.currents.items()):
            if any(tp.topic in ids for tp in (*current.assigned, *current.revoking)):
                assigned, revoking = _renamed(current.assigned, ids), _renamed(current.revoking, ids)
                renamed = msgspec.structs.replace(current, assigned=assigned, revoking=revoking)
                changes.put(CURRENT, member_id, renamed.in_order())
        target = changes.state.target
        if not target.topics.keys().isdisjoint(ids):
            topics = {ids.get(topic, topic): count for topic, count in target.topics.items()}
            changes.put(TARGET, "", msgspec.structs.replace(target, topics=topics))

    submit(step, group, task, again=True)


def _renamed(partitions: Listed, ids: Mapping[str, str]) -> Listed:
    return tuple(TopicPartition(ids.get(tp.topic, tp.topic), tp.partition) for tp in partitions)
