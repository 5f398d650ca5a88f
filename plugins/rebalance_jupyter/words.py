"""A round in one sentence."""

from collections.abc import Mapping

from rebalance_lab.traces.entries import MemberRound, Round
from rebalance_lab.verdicts.words import clock, counted, listed_names

_LISTED = 3
_SOON_MS = 5_000
_NOTABLE_MS = 1_000
"""A later take-over is described."""


def sentence(entry: Round, follows: Round | None = None) -> str:
    """Describe a round: ``generation 5: c1 and c2 each give up 1 partition, c3 waits; a round follows``."""
    if entry.aborted:
        return f"{entry.name} was aborted: {entry.aborted}"
    if not entry.generation:
        return "a round that did not complete"
    if entry.stable_ms is None:
        return f"{entry.name} never became {entry.rest}"
    if not entry.members:
        return f"{entry.name}: no partitions are assigned"
    parts = [
        *_same(entry.members, "revoked", "gives up", "each give up"),
        *_same(entry.members, "lost", "loses", "each lose"),
        *_same(entry.members, "assigned", "takes over", "each take over"),
    ]
    idle = [name for name, member in sorted(entry.members.items()) if not _touched(member)]
    if idle:
        parts.append(f"{listed_names(idle, _LISTED)} {'waits' if len(idle) == 1 else 'wait'}")
    if not parts:
        parts.append("all members keep their partitions")
    soon = follows is not None and follows.began_ms - entry.stable_ms <= _SOON_MS
    follow_up = "; the next round follows at once" if soon else ""
    return f"{entry.name}: {', '.join(parts)}{follow_up}"


def sentences_over_time(entry: Round, follows: Round | None = None) -> list[tuple[int, str]]:
    """Return what can be said of a round while it goes on, with the times in ms from which it holds.

    The last one is the sentence of the round: it holds from the time at which the members have taken over
    their assignments, or the round was aborted. A round that never ended has only that one.
    """
    ended_ms = entry.aborted_ms if entry.stable_ms is None else entry.stable_ms
    if ended_ms is None or ended_ms <= entry.began_ms:
        return [(entry.began_ms, sentence(entry, follows))]
    told = [(entry.began_ms, f"{entry.name} is being formed: {_cause(entry)}{_waits(entry)}")]
    if entry.waited_ms is not None and entry.began_ms + entry.waited_ms < ended_ms:
        text = f"{entry.name} is formed, and its members wait for their assignments"
        told.append((entry.began_ms + entry.waited_ms, text))
    if entry.taken_over_ms is not None and entry.taken_over_ms - ended_ms >= _NOTABLE_MS:
        told.append((ended_ms, f"{entry.name}: {entry.taken_over_by} has yet to take over its assignment"))
        ended_ms = entry.taken_over_ms
    return [*told, (ended_ms, sentence(entry, follows))]


def _waits(entry: Round) -> str:
    """Return until when a round waits, and for whom last."""
    if not (entry.waited_for and entry.waited_ms):
        return ""
    until = clock(entry.began_ms + entry.waited_ms).strip()
    return f"; it waits until {until}, last for {listed_names(list(entry.waited_for), _LISTED)}"


def _cause(entry: Round) -> str:
    """Return the first cause without its reason, and who joins besides."""
    cause = entry.causes[0].partition(" (")[0] if entry.causes else "its members join"
    others = [name for name in entry.joined if name not in cause.split()]
    verb = "joins" if len(others) == 1 else "join"
    return f"{cause}, and {listed_names(others, _LISTED)} {verb}" if entry.causes and others else cause


def _same(members: Mapping[str, MemberRound], what: str, one: str, many: str) -> list[str]:
    """Describe members with equal counts together, the largest count first."""
    by_count: dict[int, list[str]] = {}
    for name, member in sorted(members.items()):
        count = sum(map(len, getattr(member, what).values()))
        if count:
            by_count.setdefault(count, []).append(name)
    return [
        f"{listed_names(names, _LISTED)} {one if len(names) == 1 else many} {counted(count, 'partition')}"
        for count, names in sorted(by_count.items(), reverse=True)
    ]


def _touched(member: MemberRound) -> bool:
    return bool(member.revoked or member.lost or member.assigned or member.kept)
