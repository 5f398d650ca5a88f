"""Assignors that are right but for one thing. At the top of a module, so that other processes find them."""

import os
import random
import sys
from contextlib import suppress
from functools import wraps

import numpy as np

from coordinator_core.assigning.combinators import hold_back
from coordinator_core.assigning.memory import Memory
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import GroupAssignment, Partitions, RebalanceProtocol


def deal(cluster, group, able, pick, topics=sorted):
    """Each partition to a member that is able, picked by its number and by what all got so far."""
    given = {member: [] for member in group}
    for topic in topics(cluster.topics):
        members = able(topic)
        for number in range(cluster.partition_count(topic) if members else 0):
            given[pick(members, number, given)].append((topic, number))
    return given


def fewest(members, number, given):
    return min(members, key=lambda member: len(given[member]))


def in_turn(members, number, given):
    return members[number % len(members)]


def first(members, number, given):
    return members[0]


def ranked(group, key):
    """The subscribers of a topic in the order of a key."""
    return lambda topic: sorted(group.subscribers(topic), key=key)


def dealt(cluster, group):
    """Each partition to the subscriber with the fewest so far; nothing wrong with it."""
    return deal(cluster, group, group.subscribers, fewest)


def then_deals(touch):
    """What a function does first, before all is dealt as it should be."""

    @wraps(touch)
    def assign(cluster, group):
        touch(cluster, group)
        return dealt(cluster, group)

    return assign


class Deals:
    def assign(self, cluster, group):
        return dealt(cluster, group)


def pairs(given):
    return [tp for got in given.values() for tp in got]


# --- what comes back


def fails_for_three_members(cluster, group):
    if len(group) == 3:
        raise ValueError("three is a crowd")
    return dealt(cluster, group)


def leaves_the_program(cluster, group):
    sys.exit("enough")


def returns_nothing(cluster, group):
    dealt(cluster, group)


def returns_numbers(cluster, group):
    return {member: [number for _, number in got] for member, got in dealt(cluster, group).items()}


def returns_numbers_as_text(cluster, group):
    return {member: [(topic, str(n)) for topic, n in got] for member, got in dealt(cluster, group).items()}


class ShortOwnerArray:
    def solve(self, problem):
        return GroupAssignment.from_owners(problem.index, problem.members, np.zeros(1, dtype=np.int32))


class StrangeOwnerNumber:
    def solve(self, problem):
        owner = np.full(problem.index.size, len(problem.members), dtype=np.int32)
        return GroupAssignment.from_owners(problem.index, problem.members, owner)


def gives_to_two(cluster, group):
    given = dealt(cluster, group)
    for member, subscription in group.items():
        if "orders" in subscription.topics and cluster.partition_count("orders"):
            given[member] = [tp for tp in given[member] if tp != ("orders", 0)] + [("orders", 0)]
    return given


def lists_twice(cluster, group):
    return {member: got + got[:1] for member, got in dealt(cluster, group).items()}


def gives_to_everybody(cluster, group):
    """What the others get goes to whoever is first, wanted or not."""
    given, first = dealt(cluster, group), min(group, default="")
    return {member: pairs(given) if member == first else [] for member in group}


def gives_to_nobody(cluster, group):
    return {**dealt(cluster, group), "nobody": []}


def counts_from_one(cluster, group):
    return {member: [(topic, n + 1) for topic, n in got] for member, got in dealt(cluster, group).items()}


def drops_the_last(cluster, group):
    last = max(pairs(dealt(cluster, group)), default=None)
    return {member: [tp for tp in got if tp != last] for member, got in dealt(cluster, group).items()}


class Cooperative:
    """Dealt, then held back."""

    name = "right-and-cooperative"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def wanted(self, problem, cluster, group):
        given = GroupAssignment({m: Partitions.of(got) for m, got in dealt(cluster, group).items()})
        return np.array(given.owners(problem.index, problem.members))

    def assign(self, cluster, group):
        problem = build_problem(cluster, group)
        target = self.wanted(problem, cluster, group)
        hold_back(problem, target)
        return GroupAssignment.from_owners(problem.index, problem.members, target)


