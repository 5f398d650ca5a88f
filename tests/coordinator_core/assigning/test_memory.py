"""What an eager member remembers, and how a group is read with what its members say."""

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.memory import Memory, recalled
from coordinator_core.assigning.problem import build_problem
from coordinator_core.assigning.user_data import decode_ownership, encode_generation, encode_ownership
from coordinator_core.model import Cluster
from tests.assignors.groups import group, member, partitions


def sent(memory):
    return memory.subscription_user_data(("t",))


def as_owners(members):
    """The group as a solver sees it."""
    return recalled(build_problem(Cluster({"t": 3}), members)).group


def test_a_new_member_remembers_nothing():
    assert decode_ownership(sent(Memory())) == (partitions(""), -1)


def test_the_last_assignment_is_what_is_remembered():
    memory, other = Memory(), Memory()
    memory.on_assignment(partitions("t:1,2 u:0"), 3)
    memory.on_assignment(partitions("t:2"), 4)
    assert decode_ownership(sent(memory)) == (partitions("t:2"), 4)
    assert sent(memory) == encode_ownership(partitions("t:2"), 4)
    assert decode_ownership(sent(other)) == (partitions(""), -1)


def test_the_owners_of_a_problem_are_those_that_members_recall():
    members = group(a=member("t", "t:0", 9, user_data=encode_ownership(partitions("t:1"), 6)), b=member("t"))
    problem = build_problem(Cluster({"t": 3}), members)
    assert problem.owner.tolist() == [0, -1, -1]
    assert recalled(problem).owner.tolist() == [-1, 0, -1]
    silent = build_problem(Cluster({"t": 3}), group(a=member("t", "t:0", 9)))
    assert recalled(silent) is silent


class Keeps(Memory):
    """Each partition to its claimant, or else to the first member."""

    def assign(self, cluster, group):
        owner = {tp: member for member in group for tp in group[member].owned}
        given = {member: [] for member in group}
        for number in range(cluster.partition_count("t")):
            given[owner.get(("t", number), group.sorted_members()[0])].append(("t", number))
        return given


def test_an_assignor_over_mappings_gets_the_claims_of_the_user_data():
    cluster = Cluster({"t": 3})
    silent = group(a=member("t"), b=member("t", "t:2", 6))
    assert dict(compute_assignment(Keeps, cluster, silent)) == {
        "a": partitions("t:0,1"),
        "b": partitions("t:2"),
    }
    said = encode_ownership(partitions("t:1,2"), 6)
    members = group(a=member("t"), b=member("t", user_data=said))
    assert dict(compute_assignment(Keeps, cluster, members)) == {
        "a": partitions("t:0"),
        "b": partitions("t:1,2"),
    }


def test_what_members_say_they_owned_counts_as_owned():
    said = encode_ownership(partitions("t:1,2"), 6)
    members = group(a=member("t", user_data=said, rack="r", instance_id="i"), b=member("t", "t:0", 5))
    read = as_owners(members)
    assert (read["a"].owned, read["a"].generation) == (partitions("t:1,2"), 6)
    assert (read["a"].rack, read["a"].instance_id, read["a"].topics) == ("r", "i", ("t",))
    assert read["b"] is members["b"]
    assert list(read) == ["a", "b"]
    assert (members["a"].owned, members["a"].generation) == (partitions(""), -1)


def test_saying_that_one_owned_nothing_counts_too():
    """C-65b: what was owned and when come from one place."""
    said = encode_ownership(partitions(""), 6)
    read = as_owners(group(a=member("t", "t:0", 9, user_data=said)))
    assert (read["a"].owned, read["a"].generation) == (partitions(""), 6)


def test_bytes_of_another_assignor_say_nothing():
    """C-68."""
    for strange in (
        b"",
        b"\x00",
        b"hello",
        encode_generation(4),
        encode_ownership(partitions("t:1"), 2)[:-5],
    ):
        members = group(a=member("t", "t:0", 3, user_data=strange))
        assert as_owners(members)["a"] is members["a"]


def test_a_group_that_says_nothing_is_the_group_itself():
    members = group(a=member("t", "t:0"), b=member("t"))
    assert as_owners(members) is members
    assert len(as_owners(group())) == 0
