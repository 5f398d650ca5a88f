"""The assignment with which a running group starts, in place of that of its owners."""

import re
from dataclasses import replace

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import settled
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicInfo,
)
from rebalance_lab.scenarios.replicas import racks_of
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.simulation.planning.planned_run import member_id


def started(scenario: Scenario, assignor: Assignor) -> Scenario:
    """Return a scenario whose running group starts with the assignment that an assignor gives to it.

    The assignor gets the present owners, as in a round in which nobody joins or leaves. A scenario without a
    running group is returned as it is.

    Raises:
        AssignmentError: if the assignor fails.
    """
    problem = problem_at_start(scenario)
    if problem is None:
        return scenario
    found = settled(assignor, problem)
    return replace(scenario, members=tuple(_member(member, found) for member in scenario.members))


def problem_at_start(scenario: Scenario) -> Problem | None:
    """Return the running group of a scenario with its owners and rates, or None if it has none."""
    running = {member_id(member): _subscription(member, scenario) for member in scenario.running}
    if not running:
        return None
    subscribed = {topic for subscription in running.values() for topic in subscription.topics}
    cluster = {name: _info(scenario, name) for name in scenario.topics if name in subscribed}
    return build_problem(Cluster(cluster), GroupSubscription(running))


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
