"""Checks of running groups: the assignor in the simulator, with every message of the protocol.

In every run a group starts, one member joins, one member closes or crashes, and it comes back. All members
subscribe to all topics. The checks compare the assignments in which the group rests with what the assignor
declares. Thus they see the claims that members really send: an eager member revokes all partitions before it
joins, and its subscription lists none.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from coordinator_core.errors import RebalanceLabError
from coordinator_core.model import TopicPartition
from coordinator_core.registry.registry import default_registry
from rebalance_conformance.answers import named
from rebalance_conformance.groups import TOPICS
from rebalance_conformance.ownership import without_claims
from rebalance_conformance.search import Bench, FaultError, check
from rebalance_conformance.subject import Subject
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.ledger import Settled

MOST_RUNS = 12
"""A run takes as long as many assignments."""

LATE = "late"
JOINS, GOES, RETURNS, ENDS = 30, 60, 90, 120
"""Seconds. The session expires, and the group rests, long before the next change."""


class Change(NamedTuple):
    """A change from outside, and the assignments of the group before and after it."""

    event: str
    member: str
    before: Settled
    after: Settled

    @property
    def told(self) -> str:
        """``leave c1``."""
        return f"{self.event} {self.member}"


@st.composite
def _scenarios(draw: st.DrawFn) -> Mapping[str, Any]:
    """Draw the document of a run."""
    topics = TOPICS[: draw(st.integers(1, 2))]
    members = [f"c{number}" for number in range(1, draw(st.integers(2, 3)) + 1)]
    leaver, event = draw(st.sampled_from(members)), draw(st.sampled_from(["leave", "crash"]))
    return {
        "name": "check",
        "duration": f"{ENDS}s",
        "seed": draw(st.integers(0, 9)),
        "topics": {topic: {"partitions": draw(st.integers(1, 6))} for topic in topics},
        "members": [{"id": member, "topics": list(topics)} for member in members],
        "events": [
            {"at": f"{JOINS}s", "join": {"id": LATE, "topics": list(topics)}},
            {"at": f"{GOES}s", event: leaver},
            {"at": f"{RETURNS}s", "restart": leaver},
        ],
        "config": {"session.timeout.ms": 10_000},
    }


@check("A running group rests and owns all partitions.", _scenarios(), most=MOST_RUNS)
def fails_in_a_group(bench: Bench, scenario: Mapping[str, Any]) -> None:
    """Fail if the assignor raises, a rule of the protocol is broken, or a partition has no owner."""
    counts = {topic: described["partitions"] for topic, described in scenario["topics"].items()}
    every = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
    for change in _played(bench.subject, scenario):
        missing = [partition for partition in every if partition not in change.after.owners]
        if missing:
            reason = f"the group rested after {change.told}, and nobody owned {named(missing[0])}"
            raise FaultError(reason, scenario=scenario)


@check("Who stays in a running group loses nothing to a leave.", _scenarios(), only="sticky", most=MOST_RUNS)
def not_sticky_in_a_group(bench: Bench, scenario: Mapping[str, Any]) -> None:
    """Fail if a member loses a partition because another one leaves (C-67)."""
    for change in _played(bench.subject, scenario):
        if change.event not in ("leave", "crash"):
            continue
        for partition, owner in sorted(change.before.owners.items()):
            new = change.after.owners.get(partition)
            if owner != change.member and new != owner:
                fault = f"after {change.told}, {owner!r} lost {named(partition)} to {new!r}"
                raise FaultError(fault + without_claims(bench.subject), scenario=scenario)


@check("A running group rests with equal shares.", _scenarios(), only="balanced", most=MOST_RUNS)
def unbalanced_in_a_group(bench: Bench, scenario: Mapping[str, Any]) -> None:
    """Fail if the members of a group that rests differ by more than one partition."""
    for change in _played(bench.subject, scenario):
        loads = Counter(change.after.owners.values())
        ranked = sorted(change.after.members, key=lambda member: (loads[member], member))
        least, most = ranked[0], ranked[-1]
        if loads[most] - loads[least] > 1:
            owned = f"{most!r} owned {loads[most]} partitions and {least!r} {loads[least]}"
            raise FaultError(f"after {change.told}, {owned}", scenario=scenario)


def _played(subject: Subject, scenario: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes of a run.

    Raises:
        FaultError: if the run fails, breaks a rule of the protocol, or has a change after which no
            assignment is in force when the next change comes.
    """
    registry, watch = default_registry(), Invariants()
    strategy = registry.strategy("range").with_changes(
        name=subject.name,
        wrappers=(lambda inner, make: subject.make(),),  # noqa: ARG005
    )
    document = load_scenario_text(msgspec.json.encode(scenario).decode(), "scenario")
    try:
        trace = simulate(document, strategy, registry, watch=watch)
    except RebalanceLabError as error:
        raise FaultError(str(error), scenario=scenario) from error
    for violation in watch.violations:
        raise FaultError(f"a rule of the protocol was broken {violation}", scenario=scenario)
    settled = History(trace, registry).settled
    (_, join), (_, go), (_, back) = (list(event.items()) for event in scenario["events"])
    before: Settled | None = None
    for event, member, until in (
        ("start", "", JOINS),
        ("join", join[1]["id"], GOES),
        (go[0], go[1], RETURNS),
        (back[0], back[1], ENDS),
    ):
        after = next((s for s in settled if s.from_ms < until * 1_000 <= s.until_ms), None)
        if after is None:
            raise FaultError(f"{event} {member}: the group did not come to rest", scenario=scenario)
        if before is not None:
            yield Change(event, member, before, after)
        before = after
