"""Members without a log in the trace of a group: what assignments and logs of other members tell."""

from bisect import bisect_right
from collections.abc import Sequence

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.events import PartitionMap
from coordinator_core.protocol.partition_maps import difference, intersection, union
from rebalance_logs.findings import Cause
from rebalance_logs.groups import GroupLog, LoggedRound, Member
from rebalance_logs.holders import Holder
from rebalance_logs.sessions import HEARTBEAT_MS

OTHERS = "others"
"""All members without a log together, where no line shows which of them owns what."""

SETTLED_MS = 5_000
"""In the first round, members take over their partitions within this time."""


def until_next(group: GroupLog, this: LoggedRound) -> int:
    """Return when the round after another begins, or the end of the logs."""
    after = bisect_right(group.rounds, this.known_ms, key=lambda r: r.known_ms)
    return group.rounds[after].began_ms if after < len(group.rounds) else group.until_ms


def kept_before(
    group: GroupLog,
    given: PartitionMap,
    names: Sequence[str],
    events: Sequence[tuple[int, ev.Event]],
) -> PartitionMap:
    """Return what members without a log had before the first round and keep, as the round is cooperative.

    That is what they are given and no log shows another to have had; nothing if all of them are among those
    that caused the round. ``names``: theirs, empty if nobody knows them.
    """
    first = group.rounds[0] if given else None
    if first is None or first.was_empty or "cooperative" not in first.protocol:
        return {}
    caused = {name for trigger in first.triggers for name in trigger.members}
    if names and caused.issuperset(names):
        return {}
    kept = given
    for at_ms, event in events:
        if at_ms < first.known_ms and isinstance(event, ev.Assigned):
            kept = difference(kept, event.owned)
    return kept


def of_unlogged(
    group: GroupLog, member: Member, absences: list[tuple[int, Cause]], kept: PartitionMap
) -> list[tuple[int, ev.Event]]:
    """Return what the assignments of leaders, or the coordinator, tell about a member without a log.

    ``kept``: what it has from the beginning.
    """
    name = member.name
    topics = sorted({topic for this in group.rounds for topic in this.owners.get(name, {})})
    holder = Holder(name, member.instance_id, topics)
    if kept:
        holder.start(group.from_ms)
        holder.own(group.from_ms, kept)
    for this in group.rounds:
        if name not in this.members:
            ended = [at_ms for at_ms, _ in absences if at_ms <= this.known_ms]
            holder.stop(ended[-1] if ended else this.began_ms, "crashed")
        elif name in this.owners or group.is_consumer_protocol:
            holder.start(this.known_ms)
            holder.join(this.known_ms, this.members[name], this.generation, this.protocol)
            share = this.owners.get(name, holder.owned)
            keeps = share if "cooperative" in this.protocol or group.is_consumer_protocol else {}
            at_ms = this.began_ms if this.is_look else this.known_ms
            holder.give_up(at_ms, difference(holder.owned, keeps))
            holder.own(this.until_ms, share)
    return holder.events


def of_unknown_owners(group: GroupLog, events: Sequence[tuple[int, ev.Event]]) -> list[tuple[int, ev.Event]]:
    """Return what members own of which no log tells what they own: what nobody else has after a round.

    Which of them owns what is not known: they are one client, `OTHERS`.
    """
    holder = Holder(OTHERS)
    before_ms = group.from_ms
    free_before: PartitionMap = {}
    # when all have taken over, and none has begun to give up what it has for the next round
    rests = [max(0, until_next(group, this) - this.until_ms) for this in group.rounds]
    times = [r.until_ms + min(SETTLED_MS, rest // 2) for r, rest in zip(group.rounds, rests, strict=True)]
    free = _free_at(events, times)
    steps = [any(trigger.is_follow_up for trigger in this.triggers) for this in group.rounds]
    for number, (this, now_free) in enumerate(zip(group.rounds, free, strict=True)):
        theirs: PartitionMap = now_free if _has_others(group, this) else {}
        if number == 0 and (kept := kept_before(group, theirs, _others(group, this), events)):
            holder.topics = sorted(kept)
            holder.start(group.from_ms)
            holder.own(group.from_ms, kept)
        if any(steps[number + 1 : number + 2]):  # what is revoked in this round is given away in the next one
            theirs = intersection(theirs, union(free_before, holder.owned))
        holder.generation = this.generation
        is_eager = "cooperative" not in this.protocol
        given_up = holder.owned if is_eager else difference(holder.owned, theirs)
        # they learnt of the round with their next heartbeats
        at_ms = min(this.known_ms, this.began_ms + HEARTBEAT_MS // 2) if is_eager else this.known_ms
        changes = theirs != holder.owned or bool(given_up)
        holder.give_up(before_ms if steps[number] else at_ms, given_up)
        if theirs and not holder.runs:
            holder.topics = sorted(theirs)
            holder.start(this.known_ms)
        if changes:
            holder.own(this.until_ms, theirs)
        free_before, before_ms = now_free, this.until_ms
    return holder.events


def _has_others(group: GroupLog, this: LoggedRound) -> bool:
    """Return whether a round has members of which neither a log nor an assignment shows what they own."""
    if group.is_consumer_protocol:
        return False
    is_counted = group.has_broker and group.rounds[0].was_empty  # from an empty group on
    if not this.is_whole and not is_counted:
        return True
    return bool(_others(group, this))


def _others(group: GroupLog, this: LoggedRound) -> list[str]:
    """Return the members of a round of which neither a log nor an assignment shows what they own."""
    return [name for name in this.members if not group.members[name].is_logged and name not in this.owners]


def _free_at(events: Sequence[tuple[int, ev.Event]], times: Sequence[int]) -> list[PartitionMap]:
    """Return the partitions that nobody owns at each of some times, which are in order."""
    owned: dict[str, PartitionMap] = {}
    every: PartitionMap = {}
    for _, event in events:
        if isinstance(event, ev.Assigned):
            highest = {
                topic: list(range(numbers[-1] + 1)) for topic, numbers in event.owned.items() if numbers
            }
            every = union(every, highest)
    found: list[PartitionMap] = []
    position = 0
    for at_ms in times:
        until = bisect_right(events, at_ms, lo=position, key=lambda event: event[0])
        for _, what in events[position:until]:
            if isinstance(what, ev.Assigned):
                owned[what.client] = what.owned
            elif isinstance(what, (ev.Revoked, ev.Lost)):
                owned[what.client] = difference(owned.get(what.client, {}), what.partitions)
            elif isinstance(what, ev.MemberStopped):
                owned.pop(what.client, None)
        position, free = until, every
        for partitions in owned.values():
            free = difference(free, partitions)
        found.append(free)
    return found
