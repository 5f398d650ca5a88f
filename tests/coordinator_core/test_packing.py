"""Lists of many members, read and written together: equal to those read and written one by one."""

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_core import packing
from coordinator_core.assigning.user_data import (
    decode_claims,
    decode_ownership,
    encode_generation,
    encode_ownership,
)
from coordinator_core.errors import ProtocolError
from coordinator_core.model import NO_GENERATION, GroupAssignment, Partitions, Subscription, TopicIndex
from coordinator_core.packing import FEWEST_LISTS, read_partitions, read_topics, rows_of
from coordinator_core.protocol.consumer_protocol import (
    decode_subscription,
    decode_subscriptions,
    encode_assignment,
    encode_assignments,
    encode_listing,
    encode_subscription,
)

TOPICS = ["a", "b", "größe", "\U0001f600", "topic-01", "topic-02", "name-of-a-topic-01", "name-of-a-topic-02"]
numbers = st.integers(0, 20) | st.integers(0, 2**31 - 1)
owned = st.dictionaries(
    st.sampled_from(TOPICS), st.lists(numbers, min_size=1, max_size=4, unique=True), max_size=6
)
topic_lists = st.lists(st.sampled_from(TOPICS), max_size=5).map(tuple)
subscriptions = st.builds(
    Subscription,
    topics=topic_lists,
    owned=owned.map(Partitions),
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | st.sampled_from(["", "r", "größe"]),
    user_data=st.none() | st.binary(max_size=5),
)


def changed(data, at, byte):
    """The bytes with another one at a position, wherever the position is in them."""
    position = at % (len(data) + 1)
    return data[:position] + byte + data[position + 1 :]


@st.composite
def damaged(draw, encoded):
    """Bytes as they were sent, cut short, or with one other byte."""
    data = draw(encoded)
    kind = draw(st.sampled_from(["sound", "sound", "cut", "changed", "longer"]))
    if kind == "cut":
        return data[: draw(st.integers(0, len(data)))]
    if kind == "changed":
        return changed(data, draw(st.integers(0, 200)), draw(st.binary(min_size=1, max_size=1)))
    return data + draw(st.binary(max_size=3)) if kind == "longer" else data


def group_of(members):
    """Enough members to be read together: sound ones beside those that vary."""
    sound = st.lists(members, min_size=1, max_size=3)
    return st.tuples(sound, st.lists(damaged(members), max_size=3), st.integers(0, 2 * FEWEST_LISTS)).map(
        lambda t: t[0] * t[2] + t[1] + t[0]
    )


encoded_subscriptions = st.builds(
    lambda s, version: encode_subscription(s, version=version), subscriptions, st.integers(0, 4)
)
encoded_ownerships = st.builds(
    lambda by_topic, generation: encode_ownership(Partitions(by_topic), generation),
    owned,
    st.integers(-1, 2**31 - 1),
)


def listed(partitions):
    return {topic: each.tolist() for topic, each in partitions.by_topic().items()}


def fields(s):
    return (s.topics, listed(s.owned), list(s.owned), s.generation, s.rack, s.instance_id, s.user_data)


def outcome(decode):
    try:
        return decode()
    except ProtocolError as error:
        return str(error)


def fields_together(members):
    """The fields of each member's subscription, or the error, of members that are decoded together."""
    return [decoded.error or fields(decoded.subscription) for decoded in decode_subscriptions(members)]


def one_by_one(members):
    """The same, by decoding one after the other."""
    return [outcome(lambda d=data, i=i: fields(decode_subscription(d, instance_id=i))) for data, i in members]


@given(group_of(encoded_subscriptions))
def test_subscriptions_are_those_of_one_after_the_other(data):
    """Given any members, some of whose bytes are damaged, then decoding them together gives the same
    subscriptions, and the error of each that is not one. C-53, C-68."""
    members = [(each, str(m) if m % 3 else None) for m, each in enumerate(data)]
    assert fields_together(members) == one_by_one(members)


