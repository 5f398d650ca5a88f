"""Topics, members, what they own and what they are given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.java import java_key, java_order
from coordinator_core.model import (
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicIndex,
    TopicInfo,
    TopicPartition,
)

pairs = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "\U0001f600"]), st.integers(0, 5)), max_size=12)
counts = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "\U0001f600"]), st.integers(0, 5))


def numbers(*values):
    return np.array(values, dtype=np.int32)


# --- names


def test_names_sort_by_code_units_as_in_java():
    """U+1F600 is written with surrogates, which come before U+FF41; by code points it would come after."""
    assert java_order(["\uff41", "\U0001f600", "z", "ü"]) == ["z", "ü", "\U0001f600", "\uff41"]
    assert sorted(["\uff41", "\U0001f600"]) == ["\uff41", "\U0001f600"]


def test_half_a_surrogate_pair_is_a_name_like_any_other():
    assert java_order(["\ud83d", "a"]) == ["a", "\ud83d"]
    assert java_key("\ud83d") == b"\xd8\x3d"


def test_a_partition_is_a_plain_pair_that_sorts_by_topic_and_number():
    assert TopicPartition("t", 1) == ("t", 1)
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]) == [
        ("a", 2),
        ("a", 10),
        ("b", 0),
    ]


# --- the index


def test_partitions_are_numbered_topic_by_topic_in_javas_order():
    index = TopicIndex({"\uff41": 1, "b": 2, "\U0001f600": 3, "a": 0})
    assert index.topics == ("a", "b", "\U0001f600", "\uff41")
    assert index.offsets.tolist() == [0, 0, 2, 5, 6]
    assert index.size == len(index) == 6
    assert index.topic_of_every.tolist() == [1, 1, 2, 2, 2, 3]


def test_a_number_leads_to_its_partition_and_back():
    index = TopicIndex({"a": 2, "none": 0, "b": 3})
    assert [index.number("b", n) for n in range(3)] == [2, 3, 4]
    assert list(index.partitions(numbers(4, 0))) == [("b", 2), ("a", 0)]
    assert index.topic_of(numbers(0, 2, 4)).tolist() == [0, 1, 1]


@pytest.mark.parametrize(("topic", "partition"), [("a", 2), ("a", -1), ("none", 0), ("unknown", 0)])
def test_there_is_no_number_for_what_does_not_exist(topic, partition):
    assert TopicIndex({"a": 2, "none": 0}).number(topic, partition) is None


def test_a_topic_nobody_described_has_no_place_and_no_partitions():
    index = TopicIndex({"a": 2})
    assert (index.position("a"), index.position("b")) == (0, None)
    assert (index.partition_count("a"), index.partition_count("b")) == (2, 0)
    assert index.topic_positions == {"a": 0}


def test_offsets_cannot_be_written_to():
    index = TopicIndex({"a": 2})
    for array in (index.offsets, index.topic_of_every):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_negative_number_of_partitions_is_refused_by_topic():
    with pytest.raises(InputError) as told:
        TopicIndex({"a": 3, "b": -1})
    assert str(told.value) == "topics.b.partitions: found -1, expected 0 or more"


def test_more_partitions_than_can_be_numbered_are_refused():
    with pytest.raises(InputError, match=r"2,147,483,648 partitions in all, expected at most 2,147,483,647"):
        TopicIndex({"a": 2**31 - 1, "b": 1})


def test_equal_topics_have_the_same_numbering():
    index = TopicIndex({"a": 2, "b": 3})
    assert index.same_numbering(index)
    assert index.same_numbering(TopicIndex({"b": 3, "a": 2}))
    assert not index.same_numbering(TopicIndex({"a": 3, "b": 2}))
    assert not index.same_numbering(TopicIndex({"a": 2, "c": 3}))
    assert not index.same_numbering(TopicIndex({"a": 2}))


@given(counts, counts)
def test_renumbering_keeps_the_partitions_that_exist_in_both(here, there):
    index, other = TopicIndex(here), TopicIndex(there)
    every = np.arange(other.size, dtype=np.int32)
    expected = [(t, n) for t, n in other.partitions(every) if n < here.get(t, 0)]
    for _ in range(2):  # the table is kept
        assert list(index.partitions(index.renumber(other, every))) == expected
    third = TopicIndex({"a": 1})
    assert list(index.partitions(index.renumber(third, numbers(0)))) == [("a", 0)] * (here.get("a", 0) > 0)


# --- sets of partitions


def test_partitions_come_in_the_order_they_were_given():
    assert list(Partitions({"b": [2, 0], "a": [1]})) == [("b", 2), ("b", 0), ("a", 1)]
    assert list(Partitions.of([("b", 1), ("a", 0), ("b", 0)])) == [("b", 1), ("b", 0), ("a", 0)]


def test_dense_numbers_come_in_their_order_and_are_grouped_by_topic():
    index = TopicIndex({"a": 2, "b": 2})
    made = Partitions.dense(index, numbers(3, 0, 2))
    assert list(made) == [("b", 1), ("a", 0), ("b", 0)]
    assert {t: n.tolist() for t, n in made.by_topic().items()} == {"b": [1, 0], "a": [0]}
    assert Partitions.dense(index, numbers()).by_topic() == {}


@given(pairs, pairs)
def test_they_behave_like_the_set_of_their_pairs(left, right):
    """In both forms, and mixed."""
    index = TopicIndex(dict.fromkeys(["a", "b", "c", "\U0001f600"], 6))
    for one in forms(left, index):
        assert len(one) == len(set(left))
        assert all(pair in one for pair in left)
        assert ("a", 9) not in one
        for other in forms(right, index):
            assert (one == other) == (set(left) == set(right))
            assert one != other or hash(one) == hash(other)
            assert set(one - other) == set(left) - set(right)
            assert set(one & other) == set(left) & set(right)
            assert set(one | other) == set(left) | set(right)
            assert (one <= other) == (set(left) <= set(right))
            assert isinstance(one - other, Partitions)


def forms(given_pairs, index):
    made = Partitions.of(given_pairs)
    return made, Partitions.dense(index, made.dense_in(index))


def test_partitions_an_index_does_not_know_have_no_number_in_it():
    index = TopicIndex({"a": 2})
    assert Partitions({"a": [-1, 1, 2], "b": [0]}).dense_in(index).tolist() == [1]
    larger = TopicIndex({"0": 1, "a": 3})
    assert Partitions.dense(larger, numbers(0, 1, 3)).dense_in(index).tolist() == [0]
    assert NO_PARTITIONS.dense_in(index).dtype == np.int32


@given(st.lists(pairs, max_size=4), counts, counts)
def test_claims_are_the_same_in_all_forms(owned, here, there):
    """One by one, sharing an index that is the problem's, or one that is not."""
    index, other = TopicIndex(here), TopicIndex(there)
    known = [[(t, n) for t, n in each if n < there.get(t, 0)] for each in owned]
    expected = {(p, m) for m, each in enumerate(known) for p in Partitions.of(each).dense_in(index).tolist()}
    plain = [Partitions.of(each) for each in known]
    shared = [Partitions.dense(other, each.dense_in(other)) for each in plain]
    equal = [Partitions.dense(TopicIndex(there), each.dense_in(other)) for each in plain]
    mixed = [
        (s, p, NO_PARTITIONS if not len(p) else p)[m % 3]
        for m, (s, p) in enumerate(zip(shared, plain, strict=True))
    ]
    for sets in (plain, shared, equal, mixed):
        partition, member = Partitions.claims(index, sets)
        assert len(partition) == len(member)
        assert set(zip(partition.tolist(), member.tolist(), strict=True)) == expected


