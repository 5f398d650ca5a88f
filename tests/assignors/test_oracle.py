"""Against Apache Kafka's own classes, on new random groups in each run.

``python -m tests.assignors.test_oracle COUNT [SEED]`` prints in how many groups the assignments are equal.
"""

import sys
from random import Random, SystemRandom

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.errors import AssignmentError
from coordinator_core.registry.registry import default_registry
from tests.assignors import jvm
from tests.assignors.random_groups import chains
from tests.real_kafka.jars import jars_or_skip

CLIENT_SIDE = ["range", "roundrobin", "sticky", "cooperative-sticky"]
GROUPS = 500


def ours(name, cluster, group):
    """Return the lists of the members, or the error."""
    try:
        return compute_assignment(default_registry().assignor(name), cluster, group).lists()
    except AssignmentError as error:
        return str(error)


def differences(name, count, seed):
    """Yield cluster, group, Kafka's and our assignment where they differ."""
    theirs = {}

    def assigned(cluster, group):
        if id(group) not in theirs:
            theirs.clear()
            theirs[id(group)] = jvm.kafka_assignment(name, cluster, group)
        return theirs[id(group)]

    for cluster, group in chains(Random(seed), name, count, assigned):
        expected, found = assigned(cluster, group), ours(name, cluster, group)
        if isinstance(expected, str):
            if not (isinstance(found, str) and expected.rpartition(".")[-1] in found):
                yield cluster, group, expected, found
        elif found != {member: expected[member] for member in group}:
            yield cluster, group, expected, found


@pytest.mark.kafka
@pytest.mark.parametrize("name", CLIENT_SIDE)
def test_new_random_groups_are_assigned_as_by_kafka(name):
    """PROTOCOL 10.5, the order of lists included."""
    jars_or_skip()
    pytest.importorskip("jpype", reason="no package jpype1")
    seed = SystemRandom().randrange(2**32)
    for cluster, group, expected, found in differences(name, GROUPS, seed):
        described = {m: (s.topics, list(s.owned), s) for m, s in group.items()}
        pytest.fail(f"seed {seed}: {cluster.topics}, {described}: Kafka {expected}, here {found}")


def main():
    """Print in how many groups the assignments are equal. Arguments: how many, and a seed to do it again."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SystemRandom().randrange(2**32)
    for name in CLIENT_SIDE:
        differ = sum(1 for _ in differences(name, count, seed))
        said = f"{name}: {count - differ:,} of {count:,} random groups (seed {seed})"
        sys.stdout.write(f"{said} as Apache Kafka {jvm.kafka_version()} assigns them\n")


if __name__ == "__main__":
    main()
