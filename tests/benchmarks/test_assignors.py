"""The CPU time of assigning: fresh, after a join and after a leave.

*objects* goes from subscriptions that a program has built of its own documents, in which every member has
lists and names of its own, to the assignment of each member as a list of partitions. *unread* is the same
without the lists.
*assign* goes from the decoded subscriptions of the members, as a leader has them, to the bytes of the
assignment of each member. *leader* goes from the bytes of the subscriptions to the bytes of the assignments.
Every round gets a cluster and an assignor of its own. *unchanged* is *leader* in the round after one with
the same members and assignments. Run with
``python -m pytest tests/benchmarks --benchmark-only --benchmark-json=results.json``, then
``python -m tests.benchmarks.table results.json``.
"""

import json
import time
import warnings
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.user_data import encode_generation, encode_ownership
from coordinator_core.client.classic.leading import decode_members, lead
from coordinator_core.model import GroupSubscription, Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    encode_assignments,
    encode_subscription,
)
from coordinator_core.protocol.group_codec import GroupCodec
from coordinator_core.protocol.messages import JoinGroupMember
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from tests.benchmarks.workloads import SIZES, after, cluster, fresh
from tests.places import SCENARIOS

ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
CHANGES = ["fresh", "join", "leave"]
FIRST_THREE = list(SIZES)[:3]
CASES = [(size, "equal") for size in SIZES]
CASES += [(size, shape) for shape in ("disjoint", "half") for size in FIRST_THREE]

OBJECT_CASES = [(size, "equal") for size in FIRST_THREE] + [("1kx10k", "disjoint"), ("1kx10k", "half")]

CPU_TIME = pytest.mark.benchmark(timer=time.process_time)

ROLLING_DEPLOY = SCENARIOS / "rolling-deploy.yaml"

KAFKA_PYTHON = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}
KAFKA_PYTHON_CASES = [(name, size) for name in ("range", "roundrobin") for size in FIRST_THREE[:2]]
KAFKA_PYTHON_CASES += [("sticky", "100x1k")]


@cache
def settled(assignor, size, shape):
    """What a fresh group gets, by the assignor itself."""
    return compute_assignment(default_registry().assignor(assignor), cluster(size), fresh(size, shape))


def group_of(assignor, change, size, shape):
    """Return the group as the benchmark makes it."""
    if change == "fresh":
        return fresh(size, shape)
    return after(settled(assignor, size, shape), size, shape, change)


def joining(assignor, members):
    """Return the members as JoinGroup hands them to the leader."""
    requests = []
    for m, s in members.items():
        if assignor == "sticky":
            sent = Subscription(s.topics, user_data=encode_ownership(s.owned, s.generation))
        elif assignor == "cooperative-sticky":
            sent = Subscription(s.topics, s.owned, s.generation, user_data=encode_generation(s.generation))
        else:
            sent = Subscription(s.topics)
        requests.append(JoinGroupMember(m, None, encode_subscription(sent)))
    return requests


def measure(benchmark, function, arguments, *, who, job, change, size, shape):
    """Measure rounds in which nothing is left from the round before: each gets arguments of its own."""
    benchmark.group = f"{size} {shape}"
    benchmark.extra_info.update(who=who, job=job, change=change, size=size, shape=shape)
    rounds = 15 if size in FIRST_THREE else 7
    return benchmark.pedantic(function, setup=lambda: (arguments(), {}), rounds=rounds, warmup_rounds=1)


def check(encoded, assignor, change, size):
    """Check that the assignments have all partitions, unless a cooperative assignor holds some back."""
    check_count(sum(len(decode_assignment(data)[0]) for data in encoded), assignor, change, size)


def check_count(given, assignor, change, size):
    """Check the number of assigned partitions."""
    assert given <= SIZES[size][1]
    assert given == SIZES[size][1] or (assignor, change) == ("cooperative-sticky", "join")


def as_documents(members):
    """Return members as JSON: topics, owned pairs and generation."""
    described = {m: {"topics": s.topics, "owned": [*s.owned], "at": s.generation} for m, s in members.items()}
    return json.dumps(described)


def built(documents):
    """Return the group that a program builds of such documents in a loop."""
    members = {}
    for member, described in json.loads(documents).items():
        owned = Partitions.of((topic, number) for topic, number in described["owned"])
        members[member] = Subscription(tuple(described["topics"]), owned, described["at"])
    return GroupSubscription(members)


@CPU_TIME
@pytest.mark.parametrize(
    ("job", "assignor", "change", "size", "shape"),
    [
        pytest.param(job, assignor, change, size, shape, id=f"{job}-{assignor}-{change}-{size}-{shape}")
        for size, shape in OBJECT_CASES
        for job in ("objects", "unread")
        for assignor in ASSIGNORS
        for change in CHANGES
    ],
)
def test_assigning_objects(benchmark, job, assignor, change, size, shape):
    """C-70: with nothing shared by members, and the whole result read."""
    documents = as_documents(group_of(assignor, change, size, shape))

    def run(made, topics, members):
        assignment = compute_assignment(made, topics, members)
        return assignment.lists() if job == "objects" else assignment

    given = measure(
        benchmark,
        run,
        lambda: (default_registry().assignor(assignor), cluster(size), built(documents)),
        who=assignor,
        job=job,
        change=change,
        size=size,
        shape=shape,
    )
    check_count(sum(map(len, given.values())), assignor, change, size)