SUBSCRIPTIONS = [
    Subscription(("a", "b"), Partitions({"a": [1, 2], "b": [0]}), 5),
    Subscription(("a", "b"), Partitions({"a": [1]}), 5, "r", user_data=b"xy"),
    Subscription(("b",), Partitions(), 6, "größe", user_data=b""),
    Subscription((), Partitions({"b": [7]}), -1, ""),
]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("topic_count", [1, 30])
def test_a_subscription_that_is_cut_anywhere_is_decoded_as_alone(version, topic_count):
    """Given a group with few or many lists of topics and one subscription that is cut short, or not, then the
    others are decoded, and the one has an error if it is cut inside a field. C-53."""
    sound = [
        (encode_subscription(Subscription((f"topic-{m % topic_count}",), Partitions({"a": [m]}), 4)), None)
        for m in range(FEWEST_LISTS if topic_count == 1 else 2 * FEWEST_LISTS)
    ]
    expected = one_by_one(sound)
    for subscription in SUBSCRIPTIONS:
        last = encode_subscription(subscription, version=version)
        broken = last.replace("größe".encode(), b"gr\xff\xff\xff\xffe")
        longer = last + list_of((b"a", 1)) + bytes(6)
        for data in [*(last[:cut] for cut in range(len(last) + 1)), longer, broken]:
            assert fields_together([*sound, (data, None)]) == [*expected, *one_by_one([(data, None)])]


CLAIMED = TopicIndex({"a": 20, "topic-01": 3, "größe": 10, "name-of-a-topic-01": 20, "unclaimed": 2})


def claims(data):
    """The claims in user data and the generations, with those of subscriptions for other bytes."""
    subscriptions = [Subscription(("a",), Partitions({"a": [1]}), 2, user_data=each) for each in data]
    claimed = decode_claims(CLAIMED, subscriptions)
    pairs = zip(claimed.partition.tolist(), claimed.member.tolist(), strict=True)
    return sorted(pairs), claimed.generation.tolist()


def claims_one_by_one(data):
    """The same, by decoding one after the other."""
    decoded = [decode_ownership(each or b"") or (Partitions({"a": [1]}), 2) for each in data]
    pairs = [(p, m) for m, (own, _) in enumerate(decoded) for p in own.dense_in(CLAIMED).tolist()]
    return sorted(pairs), [generation for _, generation in decoded]


def test_a_member_whose_user_data_are_cut_in_the_list_keeps_the_claims_of_its_subscription():
    """C-68. Data that end after the list, or inside the generation, are read as version 0, which has none."""
    sound = [encode_ownership(Partitions({"a": [m]}), m) for m in range(FEWEST_LISTS)]
    own = [(m, m) for m in range(FEWEST_LISTS)]
    end_of_list = len(sound[0]) - 4
    for cut in range(len(sound[0])):
        partition, generation = (1, 2) if cut < end_of_list else (0, NO_GENERATION)
        assert claims([*sound, sound[0][:cut]]) == (
            sorted([*own, (partition, FEWEST_LISTS)]),
            [*range(FEWEST_LISTS), generation],
        )


@given(st.lists(st.binary(max_size=60), min_size=FEWEST_LISTS, max_size=2 * FEWEST_LISTS))
def test_any_bytes_of_a_group_are_read_as_one_by_one(data):
    """C-53, C-68."""
    members = [(each, None) for each in data]
    assert fields_together(members) == one_by_one(members)


@given(group_of(encoded_ownerships | st.just(b"") | st.just(encode_generation(7))))
def test_claims_are_those_of_one_after_the_other(data):
    """C-68."""
    assert claims([*data, None]) == claims_one_by_one([*data, None])


