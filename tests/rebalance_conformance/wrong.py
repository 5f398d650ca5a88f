"""Assignors that are right but for one thing. At the top of a module, so that other processes find them."""

import os
import random
import socket
import subprocess
import sys
import time
from time import monotonic

import numpy as np

from coordinator_core.assigning.combinators import hold_back
from coordinator_core.assigning.memory import Memory
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import GroupAssignment, Partitions, RebalanceProtocol


def dealt(cluster, group):
    """Each partition to the subscriber with the fewest so far; nothing wrong with it."""
    given = {member: [] for member in group}
    for topic in sorted(cluster.topics):
        able = group.subscribers(topic)
        for number in range(cluster.partition_count(topic) if able else 0):
            given[min(able, key=lambda member: len(given[member]))].append((topic, number))
    return given


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
    name = "short-owner-array"

    def solve(self, problem):
        return GroupAssignment.from_owners(problem.index, problem.members, np.zeros(1, dtype=np.int32))


class StrangeOwnerNumber:
    name = "strange-owner-number"

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
    name = "holds-back-what-is-free"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, cluster, group):
        return drops_the_last(cluster, group)


class TakesFromOwner:
    name = "takes-from-owner"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, cluster, group):
        return dealt(cluster, group)


# --- what it depends on


def goes_by_the_order_of_members(cluster, group):
    given = {member: [] for member in group}
    for topic in sorted(cluster.topics):
        able = [member for member in group if topic in group[member].topics]
        for number in range(cluster.partition_count(topic) if able else 0):
            given[able[number % len(able)]].append((topic, number))
    return given


def goes_by_the_order_of_topics(cluster, group):
    given = {member: [] for member in group}
    for topic in cluster.topics:
        able = group.subscribers(topic)
        for number in range(cluster.partition_count(topic) if able else 0):
            given[min(able, key=lambda member: len(given[member]))].append((topic, number))
    return given


def goes_by_the_order_of_a_set(cluster, group):
    given = {member: [] for member in group}
    for topic in sorted(cluster.topics):
        able = list({member for member in group if topic in group[member].topics})
        for number in range(cluster.partition_count(topic) if able else 0):
            given[able[number % len(able)]].append((topic, number))
    return given


def turned(given, by):
    """What each has to the next: only where all subscribe alike is it sure to be theirs."""
    members = sorted(given)
    return {member: given[members[(at + by) % len(members)]] for at, member in enumerate(members)}


def all_alike(group):
    return len({frozenset(subscription.topics) for subscription in group.values()}) == 1


class CountsItsObjects:
    name = "counts-its-objects"
    made = 0

    def __init__(self):
        type(self).made += 1
        self.number = self.made

    def assign(self, cluster, group):
        given = dealt(cluster, group)
        return turned(given, self.number) if all_alike(group) else given


class CountsItsCalls:
    name = "counts-its-calls"

    def __init__(self):
        self.calls = 0

    def assign(self, cluster, group):
        self.calls += 1
        given = dealt(cluster, group)
        return turned(given, self.calls) if all_alike(group) else given


class KeepsTheFirstMember:
    """Once seen, always first."""

    name = "keeps-the-first-member"

    def __init__(self):
        self.first = []

    def assign(self, cluster, group):
        self.first = self.first or group.sorted_members()[-1:]
        given = {member: [] for member in group}
        for topic in sorted(cluster.topics):
            able = sorted(group.subscribers(topic), key=lambda member: member not in self.first)
            for number in range(cluster.partition_count(topic) if able else 0):
                given[able[number % len(able)]].append((topic, number))
        return given


def empties_the_cluster(cluster, group):
    given = dealt(cluster, group)
    cluster.topics.clear()
    return given


def writes_into_what_is_owned(cluster, group):
    for subscription in group.values():
        for numbers in subscription.owned.by_topic().values():
            numbers += 1
    return dealt(cluster, group)


# --- what it touches


def looks_at_the_clock(cluster, group):
    time.time()
    return dealt(cluster, group)


def imported_the_clock(cluster, group):
    monotonic()
    return dealt(cluster, group)


def sleeps(cluster, group):
    time.sleep(0)
    return dealt(cluster, group)


def throws_dice(cluster, group):
    random.choice([1, 2])
    return dealt(cluster, group)


def throws_dice_of_numpy(cluster, group):
    np.random.default_rng().integers(3)
    return dealt(cluster, group)


def asks_the_system_for_chance(cluster, group):
    os.urandom(1)
    return dealt(cluster, group)


def opens_a_file(cluster, group):
    with open(os.devnull):
        return dealt(cluster, group)


