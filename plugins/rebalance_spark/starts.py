"""The assignment with which a running group starts: that of its owners, or one that an assignor computes."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.assigning.computing import run
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import (
    NO_OWNER,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicInfo,
)
from rebalance_lab.scenarios.replicas import racks_of
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.simulation.planning.counting import Counting
from rebalance_lab.simulation.planning.planned_run import member_id
from rebalance_spark.sweeps import parted

if TYPE_CHECKING:
    from rebalance_spark.stored import Scored

_FEW = 0.05
"""The share of scenarios with other owners below which a report does not mention them."""


def started(scenario: Scenario, assignor: Assignor) -> Scenario:
    """Return a scenario whose running group starts with the assignment that an assignor gives to it.

    The assignor gets the present owners, as in a round in which nobody joins or leaves. A cooperative one
    gets a second round. A scenario without a running group is returned as it is.

    Raises:
        AssignmentError: if the assignor fails.
    """
    problem = problem_at_start(scenario)
    if problem is None:
        return scenario
    found = run(assignor, problem)
    if is_cooperative(assignor):
        owning = {
            member: msgspec.structs.replace(subscription, owned=Partitions.of(found[member]))
            for member, subscription in problem.group.items()
        }
        found = run(assignor, problem.with_claims(GroupSubscription(owning)))
    return replace(scenario, members=tuple(_member(member, found) for member in scenario.members))


def moves_at_start(problem: Problem, strategies: Sequence[Counting]) -> list[int]:
    """Return how many owned partitions each strategy gives to another member in a group as it starts."""
    before = problem.owner
    owned = before != NO_OWNER
    return [int(np.count_nonzero((strategy.owners(problem) != before) & owned)) for strategy in strategies]


def problem_at_start(scenario: Scenario) -> Problem | None:
    """Return the running group of a scenario with its owners and rates, or None if it has none."""
    running = {member_id(member): _subscription(member, scenario) for member in scenario.running}
    if not running:
        return None
    subscribed = {topic for subscription in running.values() for topic in subscription.topics}
    cluster = {name: _info(scenario, name) for name in scenario.topics if name in subscribed}
    return build_problem(Cluster(cluster), GroupSubscription(running))


def start_of(scored: "Scored") -> str:
    """Return the assignor whose assignment groups have at the start, or an empty text."""
    if "start_assignor" not in scored.names:
        return ""
    return next((name for (name,) in scored.distinct("start_assignor") if name), "")


def about_starts(scored: "Scored", baseline: str) -> list[str]:
    """Return sentences of a report: with which assignment groups start, and what this means for a strategy.

    The strategy that runs today is charged for the way from the owners to its own assignment, if these are
    not the same.
    """
    start = start_of(scored)
    found = [f"Running groups start with the assignment of {start} (--start)."] if start else []
    if baseline not in scored.strategies or "start_moves" not in scored.names:
        return found
    moves = scored.figures("start_moves")[:, scored.strategies.index(baseline)]
    examined = moves[~np.isnan(moves)]
    others = int(np.count_nonzero(examined))
    if others > _FEW * len(examined):
        of = f"{len(examined):,}{' examined' if len(examined) < len(moves) else ''} scenarios"
        name = parted(baseline)[0]
        found.append(
            f"In {others:,} of {of}, the owners at the start are not those that {name} gives; its moves"
            f" include the way there. score --start {name} begins with its own."
        )
    return found


def _subscription(member: Member, scenario: Scenario) -> Subscription:
    topics = member.topics
    if member.pattern is not None:
        topics = tuple(topic for topic in scenario.topics if re.fullmatch(member.pattern, topic))
    return Subscription(
        topics=topics,
        owned=Partitions.of(member.owned or ()),
        generation=member.generation,
        rack=member.rack,
        instance_id=member.instance_id,
        capacity=member.process_rate,
    )


def _info(scenario: Scenario, name: str) -> TopicInfo:
    topic = scenario.topics[name]
    racks = racks_of(topic.racks, topic.partitions) if any(topic.racks) else None
    return TopicInfo(topic.partitions, racks, topic.rates.steps[0][1])


def _member(member: Member, assignment: GroupAssignment) -> Member:
    if member.owned is None:
        return member
    return replace(member, owned=tuple(sorted(assignment[member_id(member)])))
