"""The next step of one member to its share (PROTOCOL 11.8).

A member first gives up what is not in its share. When it has confirmed that, its epoch becomes that of the
target, and it gets what is free. The rest follows when other members have given it up.
"""

from collections.abc import Collection, Mapping

from coordinator_core.coordinator.reconcile.state import Current, Listed, MemberState
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.reconcile import JOINS


def advanced(
    member_id: str,
    current: Current,
    share: Listed,
    epoch: int,
    owned: Collection[TopicPartition] | None,
    holders: Mapping[TopicPartition, str],
) -> Current:
    """Return what a member may own next: ``current`` itself if it cannot go on.

    ``share`` and ``epoch`` are those of the target; ``owned`` is what the member reports to own, None if it
    reports nothing. A report counts only after the coordinator has asked to give partitions up. A member that
    begins with epoch 0 owns nothing, and has nothing to give up.
    """
    if current.state is MemberState.UNREVOKED:
        if owned is None or not frozenset(owned).isdisjoint(current.revoking):
            return current
        return _next(member_id, current, current.epoch + 1, share, epoch, holders)
    if current.state is MemberState.STABLE and current.epoch == epoch:
        return current
    return _next(member_id, current, current.epoch, share, epoch, holders)


def _next(
    member_id: str,
    current: Current,
    own_epoch: int,
    share: Listed,
    epoch: int,
    holders: Mapping[TopicPartition, str],
) -> Current:
    wanted = frozenset(share)
    kept = tuple(tp for tp in current.assigned if tp in wanted)
    revoking = tuple(tp for tp in current.assigned if tp not in wanted)
    if revoking and own_epoch != JOINS:
        return _at(current, own_epoch, MemberState.UNREVOKED, kept, revoking)
    held = frozenset(kept)
    free = [tp for tp in share if tp not in held and holders.get(tp, member_id) == member_id]
    is_whole = len(kept) + len(free) == len(share)
    state = MemberState.STABLE if is_whole else MemberState.UNRELEASED
    return _at(current, epoch, state, tuple(sorted((*kept, *free))), ())


def _at(current: Current, epoch: int, state: MemberState, assigned: Listed, revoking: Listed) -> Current:
    previous = current.epoch if epoch != current.epoch else current.previous_epoch
    return Current(epoch, previous, state, assigned, revoking)
