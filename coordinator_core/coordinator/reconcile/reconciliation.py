"""The next step of one member to its share (PROTOCOL 11.8).

A member first gives up what is not in its share. When it has confirmed that, its epoch becomes that of the
target, and it gets what is free. The rest follows when other members have given it up.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from coordinator_core.coordinator.reconcile.state import Current, Listed, MemberState
from coordinator_core.model import TopicPartition


class Surroundings(NamedTuple):
    """What the next step of a member depends on, besides what it may own now.

    ``share`` and ``epoch`` are those of the target. ``owned`` is what the member reports to own, None if it
    reports nothing. ``subscribes`` returns whether it subscribes to an existing topic: nothing else of its
    share counts. ``is_free`` returns whether it may get a partition. ``begins_epoch``: with each confirmation
    the epoch of a member that is to give up more grows by 1.
    """

    share: Listed
    epoch: int
    owned: frozenset[TopicPartition] | None
    subscribes: Callable[[str], bool]
    is_free: Callable[[TopicPartition], bool]
    begins_epoch: bool = False


def advanced(current: Current, around: Surroundings, *, has_subscribed: bool) -> Current:
    """Return what a member may own next: ``current`` itself if it cannot go on.

    ``has_subscribed``: its subscription has changed. It is then to give up at once what that leaves out.
    """
    if current.state is MemberState.UNREVOKED:
        if _owns(around, current.revoking):
            return _unsubscribed(current, around) if has_subscribed else current
        return _next(current, current.epoch + around.begins_epoch, around)
    if current.state is MemberState.STABLE and current.epoch == around.epoch:
        return _unsubscribed(current, around) if has_subscribed else current
    return _next(current, current.epoch, around)


def _owns(around: Surroundings, partitions: Iterable[TopicPartition]) -> bool:
    """Return whether a member owns some partitions still, as far as it has reported."""
    return around.owned is None or not around.owned.isdisjoint(partitions)


def _unsubscribed(current: Current, around: Surroundings) -> Current:
    """Return what a member may own that stays in its epoch, without topics that it does not subscribe to."""
    kept = tuple(tp for tp in current.assigned if around.subscribes(tp.topic))
    if len(kept) == len(current.assigned):
        return current
    left = (tp for tp in current.assigned if not around.subscribes(tp.topic))
    revoking, state = tuple(sorted((*current.revoking, *left))), MemberState.UNREVOKED
    if not _owns(around, revoking):
        revoking, state = current.revoking, current.state
    return _moved(current, current.epoch, state, kept, revoking)


def _next(current: Current, own_epoch: int, around: Surroundings) -> Current:
    wanted = [tp for tp in around.share if around.subscribes(tp.topic)]
    among = frozenset(wanted)
    kept = tuple(tp for tp in current.assigned if tp in among)
    revoking = tuple(tp for tp in current.assigned if tp not in among)
    if revoking and _owns(around, revoking):
        return _moved(current, own_epoch, MemberState.UNREVOKED, kept, revoking)
    held = frozenset(kept)
    free = [tp for tp in wanted if tp not in held and around.is_free(tp)]
    state = MemberState.STABLE if len(kept) + len(free) == len(wanted) else MemberState.UNRELEASED
    moved = _moved(current, around.epoch, state, kept, ())
    if not free:
        return moved
    since = {**dict.fromkeys(free, around.epoch), **moved.epochs()}
    assigned = tuple(sorted(since))
    return msgspec.structs.replace(moved, assigned=assigned, since=tuple(map(since.__getitem__, assigned)))


def _moved(current: Current, epoch: int, state: MemberState, assigned: Listed, revoking: Listed) -> Current:
    """Return what a member may own in an epoch: some of what it may own now."""
    known = current.epochs()
    since = tuple(known[tp] for tp in (*assigned, *revoking))
    return Current(epoch, current.epoch, state, assigned, revoking, since)