def test_a_set_shows_its_partitions():
    assert repr(Partitions({"b": [2, 0], "a": [1]})) == "Partitions(b:2,0, a:1)"
    assert repr(NO_PARTITIONS) == "Partitions()"


# --- clusters and groups


def test_a_cluster_takes_bare_numbers_of_partitions():
    cluster = Cluster({"a": 3, "b": TopicInfo(1, weights=(2.0,))})
    assert cluster.topics == {"a": TopicInfo(3), "b": TopicInfo(1, weights=(2.0,))}
    assert (cluster.partition_count("a"), cluster.partition_count("unknown")) == (3, 0)
    assert cluster.index is cluster.index


def test_static_members_come_first_by_instance_id_and_the_others_by_member_id():
    """C-66."""
    group = GroupSubscription(
        {
            "b": Subscription(()),
            "z": Subscription((), instance_id="i1"),
            "\uff41": Subscription(()),
            "\U0001f600": Subscription(()),
            "a": Subscription((), instance_id="i2"),
        }
    )
    assert group.sorted_members() == ["z", "a", "b", "\U0001f600", "\uff41"]


def test_instance_ids_too_sort_as_in_java():
    """C-66."""
    group = GroupSubscription(
        {"a": Subscription((), instance_id="\uff41"), "b": Subscription((), instance_id="\U0001f600")}
    )
    assert group.sorted_members() == ["b", "a"]