@pytest.mark.parametrize("count", [20, 3_000])
def test_claims_of_names_of_all_lengths_are_those_of_one_after_the_other(count):
    """Given names that share their beginnings and their ends, and more of them than a sample has."""
    names = [f"name-{m * 7919}" + "-ending"[: m % 8] for m in range(count)]
    index = TopicIndex(dict.fromkeys(names, 2))
    data = [encode_ownership(Partitions({name: [1]}), 3) for name in [*names, *names[::-1]]]
    claimed = decode_claims(index, [Subscription((), user_data=each) for each in data])
    found = dict(zip(claimed.member.tolist(), index.partitions(claimed.partition), strict=True))
    assert found == {m: (name, 1) for m, name in enumerate([*names, *names[::-1]])}


def test_members_share_an_index_and_equal_topics():
    """The form that a leader's work is fast with: PITFALLS C-70."""
    data = [
        encode_subscription(Subscription(("a", "b"), Partitions({"a": [m], "b": [m, 30]}))) for m in range(20)
    ]
    decoded = [each.subscription for each in decode_subscriptions([(own, None) for own in data])]
    assert all(s.topics is decoded[0].topics for s in decoded)
    index = TopicIndex({"a": 20, "b": 31})
    shared = {id(s.owned._index) for s in decoded}
    assert len(shared) == 1
    assert decoded[0].owned._index.same_numbering(index)
    partition, member = Partitions.claims(TopicIndex({"b": 30, "c": 1}), [s.owned for s in decoded])
    assert (partition.tolist(), member.tolist()) == (list(range(20)), list(range(20)))


def list_of(*entries):
    """A list of partitions as bytes: entries of a name and numbers."""
    parts = [struct.pack(">i", len(entries))]
    for name, *own in entries:
        parts += [struct.pack(">h", len(name)), name, struct.pack(f">i{len(own)}i", len(own), *own)]
    return b"".join(parts)


UNUSUAL = {
    "no numbers": list_of((b"a",)),
    "negative": list_of((b"a", -1)),
    "twice": list_of((b"a", 1), (b"a", 2)),
    "no text": list_of((b"\xff", 1)),
    "far apart": list_of((b"a", 2**31 - 1)),
    "too many": list_of((b"a", 1), (b"b", 1))[:-11],
    "many numbers": list_of((b"a", 1), (b"b", 1)).replace(b"a\0\0\0", b"a\x20\0\0"),
    "many numbers below zero": list_of((b"a", 1), (b"b", 1)).replace(b"a\0\0\0", b"a\xe0\0\0"),
    "a length that leads back to its numbers": struct.pack(">i", 2)
    + list_of((b"a", 1, 7))[4:]
    + struct.pack(">h", -10),
    "longer than almost all": list_of(*((b"t%d" % i, i) for i in range(30))),
}


def together(read, data):
    """What is read at the start of each row, and the size of it."""
    rows = rows_of(data)
    found, after = read(rows, rows.begin)
    return found, (after - rows.begin).tolist()


@pytest.mark.parametrize("kind", UNUSUAL)
def test_an_unusual_list_is_left_to_be_read_alone(kind):
    data = [list_of((b"a", 2), (b"b", 3))] * FEWEST_LISTS
    found, _ = together(read_partitions, [*data, UNUSUAL[kind]])
    assert found[-1] is None


def test_counts_that_the_bytes_cannot_hold_are_left_to_be_read_alone():
    """Given counts of a billion, then no memory is taken for them."""
    data = [b"\x40\0\0\0" + bytes(40)] * FEWEST_LISTS
    for read in (read_partitions, read_topics):
        assert together(read, data)[0] == [None] * FEWEST_LISTS


