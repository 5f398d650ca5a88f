"""The causes for which a partition stands still, with the sentences of every place that speaks of them."""

from collections.abc import Mapping
from typing import NamedTuple

DETECTION, STANDING, UNASSIGNED = "detection", "standing", "unassigned"
WAITING, MESSAGES, APPLICATION = "waiting", "messages", "application"
HEARTBEAT, BATCH, SESSION = "waiting_heartbeat", "waiting_batch", "waiting_session"
CALLBACK, START, DELAY, UNKNOWN = "waiting_callback", "waiting_start", "waiting_delay", "waiting_unknown"
TAKE_OVER, CALLBACKS, RESTORE = "take_over", "callbacks", "restore"
AWAY, VACANT = "away", "vacant"

LONGER = "make the duration of the scenario longer"
BATCHES = "batches shorter (max.poll.records)"


class Cause(NamedTuple):
    """A cause, or a part of the stopped time.

    - ``doc``: the sentence that is true while it counts, in the definition of its metric.
    - ``happens``: what happens in a group, in a comparison ("54 % of the stopped time: ...").
    - ``meanwhile``: the end of a sentence about a time, in an explanation ("4 s (12 %) while ...").
    - ``at_end``, ``advice``: why a partition has no owner at the end of a run, and what to change.
    - ``waited``: what a member did for which a round waited ("2 s in a batch").
    """

    doc: str
    happens: str
    meanwhile: str = ""
    at_end: str = ""
    advice: str = LONGER
    waited: str = ""


CAUSES: Mapping[str, Cause] = {
    DETECTION: Cause(
        "the last owner had ended, and the group still counted on it",
        "the group still counted on members that had ended",
        "while the group still counted on members that had ended",
        "the group still counted on a member that had ended",
        f"{LONGER}, or session.timeout.ms shorter",
    ),
    STANDING: Cause(
        "the owner stood still or was cut off, and the group still counted on it",
        "members stood still or were cut off, and the group still counted on them",
        "until members that stood still or were cut off went on or were removed",
        "the group still counted on a member that stood still or was cut off",
        f"{LONGER}, or max.poll.interval.ms (pauses) or session.timeout.ms (freezes, cuts) shorter",
    ),
    UNASSIGNED: Cause(
        "the group rested, and no member had the partition or was about to take it over",
        "no round ran, and partitions that the group did not know of yet had no owner",
        "while nobody had the partitions",
        "the group rested, and its assignment did not have all partitions",
        f"{LONGER} than metadata.max.age.ms after a change of topics, or start a round",
    ),
    HEARTBEAT: Cause(
        "a round waited for a member that had yet to learn of it in its next heartbeat",
        "rounds waited for members that had yet to learn of them in their next heartbeats",
        "while rounds waited for members that had yet to learn of them in their next heartbeats",
        waited="until the next heartbeat",
    ),
    BATCH: Cause(
        "a round waited for a member that was handling a batch",
        "rounds waited for members to finish batches",
        "while rounds waited for members to finish batches",
        waited="in a batch",
    ),
    SESSION: Cause(
        "a round waited for a member that had ended, stood still or was cut off, until it was removed or"
        " went on",
        "rounds waited for members that had ended, stood still or were cut off",
        "while rounds waited for members that had ended, stood still or were cut off",
        waited="absent",
    ),
    CALLBACK: Cause(
        "a round waited for a member that ran a callback of the application",
        "rounds waited for callbacks of members",
        "while rounds waited for callbacks of the application",
        waited="in a callback",
    ),
    START: Cause(
        "a round waited for a member that was starting",
        "rounds waited for members that were starting",
        "while rounds waited for members that were starting",
        waited="starting",
    ),
    DELAY: Cause(
        "the first round of a group without members waited for group.initial.rebalance.delay.ms",
        "the first round of a group without members waited for group.initial.rebalance.delay.ms",
        "while the first round waited for group.initial.rebalance.delay.ms",
        waited="for group.initial.rebalance.delay.ms",
    ),
    UNKNOWN: Cause(
        "a round waited for members to join it or, without a coordinator, to end their rebalances, and"
        " the trace does not show why they were late",
        "rounds waited for members, and the trace does not show whether for heartbeats or for batches",
        "while rounds waited for members, of which the trace does not show why they were late",
        waited="until a heartbeat or in a batch",
    ),
    MESSAGES: Cause(
        "all members had joined the coordinator's round, and the assignment was under way",
        "assignments were under way",
        "while assignments were under way",
        "the assignment of a round was under way",
    ),
    TAKE_OVER: Cause(
        "a member had yet to take the partition over, or to rejoin, in its next poll",
        "members had yet to poll",
        "until members took over or rejoined in their next poll",
        "a member had yet to take over its assignment, or to rejoin",
    ),
    CALLBACKS: Cause(
        "the owner ran a callback of the application",
        "members ran callbacks",
        "in callbacks of the application",
    ),
    RESTORE: Cause(
        "the owner restored the state of the partition",
        "members restored state",
        "while state was restored",
    ),
    AWAY: Cause(
        "the static owner was closed or starting again",
        "static members were closed or starting",
        "while static members were away",
        "a static member was away",
        f"{LONGER}, or start a member",
    ),
    VACANT: Cause(
        "the group had no member that subscribed to the topic",
        "the group had no members, or none that subscribed to the topic",
        "while the group had no member that subscribed to the topic",
        "the group had no members",
        f"{LONGER}, or start a member",
    ),
}
"""The causes, in the order of their metrics. Each counts while its ``doc`` is true.

Why a round waits is known when it has waited. Until then the cause is `WAITING`.
"""

WAITS = (HEARTBEAT, BATCH, SESSION, CALLBACK, START, DELAY, UNKNOWN)
"""The causes for which a round waits."""

WHOLE: Mapping[str, Cause] = {
    WAITING: Cause(
        "a round waited for members to join it or, without a coordinator, to end their rebalances",
        "rounds waited for members",
        at_end="a round waited for members to join it",
        advice=f"{LONGER}, or {BATCHES}",
    ),
    APPLICATION: Cause(
        "; or ".join(CAUSES[cause].doc for cause in (TAKE_OVER, CALLBACKS, RESTORE)),
        "members ran callbacks, restored state, or had yet to poll",
    ),
}
"""Parts that are spoken of as a whole, whatever their causes."""

PARTS: Mapping[str, tuple[str, ...]] = {
    DETECTION: (DETECTION, STANDING, UNASSIGNED),
    WAITING: WAITS,
    MESSAGES: (MESSAGES,),
    APPLICATION: (TAKE_OVER, CALLBACKS, RESTORE),
    AWAY: (AWAY, VACANT),
}
"""The parts of the stopped time, with their causes."""


def happens_in(part: str) -> str:
    """Return what happens in a part or for a cause of the stopped time."""
    return (WHOLE.get(part) or CAUSES[part]).happens