def test_members_that_share_an_instance_id_come_by_member_id():
    """C-66, C-61."""
    twins = {m: Subscription((), instance_id="i") for m in ("c", "a", "b")}
    assert GroupSubscription(twins).sorted_members() == ["a", "b", "c"]


def test_without_static_members_the_order_is_that_of_the_ids():
    group = GroupSubscription({m: Subscription(()) for m in ("c", "B", "a")})
    assert group.sorted_members() == ["B", "a", "c"]


def test_a_group_reads_like_the_mapping_it_was_made_from():
    listed = {"b": Subscription(("t",)), "a": Subscription(("t", "u"))}
    group = GroupSubscription(listed)
    assert dict(group) == listed
    assert (list(group), len(group), group["a"].topics) == (["b", "a"], 2, ("t", "u"))
    assert list(group.values()) == list(listed.values())
    assert list(group.items()) == list(listed.items())
    assert group.in_order(["a", "b"]) == [listed["a"], listed["b"]]
    listed.clear()
    assert len(group) == 2


def test_the_subscribers_of_a_topic_come_in_order():
    group = GroupSubscription({"b": Subscription(("t",)), "a": Subscription(("t", "u"))})
    assert (group.subscribers("t"), group.subscribers("u"), group.subscribers("v")) == (["a", "b"], ["a"], [])


# --- assignments


INDEX = TopicIndex({"a": 2, "b": 3})


def both_forms():
    mapping = GroupAssignment(
        {"m": Partitions({"a": [0], "b": [1]}), "n": NO_PARTITIONS, "o": Partitions({"a": [1], "b": [2]})}
    )
    return mapping, GroupAssignment.from_owners(INDEX, ("m", "n", "o"), numbers(0, 2, -1, 0, 2))


def test_owners_and_mappings_are_two_forms_of_one_assignment():
    mapping, array = both_forms()
    assert dict(mapping) == dict(array)
    assert mapping == array
    assert list(array) == ["m", "n", "o"]
    assert len(array) == 3
    assert list(array["o"]) == [("a", 1), ("b", 2)]
    assert repr(mapping) == repr(array)


def test_both_forms_tell_the_owners():
    mapping, array = both_forms()
    for each in (mapping, array):
        assert each.owners(INDEX, ("m", "n", "o")).tolist() == [0, 2, -1, 0, 2]
        assert each.owners(INDEX, ("o", "m")).tolist() == [1, 0, -1, 1, 0]
        assert each.owners(TopicIndex({"b": 2, "c": 1}), ("m", "o")).tolist() == [-1, 0, -1]


def test_the_owner_array_is_that_of_the_same_index_and_members_only():
    mapping, array = both_forms()
    assert mapping.owner_array(INDEX, ("m", "n", "o")) is None
    assert array.owner_array(TopicIndex({"b": 3, "a": 2}), ["m", "n", "o"]).tolist() == [0, 2, -1, 0, 2]
    assert array.owner_array(INDEX, ("m", "o", "n")) is None
    assert array.owner_array(TopicIndex({"a": 3, "b": 2}), ("m", "n", "o")) is None