def test_lists_that_are_read_together_have_ends():
    sound = [list_of((b"a", m), (b"long-name-of-it", 3, 4)) for m in range(FEWEST_LISTS)]
    found, ends = together(read_partitions, [each + b"more" for each in sound])
    assert ends == list(map(len, sound))
    assert list(map(listed, found)) == [{"a": [m], "long-name-of-it": [3, 4]} for m in range(FEWEST_LISTS)]
    topics = [b"\0\0\0\2" + b"\0\1a" + b"\0\2b%d" % (m % 10) for m in range(FEWEST_LISTS)]
    found, ends = together(read_topics, [*topics, b"\0\0\0\1\xff\xff"])
    assert found == [*(("a", f"b{m % 10}") for m in range(FEWEST_LISTS)), None]
    assert ends[:-1] == [11] * FEWEST_LISTS


@given(
    st.lists(st.text(max_size=20), min_size=1, max_size=40), st.sampled_from([0, 2**60, None]), st.booleans()
)
@example([f"topic-{i % 7}" for i in range(40)], 0, True)
def test_names_are_told_apart_whatever_their_hashes(names, multiplier, few):
    """Given a hash that is the same for all names, or for many, then no different names have one number."""
    encoded = [name.encode() for name in names]
    data = b"".join(struct.pack(">h", len(name)) + name for name in encoded)
    length = np.array(list(map(len, encoded)), dtype=np.int32)
    at = np.cumsum(length + 2, dtype=np.int32) - length
    with pytest.MonkeyPatch.context() as patch:
        if multiplier is not None:
            patch.setattr(packing, "_MULTIPLIER", np.uint64(multiplier))
        if few:
            patch.setattr(packing, "_SAMPLE_SIZE", 4)
        found = packing._names(packing._Buffer(data + bytes(8)), at, length)
    if found is None:
        assert multiplier is not None
        return
    distinct, number = found
    assert [distinct[n] for n in number.tolist()] == names
    assert len(distinct) == len(set(names))


@st.composite
def assignments(draw):
    """Assignments of owner arrays to a few or many members, with their partitions in any order."""
    index = TopicIndex(draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 5), max_size=6)))
    most = FEWEST_LISTS * draw(st.booleans()) + draw(st.integers(0, 4))
    members = [f"m{m}" for m in range(most)]
    owners = st.lists(st.integers(-1, most - 1), min_size=index.size, max_size=index.size)
    owner = np.array(draw(owners), dtype=np.int32)
    order = draw(st.none() | st.permutations(range(index.size)))
    user_data = draw(st.dictionaries(st.sampled_from(["m0", "m1", "x"]), st.binary(max_size=4)))
    return GroupAssignment.from_owners(
        index,
        members,
        owner,
        order=None if order is None else np.array(order, dtype=np.int32),
        user_data=user_data,
    )


@given(assignments(), st.integers(0, 3))
def test_assignments_have_the_bytes_of_one_after_the_other(assignment, version):
    """Given any owners and order, then encoding all members together gives the same bytes."""
    members = list(assignment)[::-1]
    expected = [
        encode_assignment(assignment[m], assignment.user_data.get(m), version=version) for m in members
    ]
    assert encode_assignments(assignment, members, version=version) == expected


def test_a_topic_whose_partitions_are_apart_has_one_entry():
    index = TopicIndex({"a": 2, "b": 1})
    order = np.array([0, 2, 1], dtype=np.int32)
    assignment = GroupAssignment.from_owners(index, ["m"], np.zeros(3, dtype=np.int32), order=order)
    assert encode_listing(*assignment.listing()) is None
    members = [f"m{m}" for m in range(FEWEST_LISTS)]
    assignment = GroupAssignment.from_owners(index, members, np.zeros(3, dtype=np.int32), order=order)
    expected = [encode_assignment(Partitions({"a": [0, 1], "b": [0]}))]
    assert encode_assignments(assignment, members[:1]) == expected


def test_assignments_of_a_mapping_are_encoded_alone():
    assignment = GroupAssignment({"m": Partitions({"t": [1]}), "n": Partitions()}, user_data={"n": b"x"})
    assert assignment.listing() is None
    expected = [encode_assignment(assignment["n"], b"x"), encode_assignment(assignment["m"])]
    assert encode_assignments(assignment, ["n", "m"]) == expected
