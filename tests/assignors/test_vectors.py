"""Against what Apache Kafka's own assignors returned for the same groups."""

from functools import cache

import numpy as np
import pytest

from coordinator_core.assigning.computing import compute_assignment, unassigned
from coordinator_core.model import NO_OWNER
from coordinator_core.registry.registry import default_registry
from tests.assignors.vectors import ALL, KEPT, Judge, expected, vectors

AT_HAND = pytest.mark.skipif(not ALL.is_dir(), reason="only the sample of the vectors is here")
SOURCES = [
    pytest.param(KEPT, id="sample"),
    pytest.param(ALL, id="all", marks=[pytest.mark.slow, AT_HAND]),
]


@cache
def judges(recorded, source):
    return [Judge(document) for document in vectors(recorded, source)]


@cache
def answers(name, recorded, source):
    """Return the assignments by one of our assignors of the groups that Kafka's was recorded with."""
    assignor = default_registry().assignor(name)
    return [compute_assignment(assignor, j.parsed.cluster, j.parsed.group) for j in judges(recorded, source)]


@pytest.fixture(params=SOURCES)
def source(request):
    """The folder of the recorded lines."""
    return request.param


@pytest.fixture
def lines(source):
    """Return number, document, judge and our assignment of each line."""

    def listed(name, recorded):
        documents = vectors(recorded, source)
        ours = answers(name, recorded, source)
        return zip(range(len(documents)), documents, judges(recorded, source), ours, strict=True)

    return listed


@pytest.mark.parametrize("name", ["range", "roundrobin", "cooperative-sticky"])
def test_range_roundrobin_and_cooperative_sticky_equal_kafka_in_every_line_and_its_order(name, lines):
    """PROTOCOL 10.1, 10.2 and 10.5."""
    for number, document, _, assignment in lines(name, name):
        ours = {member: list(partitions) for member, partitions in assignment.items()}
        assert ours == expected(document), f"line {number} ({document['kind']})"


@pytest.mark.parametrize(
    ("name", "recorded"), [("range-848", "range-848"), ("uniform-848", "uniform-848-4.4")]
)
def test_assignors_of_coordinators_give_each_member_the_partitions_of_kafka(name, recorded, lines):
    """PROTOCOL 11.8. The ids of topics are those that a document without ids has.

    Where nobody subscribes to a topic that exists, Kafka's uniform lists no member, ours each with nothing.
    """
    for number, document, judge, assignment in lines(name, recorded):
        nothing = {member: set() for member in judge.problem.members}
        ours = {member: set(partitions) for member, partitions in assignment.items()}
        theirs = nothing | {member: set(pairs) for member, pairs in expected(document).items()}
        assert ours == theirs, f"line {number} ({document['kind']})"


def test_sticky_gives_each_member_the_partitions_of_kafka(lines):
    """PROTOCOL 10.5: in another order than Kafka's members had the topics in their user data."""
    for number, document, _, assignment in lines("sticky", "sticky"):
        ours = {member: set(partitions) for member, partitions in assignment.items()}
        theirs = {member: set(pairs) for member, pairs in expected(document).items()}
        assert ours == theirs, f"line {number} ({document['kind']})"


@pytest.mark.parametrize("name", ["sticky-balanced", "sticky-balanced+cooperative"])
def test_the_balanced_ones_are_valid_and_whole_in_every_line(name, lines):
    """PROTOCOL 10.3, C-60."""
    for number, _, judge, assignment in lines(name, "cooperative-sticky"):
        assert judge.invalid(assignment) is None, number
        held_back = unassigned(judge.parsed.cluster, judge.parsed.group, assignment)
        claimed = set(judge.problem.index.partitions(judge.problem.claim_partition))
        assert set(held_back) <= (claimed if name.endswith("+cooperative") else set()), number


@pytest.mark.parametrize("recorded", ["sticky", "cooperative-sticky"])
def test_sticky_balanced_is_never_worse_than_kafkas_sticky_ones(recorded, lines, source):
    """PROTOCOL 10.3: sum of squares, then owners across racks, then moves.

    Kafka's cooperative answer holds back what moves, and counts here by at least what it keeps.
    """
    compared = 0
    for number, document, judge, assignment in lines("sticky-balanced", recorded):
        theirs = expected(document)
        if judge.invalid(theirs) is not None:
            continue
        if (judge.owners(theirs)[judge.problem.subscribed] == NO_OWNER).any():
            continue
        assert judge.cost(assignment) <= judge.cost(theirs), f"line {number} ({document['kind']})"
        compared += 1
    assert compared > len(vectors(recorded, source)) // 3


def test_the_cooperative_one_hands_out_nothing_that_another_member_claims(lines):
    """C-64: only an owner whose claim counts may keep a partition that others claim too."""
    for number, _, judge, assignment in lines("sticky-balanced+cooperative", "cooperative-sticky"):
        problem, owner = judge.problem, judge.owners(assignment)
        for partition, claimant in zip(
            problem.claim_partition.tolist(), problem.claim_member.tolist(), strict=True
        ):
            assert owner[partition] in (NO_OWNER, claimant, problem.owner[partition]), number


def test_the_cooperative_one_is_the_eager_one_less_what_moves(lines, source):
    """PROTOCOL 10.3: whoever kept a partition keeps it, and nobody waits for one that is free."""
    final = answers("sticky-balanced", "cooperative-sticky", source)
    cooperative_lines = lines("sticky-balanced+cooperative", "cooperative-sticky")
    for number, _, judge, cooperative in cooperative_lines:
        target, first = judge.owners(final[number]), judge.owners(cooperative)
        claimed = np.isin(np.arange(judge.problem.index.size), judge.problem.claim_partition)
        assert (first[~claimed] == target[~claimed]).all()
        given = first != NO_OWNER
        assert (first[given] == target[given]).all()
