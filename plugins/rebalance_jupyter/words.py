"""A round in one sentence."""

from collections.abc import Mapping, Sequence

from coordinator_core.traces.entries import MemberRound, Round

_LISTED = 3
_SOON_MS = 5_000


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
        parts.append(f"{_names(idle)} {'waits' if len(idle) == 1 else 'wait'}")
    if not parts:
        parts.append("all members keep their partitions")
    soon = follows is not None and follows.began_ms - entry.stable_ms <= _SOON_MS
    follow_up = "; the next round follows at once" if soon else ""
    return f"{entry.name}: {', '.join(parts)}{follow_up}"


def _same(members: Mapping[str, MemberRound], what: str, one: str, many: str) -> list[str]:
    """Describe members with equal counts together, the largest count first."""
    by_count: dict[int, list[str]] = {}
    for name, member in sorted(members.items()):
        count = sum(map(len, getattr(member, what).values()))
        if count:
            by_count.setdefault(count, []).append(name)
    return [
        f"{_names(names)} {one if len(names) == 1 else many} {count} partition{'s' * (count > 1)}"
        for count, names in sorted(by_count.items(), reverse=True)
    ]


def _touched(member: MemberRound) -> bool:
    return bool(member.revoked or member.lost or member.assigned or member.kept)


def _names(names: Sequence[str]) -> str:
    if len(names) > _LISTED:
        return f"{', '.join(names[: _LISTED - 1])} and {len(names) - _LISTED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
