"""What members subscribe to by regular expressions, whose topics a group looks up apart from requests.

All expressions of a group are resolved together, by the rights of the member whose heartbeat gave rise to it,
and at most once in `LEAST_MS`. The response to that heartbeat has the topics that were known before.
"""

from functools import partial
from typing import NamedTuple

from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import Computing
from coordinator_core.coordinator.reconcile.state import PATTERN, Member, Resolved
from coordinator_core.coordinator.shard import Step

LEAST_MS = 10_000
"""The time after the last resolution in which none follows. Kafka has no setting for it."""


class Change(NamedTuple):
    """Whether a member has another regular expression, and whether that counts now as a change of the group.

    It counts if the topics of the new one are known, or if there is none any more. Otherwise those that it is
    found to match count. ``ends`` is the expression that nobody has any more, if its topics are known.
    """

    is_other: bool
    counts: bool
    ends: str | None


def change_of_pattern(changes: Changes, before: Member | None, member: Member) -> Change:
    """Return what changes. Resolve the expressions if it is time."""
    state, group = changes.state, changes.group
    old, new = (None if before is None else before.pattern) or "", member.pattern or ""
    after = {pattern for pattern in (*state.patterns, new) if pattern}
    is_last = old != new and state.patterns.get(old) == 1
    if is_last:
        after.discard(old)
    is_known = new in state.resolved or (not new and group.has(Rule.DROPPED_PATTERN_BUMPS))
    if after and _is_time(changes, len(after)):
        resolving = partial(resolve, principal=member.principal)
        changes.follow.append(lambda step: submit(step, group, resolving))
    ends = old if is_last and old in state.resolved else None
    return Change(old != new, old != new and is_known, ends)


def _is_time(changes: Changes, patterns: int) -> bool:
    """Return whether the expressions are to be resolved, ``patterns`` in number."""
    group, resolved = changes.group, changes.state.resolved
    if not resolved:
        return True
    if changes.now_ms - next(iter(resolved.values())).at_ms <= LEAST_MS:
        return False
    return patterns != len(resolved) or group.resolved_changes != group.topic_changes


def resolve(changes: Changes, principal: str) -> None:
    """Look up the topics that match the expressions and that a principal may describe.

    Other topics than before, and other partitions of topics, raise the epoch of the group.
    """
    group, computing, topic_changes = changes.group, changes.group.computing, changes.group.topic_changes
    is_changed = False
    for pattern in changes.state.patterns:
        matching = _matching(computing, pattern)
        topics = tuple(sorted(topic for topic in matching if computing.may_describe(principal, topic)))
        known = changes.state.resolved.get(pattern)
        is_changed |= topics != (() if known is None else known.topics)
        changes.put(PATTERN, pattern, Resolved(topics, changes.now_ms))

    def resolved(step: Step) -> None:
        group.resolved_changes = topic_changes
        group.time_refresh(step)

    changes.follow.append(resolved)
    if is_changed:
        changes.bump("other topics match a regular expression")
    else:
        changes.refresh()


def _matching(computing: Computing, pattern: str) -> tuple[str, ...]:
    """Return the topics that match an expression: none if an earlier version has accepted an invalid one."""
    try:
        return computing.matching(pattern)
    except ValueError:
        return ()