class HoldsBackWhatIsFree:
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, cluster, group):
        return drops_the_last(cluster, group)


class TakesFromOwner(Deals):
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)


# --- what it depends on


def goes_by_the_order_of_members(cluster, group):
    return deal(cluster, group, lambda topic: [m for m in group if topic in group[m].topics], in_turn)


def goes_by_the_order_of_topics(cluster, group):
    return deal(cluster, group, group.subscribers, fewest, topics=list)


def goes_by_the_order_of_a_set(cluster, group):
    return deal(cluster, group, lambda topic: list({m for m in group if topic in group[m].topics}), in_turn)


def turned(given, by):
    """What each has to the next: only where all subscribe alike is it sure to be theirs."""
    members = sorted(given)
    return {member: given[members[(at + by) % len(members)]] for at, member in enumerate(members)}


def all_alike(group):
    return len({frozenset(subscription.topics) for subscription in group.values()}) == 1


class CountsItsObjects:
    made = 0

    def __init__(self):
        type(self).made += 1
        self.number = self.made

    def assign(self, cluster, group):
        given = dealt(cluster, group)
        return turned(given, self.number) if all_alike(group) else given


class CountsItsCalls:
    def __init__(self):
        self.calls = 0

    def assign(self, cluster, group):
        self.calls += 1
        given = dealt(cluster, group)
        return turned(given, self.calls) if all_alike(group) else given


class KeepsTheFirstMember:
    """Once seen, always first."""

    def __init__(self):
        self.first = []

    def assign(self, cluster, group):
        self.first = self.first or group.sorted_members()[-1:]
        return deal(cluster, group, ranked(group, lambda member: member not in self.first), in_turn)


def empties_the_cluster(cluster, group):
    given = dealt(cluster, group)
    cluster.topics.clear()
    return given


@then_deals
def writes_into_what_is_owned(cluster, group):
    for subscription in group.values():
        for numbers in subscription.owned.by_topic().values():
            numbers += 1


# --- what it touches


def touches(touch):
    """Deals after a call without arguments."""
    return then_deals(lambda cluster, group: touch())


def bears_a_refusal():
    with suppress(Exception):
        random.random()


@then_deals
def throws_dice_from_a_seed(cluster, group):
    """Nothing wrong with that."""
    np.random.default_rng(7).integers(3)
    random.Random(7).random()


# --- what it did not think of


@then_deals
def needs_a_member(cluster, group):
    min(group)


@then_deals
def needs_a_partition(cluster, group):
    sum(1 for _ in group) / sum(info.partitions for info in cluster.topics.values())


@then_deals
def needs_every_topic(cluster, group):
    for subscription in group.values():
        for topic in subscription.topics:
            cluster.topics[topic]


@then_deals
def needs_a_partition_each(cluster, group):
    partitions = sum(info.partitions for info in cluster.topics.values())
    assert partitions >= len(group) or not partitions


@then_deals
def needs_a_topic_each(cluster, group):
    for subscription in group.values():
        subscription.topics[0]


@then_deals
def needs_a_subscriber_each(cluster, group):
    for topic in cluster.topics:
        if group:
            min(group.subscribers(topic))


@then_deals
def needs_ascii(cluster, group):
    for member in group:
        member.encode("ascii")


@then_deals
def needs_its_own_user_data(cluster, group):
    for subscription in group.values():
        (subscription.user_data or b"").decode("utf-8")


# --- what only groups with faults show


@then_deals
def takes_members_for_processes(cluster, group):
    """Fails if a process has come back while its last member is still there."""
    names = [member.rsplit("-", 5)[0] for member in sorted(group)]
    if len({*names}) < len(names):
        raise ValueError(f"somebody is there twice: {', '.join(names)}")


# --- what it does over time


def forgets_after_generation_three(cluster, group):
    if any(subscription.generation > 3 for subscription in group.values()):
        return drops_the_last(cluster, group)
    return dealt(cluster, group)


class WantsNoAssignment(Deals):
    def on_assignment(self, partitions, generation):
        raise RuntimeError("not now")


class HasNoUserData(Deals):
    def subscription_user_data(self, topics):
        raise RuntimeError("not here")