@CPU_TIME
@pytest.mark.parametrize(
    ("assignor", "change", "size", "shape"),
    [
        pytest.param(assignor, change, size, shape, id=f"{assignor}-{change}-{size}-{shape}")
        for size, shape in CASES
        for assignor in ASSIGNORS
        for change in CHANGES
    ],
)
def test_assigning(benchmark, assignor, change, size, shape):
    """C-70."""
    members = GroupSubscription(decode_members(joining(assignor, group_of(assignor, change, size, shape))))

    def run(made, topics):
        return encode_assignments(compute_assignment(made, topics, members), members)

    encoded = measure(
        benchmark,
        run,
        lambda: (default_registry().assignor(assignor), cluster(size)),
        who=assignor,
        job="assign",
        change=change,
        size=size,
        shape=shape,
    )
    check(encoded, assignor, change, size)


@CPU_TIME
@pytest.mark.parametrize(
    ("assignor", "change", "size"),
    [
        pytest.param(assignor, change, size, id=f"leader-{assignor}-{change}-{size}")
        for size in FIRST_THREE
        for assignor in ASSIGNORS
        for change in CHANGES
    ],
)
def test_leading(benchmark, assignor, change, size):
    """C-70: from encoded subscriptions to encoded assignments."""
    requests = joining(assignor, group_of(assignor, change, size, "equal"))

    def run(made, topics):
        return lead(made, topics, decode_members(requests))

    led = measure(
        benchmark,
        run,
        lambda: (default_registry().assignor(assignor), cluster(size)),
        who=assignor,
        job="leader",
        change=change,
        size=size,
        shape="equal",
    )
    check([entry.assignment for entry in led.assignments], assignor, change, size)


@CPU_TIME
@pytest.mark.parametrize(
    ("assignor", "change", "size"),
    [
        pytest.param(assignor, change, size, id=f"unchanged-{assignor}-{change}-{size}")
        for size in FIRST_THREE
        for assignor in ASSIGNORS
        for change in CHANGES[1:]
    ],
)
def test_leading_again(benchmark, assignor, change, size):
    """C-70: in the round before, the members without the change sent the same but for the generation."""
    before = after(settled(assignor, size, "equal"), size, "equal", "none", generation=0)
    requests = joining(assignor, before), joining(assignor, group_of(assignor, change, size, "equal"))

    def led_before():
        made, topics, codec = default_registry().assignor(assignor), cluster(size), GroupCodec()
        lead(made, topics, decode_members(requests[0], codec), codec)
        return made, topics, codec

    def run(made, topics, codec):
        return lead(made, topics, decode_members(requests[1], codec), codec)

    led = measure(
        benchmark, run, led_before, who=assignor, job="unchanged", change=change, size=size, shape="equal"
    )
    check([entry.assignment for entry in led.assignments], assignor, change, size)


@cache
def kafka_python(assignor):
    """Its class; it is loaded late, because it warns of its own imports."""
    module, name = KAFKA_PYTHON[assignor]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(import_module(f"kafka.coordinator.assignors.{module}"), name)


def as_kafka_python(assignor, members, topics):
    """The same group and cluster in the shapes of that package."""
    metadata = SimpleNamespace(
        topics=lambda: set(topics),
        partitions_for_topic=lambda t: set(range(topics[t].partitions)) if t in topics else None,
    )
    joined = []
    for m, s in members.items():
        said = SimpleNamespace(topics=list(s.topics), user_data=b"")
        if assignor == "sticky" and s.generation >= 0:
            said = kafka_python(assignor)._metadata(list(s.topics), list(s.owned), s.generation)
        joined.append(SimpleNamespace(member_id=m, group_instance_id=None, metadata=said))
    return metadata, joined


@CPU_TIME
@pytest.mark.parametrize(
    ("assignor", "change", "size"),
    [
        pytest.param(assignor, change, size, id=f"kafka-python-{assignor}-{change}-{size}-equal")
        for assignor, size in KAFKA_PYTHON_CASES
        for change in CHANGES
    ],
)
def test_kafka_python_beside_it(benchmark, assignor, change, size):
    """The same groups, by the assignors that Python programs use today."""
    members = group_of(assignor, change, size, "equal")
    made = kafka_python(assignor)
    given = measure(
        benchmark,
        lambda topics, joined: made().assign(topics, joined),
        lambda: as_kafka_python(assignor, members, cluster(size).topics),
        who=assignor,
        job="kafka-python",
        change=change,
        size=size,
        shape="equal",
    )
    assert set(given) == set(members)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_simulating(benchmark, strategy):
    """Protocol messages a second, of forty members deployed one after another."""
    registry, scenario = default_registry(), load_scenario(ROLLING_DEPLOY)
    benchmark.group = "simulator"
    trace = benchmark.pedantic(simulate, (scenario, strategy, registry), rounds=3, warmup_rounds=1)
    benchmark.extra_info.update(who=f"simulator, {strategy}", messages=sum(trace.ended.messages.values()))
    assert trace.ended.messages
