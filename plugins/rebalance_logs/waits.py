"""What rounds waited for: members whose joining or removal ended the first barrier, and what held them up."""

from rebalance_logs.facts import Kind
from rebalance_logs.findings import LoggedWait
from rebalance_logs.groups import GroupLog, LoggedRound, Member

UNSEEN_MS = 1_000
"""A round that goes on for longer after the last member joined waits for one that no log shows to join."""

SHORT_PART = 0.1
"""Parts of a wait that are shorter than this share of it are not told."""

_WAITED_FOR = frozenset((Kind.FAILED, Kind.LEFT_BEHIND, Kind.TOO_SLOW, Kind.PENDING_EXPIRED))


def waits_of(group: GroupLog, this: LoggedRound) -> list[LoggedWait]:
    """Return whom a round waited for: the members whose joining or removal ended its first barrier."""
    if this.joined_ms is None or this.was_empty:
        return []
    joined: list[tuple[int, str]] = []
    for name in this.members:
        member = group.members.get(name)
        asked = member.between(this.began_ms - 1, this.joined_ms, Kind.JOINING) if member else []
        if asked:
            joined.append((asked[-1].at_ms, name))
    last_ms, last_name = max(joined, default=(this.began_ms, ""))
    removed = [fact for fact in this.facts if fact.kind in _WAITED_FOR]
    late = [fact for fact in removed if fact.at_ms > this.began_ms]
    if late and late[-1].at_ms >= last_ms:
        names = (
            [group.name_of(late[-1])]
            if late[-1].member_id
            else [group.names.get(i, i) for i in late[-1].others]
        )
        return [LoggedWait(name, this.began_ms, late[-1].at_ms, "session") for name in names if name]
    if last_ms <= this.began_ms:
        return []
    unexplained = this.joined_ms - last_ms
    if unexplained > UNSEEN_MS:
        return _unseen(group, this)
    return _waits_for(group.members[last_name], this, last_ms)


def _unseen(group: GroupLog, this: LoggedRound) -> list[LoggedWait]:
    """Return the wait for members that no log shows to join: those that have ended, or one without a log."""
    assert this.joined_ms is not None
    position = group.rounds.index(this)
    before = group.rounds[position - 1].members if position else {}
    gone = [name for name, member_id in before.items() if this.members.get(name) != member_id]
    if gone:
        return [LoggedWait(name, this.began_ms, this.joined_ms, "session") for name in gone]
    silent = [name for name in this.members if not group.members[name].is_logged]
    return [
        LoggedWait(name, this.began_ms, this.joined_ms, "unknown") for name in silent[:1] if not silent[1:]
    ]


def _waits_for(member: Member, this: LoggedRound, joined_ms: int) -> list[LoggedWait]:
    """Return on what a member spent the time until it joined, the longest part first."""
    learned = member.between(this.began_ms - 1, joined_ms, Kind.LEARNED, Kind.ASKED_TO_REJOIN)
    began_ms = this.began_ms
    if member.starts(this.since_ms, joined_ms):
        return [LoggedWait(member.name, began_ms, joined_ms, "start")]
    if not learned:
        return [LoggedWait(member.name, began_ms, joined_ms, "unknown")]
    learned_ms = learned[0].at_ms
    revoked = member.between(learned_ms - 1, joined_ms, Kind.REVOKED, Kind.LOST)
    called_ms = revoked[0].at_ms if revoked else joined_ms
    parts = [
        LoggedWait(member.name, began_ms, learned_ms, "heartbeat"),
        LoggedWait(member.name, learned_ms, called_ms, "batch"),
        LoggedWait(member.name, called_ms, joined_ms, "callback"),
    ]
    parts.sort(key=lambda part: part.from_ms - part.until_ms)
    return [part for part in parts if part.seconds * 1_000 > SHORT_PART * (joined_ms - began_ms)]