class NeverLetsGo(Cooperative):
    """Whatever somebody has, and somebody else could have, is held back again and again."""

    def assign(self, cluster, group):
        given = super().assign(cluster, group)
        owned = {tp for subscription in group.values() for tp in subscription.owned}
        kept = {tp for tp in owned if len(group.subscribers(tp.topic)) == 1}
        return {member: [tp for tp in got if tp not in owned - kept] for member, got in given.items()}


class MovesEveryRound(Cooperative):
    """Where all can take it, the first partition goes round."""

    def wanted(self, problem, cluster, group):
        target = super().wanted(problem, cluster, group)
        newest = max((s.generation for s in group.values()), default=0)
        topic = problem.index.topics[0] if problem.index.topics else ""
        able = [m for m, name in enumerate(problem.members) if topic in group[name].topics]
        if able and problem.index.size:
            target[0] = able[newest // 2 % len(able)]
        return target


class NotSticky(Memory):
    """Who owned something is dealt to last."""

    capabilities = ("sticky",)

    def assign(self, cluster, group):
        return deal(cluster, group, ranked(group, lambda member: len(group[member].owned)), first)


class DealsAnew(Deals):
    """The same again where nothing changes, and everything anew where something does."""

    capabilities = ("sticky",)


class KeepsWhatIsListed:
    """Keeps the owners that subscriptions list, of which an eager member's has none."""

    capabilities = ("sticky",)

    def assign(self, cluster, group):
        given = {member: [] for member in group}
        free = []
        for topic in sorted(cluster.topics):
            able = group.subscribers(topic)
            for tp in ((topic, n) for n in range(cluster.partition_count(topic) if able else 0)):
                before = [member for member in able if tp in group[member].owned]
                if before:
                    given[max(before, key=lambda member: group[member].generation)].append(tp)
                else:
                    free.append((able, tp))
        for able, tp in free:
            given[min(able, key=lambda member: len(given[member]))].append(tp)
        return given


class KeepsWhatIsRemembered(Memory):
    """The same, which nothing is wrong with if the claims come from the user data."""

    capabilities = ("sticky",)

    def assign(self, cluster, group):
        return KeepsWhatIsListed().assign(cluster, group)


class Unbalanced:
    capabilities = ("balanced",)

    def assign(self, cluster, group):
        return deal(cluster, group, group.subscribers, first)


class TwoMore(Unbalanced):
    """Where all have the same number, the first member takes one of the last."""

    def assign(self, cluster, group):
        given = dealt(cluster, group)
        members = sorted(given)
        alike = len({len(got) for got in given.values()}) == 1 < len(members)
        if alike and given[members[-1]] and len({s.topics for s in group.values()}) == 1:
            given[members[0]].append(given[members[-1]].pop())
        return given


class BelievesOldClaims(Cooperative):
    """Of members that claim one partition in different generations, all keep it."""

    def assign(self, cluster, group):
        given = {member: list(got) for member, got in super().assign(cluster, group).items()}
        claims = {}
        for member, subscription in group.items():
            for tp in [tp for tp in subscription.owned if tp[0] in subscription.topics]:
                claims.setdefault(tp, []).append(member)
        for tp, members in claims.items():
            if len({group[member].generation for member in members}) > 1:
                for member in members:
                    given[member] += [] if tp in given[member] else [tp]
        return given


class Slow:
    """Dealt at once, but the clock says that it took so many steps of a millisecond."""

    now = 0.0

    def __init__(self, name, steps):
        self.name, self.steps = name, steps

    def assign(self, cluster, group):
        partitions = sum(info.partitions for info in cluster.topics.values())
        type(self).now += self.steps(partitions, len(group)) / 1_000
        return dealt(cluster, group)


# --- what ends or holds up the process it runs in


class HangsForThree:
    def assign(self, cluster, group):
        while len(group) == 3:
            pass
        return dealt(cluster, group)


class EndsTheProcess:
    def assign(self, cluster, group):
        os._exit(3)


class Talks:
    def assign(self, cluster, group):
        sys.stdout.write(f"assigning {len(group)}\n")
        return dealt(cluster, group)