def test_an_order_decides_how_partitions_are_listed():
    made = GroupAssignment.from_owners(
        INDEX, ("m", "n"), numbers(0, 0, 1, 0, -1), order=numbers(3, 1, 4, 2, 0)
    )
    assert {m: list(got) for m, got in made.items()} == {
        "m": [("b", 1), ("a", 1), ("a", 0)],
        "n": [("b", 0)],
    }


def test_a_listing_that_is_known_is_not_worked_out_again():
    listing = numbers(1, 0, 2), np.array([0, 2, 3])
    made = GroupAssignment.from_owners(INDEX, ("m", "n"), numbers(0, 0, 1, -1, -1), listing=listing)
    assert {m: list(got) for m, got in made.items()} == {"m": [("a", 1), ("a", 0)], "n": [("b", 0)]}


def test_the_numbers_of_an_owner_array_are_those_that_its_members_list():
    """Given an order, a listing or neither, when numbers are read, then they are as the partitions are."""
    owner, names = numbers(0, 0, 1, -1, 0), ("m", "n")
    forms = {
        "ascending": GroupAssignment.from_owners(INDEX, names, owner),
        "order": GroupAssignment.from_owners(INDEX, names, owner, order=numbers(4, 3, 2, 0, 1)),
        "listing": GroupAssignment.from_owners(
            INDEX, names, owner, listing=(numbers(1, 4, 0, 2), np.array([0, 3, 4]))
        ),
    }
    found = {form: made.numbers() for form, made in forms.items()}
    assert found == {
        "ascending": (INDEX, {"m": [0, 1, 4], "n": [2]}),
        "order": (INDEX, {"m": [4, 0, 1], "n": [2]}),
        "listing": (INDEX, {"m": [1, 4, 0], "n": [2]}),
    }
    for form, made in forms.items():
        listed = {member: partitions.dense_in(INDEX).tolist() for member, partitions in made.items()}
        assert found[form] == (INDEX, listed)
    assert GroupAssignment({"m": NO_PARTITIONS}).numbers() is None


def test_lists_are_new_ones_with_the_partitions_that_each_member_lists():
    """Given a mapping, owners, an order or a listing, when all is read at once, then it is the same."""
    owner, names = numbers(0, 0, 1, -1, 0), ("m", "n", "o")
    listing = numbers(1, 4, 0, 2), np.array([0, 3, 4, 4])
    forms = [
        *both_forms(),
        GroupAssignment.from_owners(INDEX, names, owner),
        GroupAssignment.from_owners(INDEX, names, owner, order=numbers(4, 3, 2, 0, 1)),
        GroupAssignment.from_owners(INDEX, names, owner, listing=listing),
        GroupAssignment({}),
    ]
    for made in forms:
        expected = {member: list(partitions) for member, partitions in made.items()}
        found = made.lists()
        assert found == expected
        assert {type(tp) for listed in found.values() for tp in listed} <= {TopicPartition}
        for listed in found.values():
            listed.clear()
        assert made.lists() == expected


def test_an_assignment_of_nobody_is_empty():
    for made in (GroupAssignment({}), GroupAssignment.from_owners(INDEX, (), numbers(-1, -1, -1, -1, -1))):
        assert dict(made) == {}
        assert made.owners(INDEX, ()).tolist() == [-1] * 5


def test_user_data_travels_beside_the_partitions():
    assert GroupAssignment({}).user_data == {}
    assert GroupAssignment({"m": NO_PARTITIONS}, user_data={"m": b"x"}).user_data == {"m": b"x"}
    assert GroupAssignment.from_owners(INDEX, (), numbers(), user_data={"m": b"y"}).user_data == {"m": b"y"}


@given(counts, st.integers(0, 4), st.data())
def test_reading_an_owner_array_loses_nothing(topics, members, data):
    index = TopicIndex(topics)
    drawn = data.draw(
        st.lists(st.integers(-1, members - 1), min_size=index.size, max_size=index.size), label="owners"
    )
    owner, names = np.array(drawn, dtype=np.int32), tuple(f"m{n}" for n in range(members))
    array = GroupAssignment.from_owners(index, names, owner)
    assert GroupAssignment(dict(array)).owners(index, names).tolist() == drawn