def opens_a_socket(cluster, group):
    with socket.socket():
        return dealt(cluster, group)


def starts_a_process(cluster, group):
    subprocess.run([sys.executable, "-c", ""], check=True)
    return dealt(cluster, group)


def bears_a_refusal(cluster, group):
    try:
        random.random()
    except Exception:
        return dealt(cluster, group)
    return dealt(cluster, group)


def throws_dice_from_a_seed(cluster, group):
    """Nothing wrong with that."""
    np.random.default_rng(7).integers(3)
    random.Random(7).random()
    return dealt(cluster, group)


# --- what it did not think of


def needs_a_member(cluster, group):
    min(group)
    return dealt(cluster, group)


def needs_a_partition(cluster, group):
    sum(1 for _ in group) / sum(info.partitions for info in cluster.topics.values())
    return dealt(cluster, group)


def needs_every_topic(cluster, group):
    for subscription in group.values():
        for topic in subscription.topics:
            cluster.topics[topic]
    return dealt(cluster, group)


def needs_a_partition_each(cluster, group):
    partitions = sum(info.partitions for info in cluster.topics.values())
    assert partitions >= len(group) or not partitions
    return dealt(cluster, group)


def needs_a_topic_each(cluster, group):
    for subscription in group.values():
        subscription.topics[0]
    return dealt(cluster, group)


def needs_a_subscriber_each(cluster, group):
    for topic in cluster.topics:
        if group:
            min(group.subscribers(topic))
    return dealt(cluster, group)


def needs_ascii(cluster, group):
    for member in group:
        member.encode("ascii")
    return dealt(cluster, group)


def needs_its_own_user_data(cluster, group):
    for subscription in group.values():
        (subscription.user_data or b"").decode("utf-8")
    return dealt(cluster, group)


# --- what it does over time


def forgets_after_generation_three(cluster, group):
    if any(subscription.generation > 3 for subscription in group.values()):
        return drops_the_last(cluster, group)
    return dealt(cluster, group)


class WantsNoAssignment:
    name = "wants-no-assignment"

    def assign(self, cluster, group):
        return dealt(cluster, group)

    def on_assignment(self, partitions, generation):
        raise RuntimeError("not now")


class HasNoUserData:
    name = "has-no-user-data"

    def assign(self, cluster, group):
        return dealt(cluster, group)

    def subscription_user_data(self, topics):
        raise RuntimeError("not here")


class NeverLetsGo(Cooperative):
    """Whatever somebody has, and somebody else could have, is held back again and again."""

    name = "never-lets-go"

    def assign(self, cluster, group):
        given = super().assign(cluster, group)
        owned = {tp for subscription in group.values() for tp in subscription.owned}
        kept = {tp for tp in owned if len(group.subscribers(tp.topic)) == 1}
        return {member: [tp for tp in got if tp not in owned - kept] for member, got in given.items()}


class MovesEveryRound(Cooperative):
    """Where all can take it, the first partition goes round."""

    name = "moves-every-round"

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

    name = "not-sticky"
    capabilities = ("sticky",)

    def assign(self, cluster, group):
        given = {member: [] for member in group}
        for topic in sorted(cluster.topics):
            able = sorted(group.subscribers(topic), key=lambda member: len(group[member].owned))
            for number in range(cluster.partition_count(topic) if able else 0):
                given[able[0]].append((topic, number))
        return given


class DealsAnew:
    """The same again where nothing changes, and everything anew where something does."""

    name = "deals-anew"
    capabilities = ("sticky",)

    def assign(self, cluster, group):
        return dealt(cluster, group)


class KeepsWhatIsListed:
    """Keeps the owners that subscriptions list, of which an eager member's has none."""

    name = "keeps-what-is-listed"
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

    name = "keeps-what-is-remembered"
    capabilities = ("sticky",)

    def assign(self, cluster, group):
        return KeepsWhatIsListed().assign(cluster, group)


class Unbalanced:
    name = "unbalanced"
    capabilities = ("balanced",)

    def assign(self, cluster, group):
        given = {member: [] for member in group}
        for topic in sorted(cluster.topics):
            for member in group.subscribers(topic)[:1]:
                given[member] += [(topic, number) for number in range(cluster.partition_count(topic))]
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
    name = "hangs-for-three"

    def assign(self, cluster, group):
        while len(group) == 3:
            pass
        return dealt(cluster, group)


class EndsTheProcess:
    name = "ends-the-process"

    def assign(self, cluster, group):
        os._exit(3)


class Talks:
    name = "talks"

    def assign(self, cluster, group):
        sys.stdout.write(f"assigning {len(group)}\n")
        return dealt(cluster, group)
