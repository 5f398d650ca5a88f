"""A round in one sentence."""

from collections.abc import Mapping, Sequence

from coordinator_core.traces.rounds import MemberRound, Round

_LISTED = 3
_SOON_MS = 5_000


def sentence(each: Round, follows: Round | None = None) -> str:
    """What a round did: ``generation 5: c1 and c2 each give up 1 partition, c3 waits; a round follows``."""
    if not each.generation:
        return "a round that nobody got through"
    if each.stable_ms is None:
        return f"generation {each.generation} never became Stable"
    if not each.members:
        return f"generation {each.generation}: nobody is given anything"
    said = [
        *_same(each.members, "revoked", "gives up", "each give up"),
        *_same(each.members, "lost", "loses", "each lose"),
        *_same(each.members, "assigned", "takes over", "each take over"),
    ]
    idle = [name for name, member in sorted(each.members.items()) if not _touched(member)]
    if idle:
        said.append(f"{_names(idle)} {'waits' if len(idle) == 1 else 'wait'}")
    if not said:
        said.append("everybody keeps what they have")
    soon = follows is not None and follows.began_ms - each.stable_ms <= _SOON_MS
    return (
        f"generation {each.generation}: {', '.join(said)}{'; the next round follows at once' if soon else ''}"
    )


def _same(members: Mapping[str, MemberRound], what: str, one: str, many: str) -> list[str]:
    """Members with equal counts together, the most first."""
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
