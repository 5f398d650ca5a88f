"""The algorithms of Apache Kafka 4.4's StickyAssignor and CooperativeStickyAssignor, quirks included.

Members with equal subscriptions are assigned by quotas (`alike`), other groups by a search for balance that
ends where no single partition improves it (`apart`). Results are those of Kafka partition by partition, the
order of hash maps over member ids included (`group`).
"""

from assignors.kafka_sticky.alike import assign_alike
from assignors.kafka_sticky.answer import Answer
from assignors.kafka_sticky.apart import assign_apart
from assignors.kafka_sticky.group import Group
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupSubscription

__all__ = ["Answer", "kafka_sticky"]


def kafka_sticky(problem: Problem, sent: GroupSubscription | None = None) -> Answer:
    """Return Kafka's assignment of a problem that has at least one member.

    ``sent``: the group as its members sent it, if the claims of the problem are from user data.
    """
    group = Group(problem, sent)
    return assign_alike(group) if group.subscribes_alike else assign_apart(group)
