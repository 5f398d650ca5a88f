"""Against the assignors of Apache Kafka's group coordinator, on new random groups in each run.

``python -m tests.assignors.test_oracle_server COUNT [SEED]`` prints in how many groups the shares are equal.
"""

import sys
from functools import cache
from importlib import import_module
from random import Random, SystemRandom
from unittest.mock import patch

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.java import hash_maps
from coordinator_core.java.hash_maps import FIRST_TABLE, table_for
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.groups import parse_group
from tests.assignors import jvm
from tests.assignors.drawn import chains
from tests.real_kafka.jars import jars, jars_or_skip

COMMON, GROUP = "org.apache.kafka.common", "org.apache.kafka.coordinator.group"
CLASSES = {"range-848": f"{GROUP}.assignor.RangeAssignor", "uniform-848": f"{GROUP}.assignor.UniformAssignor"}
GROUPS = 500
COPIED_TABLE, SMALLER_TABLES = hash_maps.copied_table, 19
LISTING = import_module("assignors.uniform.listing")  # a function has its name, too


@cache
def java(name):
    """Return a class of Java, or of the group coordinator, whose jars are added to those of the clients."""
    import jpype

    jvm.java_class("java.lang.Object")
    for jar in sorted(jars().glob("kafka-*.jar")):
        jpype.addClassPath(str(jar))
    return jpype.JClass(name)


def copied_table(count):
    """The table of a copied set here. That of `hash_maps` is of Java 17, and differs for 12, 24, 48 ..."""
    newer = java("java.lang.Runtime").version().feature() >= SMALLER_TABLES
    return max(FIRST_TABLE, table_for(-(-count * 4 // 3))) if newer else COPIED_TABLE(count)


def proxy(interface, inst):
    """Return an object of Java with the methods of one of Python."""
    import jpype

    java(interface)
    return jpype.JProxy(interface, inst=inst)


class Described:
    """Kafka's view of the topics."""

    def __init__(self, counts):
        self.counts = counts

    def numPartitions(self, topic):  # noqa: N802 - Kafka's name
        return self.counts.get(str(topic), -1)

    def racksForPartition(self, topic, partition):  # noqa: N802 - Kafka's name
        return java("java.util.Set").of()


def kafka_assignment(name, cluster, group):
    """Member -> pairs by Kafka's assignor, which gets its maps filled in the order of the group."""
    kafka_id, integer = java(f"{COMMON}.Uuid"), java("java.lang.Integer")
    hash_map, hash_set, optional = (
        java("java.util.HashMap"),
        java("java.util.HashSet"),
        java("java.util.Optional"),
    )
    ids = {
        topic: kafka_id(*(int.from_bytes(number.bytes[at : at + 8], "big", signed=True) for at in (0, 8)))
        for topic, number in cluster.ids.items()
    }
    topics = {str(number): topic for topic, number in ids.items()}
    members, owners = hash_map(), hash_map()
    for member, subscription in group.items():
        wanted, owned = hash_set(), hash_map()
        for topic in subscription.topics:
            if topic in ids:
                wanted.add(ids[topic])
        for topic, number in subscription.owned:
            owned.computeIfAbsent(ids[topic], lambda _: hash_set()).add(integer(number))
            owners.computeIfAbsent(ids[topic], lambda _: hash_map()).put(integer(number), member)
        described = java(f"{GROUP}.modern.MemberSubscriptionAndAssignmentImpl")
        assigned = java(f"{GROUP}.modern.Assignment")(owned)
        instance = optional.ofNullable(subscription.instance_id)
        members.put(member, described(optional.empty(), instance, wanted, assigned))
    kinds = java(f"{GROUP}.api.assignor.SubscriptionType")
    lists = {frozenset(s.topics).intersection(ids) for s in group.values()}
    kind = kinds.HOMOGENEOUS if len(lists) == 1 else kinds.HETEROGENEOUS
    spec = java(f"{GROUP}.modern.GroupSpecImpl")(members, kind, owners)
    counts = {str(ids[topic]): info.partitions for topic, info in cluster.topics.items()}
    describer = proxy(f"{GROUP}.api.assignor.SubscribedTopicDescriber", inst=Described(counts))
    made = java(CLASSES[name])().assign(spec, describer).members()
    assignment = {member: set() for member in group}
    for entry in made.entrySet():
        for of_topic in entry.getValue().partitions().entrySet():
            topic = topics[str(of_topic.getKey())]
            assignment[str(entry.getKey())] |= {(topic, int(number)) for number in of_topic.getValue()}
    return assignment


def differences(name, count, seed):
    """Yield the document, Kafka's and our shares of the groups in which they differ."""
    assignor = default_registry().assignor(name)

    def assignment_of(document):
        parsed = parse_group(document, "drawn")
        return compute_assignment(assignor, parsed.cluster, parsed.group)

    with (
        patch.object(hash_maps, "copied_table", copied_table),
        patch.object(LISTING, "copied_table", copied_table),
    ):
        for document in chains(Random(seed), count, assignment_of):
            parsed = parse_group(document, "drawn")
            found = {member: set(pairs) for member, pairs in assignment_of(document).items()}
            expected = kafka_assignment(name, parsed.cluster, parsed.group)
            if found != expected:
                yield document, expected, found


@pytest.mark.kafka
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_new_random_groups_get_the_shares_of_kafka(name):
    """PROTOCOL 11.8."""
    jars_or_skip()
    pytest.importorskip("jpype", reason="no package jpype1")
    seed = SystemRandom().randrange(2**32)
    for document, expected, found in differences(name, GROUPS, seed):
        pytest.fail(f"seed {seed}: {document}: Kafka {expected}, here {found}")


def main():
    """Print in how many groups the shares are equal. Arguments: how many, and a seed to do it again."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SystemRandom().randrange(2**32)
    for name in CLASSES:
        differ = sum(1 for _ in differences(name, count, seed))
        said = f"{name}: {count - differ:,} of {count:,} random groups (seed {seed})"
        sys.stdout.write(f"{said} as Apache Kafka {jvm.kafka_version()} assigns them\n")


if __name__ == "__main__":
    main()
