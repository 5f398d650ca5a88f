"""The bytes of a group in several rounds: decoded and encoded as by somebody who remembers nothing."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import ProtocolError
from coordinator_core.model import GroupAssignment, Partitions, Subscription, TopicIndex
from coordinator_core.packing import FEWEST_LISTS
from coordinator_core.protocol import group_codec
from coordinator_core.protocol.consumer_protocol import (
    decode_again,
    decode_subscription,
    decode_subscriptions,
    encode_assignments,
    encode_subscription,
)
from coordinator_core.protocol.group_codec import GroupCodec

SUBSCRIPTION = Subscription(("a", "b"), Partitions({"a": [1, 2], "b": [0]}), 5, "r", user_data=b"xyz")


def fields(s):
    return (s.topics, list(s.owned), s.generation, s.rack, s.instance_id, s.user_data)


def decoded(data):
    """The fields, or the error."""
    try:
        return fields(decode_subscription(data))
    except ProtocolError as error:
        return str(error)


@pytest.mark.parametrize("version", range(5))
def test_a_change_anywhere_is_decoded_as_alone(version):
    """Given other bytes, then the subscription is theirs, or they must be decoded. C-53, C-68."""
    data = encode_subscription(SUBSCRIPTION, version=version)
    (last,) = decode_subscriptions([(data, None)])
    changed = [data + b"\0", *(data[:cut] for cut in range(len(data)))]
    changed += [data[:at] + bytes([byte]) + data[at + 1 :] for at in range(len(data)) for byte in (0, 4, 255)]
    for sent in changed:
        again = decode_again((sent, None), last)
        assert again is None or fields(again.subscription) == decoded(sent)
    assert decode_again((data, "i"), last) is None


@pytest.mark.parametrize("version", range(4))
def test_only_the_generation_and_the_user_data_may_differ(version):
    def sent(**changes):
        changed = msgspec.structs.replace(SUBSCRIPTION, **changes)
        return encode_subscription(changed, version=version), None

    (last,) = decode_subscriptions([sent()])
    assert decode_again(sent(), last) is last
    newer = decode_again(sent(generation=6, user_data=b"abc"), last)
    assert newer.subscription.owned is last.subscription.owned
    assert fields(decode_again(sent(), newer).subscription) == fields(last.subscription)
    others = [{"topics": ("a", "c")}, {"user_data": b"wxyz"}, {"user_data": None}]
    others += [{"owned": Partitions({"a": [1, 3], "b": [0]})}] * (version >= 1) + [{"rack": "s"}] * (
        version >= 3
    )
    assert [decode_again(sent(**changes), last) for changes in others] == [None] * len(others)


def subscription(member, *, numbers=(1,), generation=1):
    return Subscription(("a", "b"), Partitions({"a": [*numbers, member]}), generation)


def sent(members):
    return {m: (encode_subscription(s), None) for m, s in members.items()}


@pytest.fixture
def read(monkeypatch):
    """The numbers of subscriptions that were decoded, call by call."""
    counts = []

    def counted(members):
        counts.append(len(members))
        return decode_subscriptions(members)

    monkeypatch.setattr(group_codec, "decode_subscriptions", counted)
    return counts


def check(codec, members):
    found = codec.decode(sent(members))
    assert {m: fields(s) for m, s in found.items()} == {m: fields(s) for m, s in members.items()}
    assert list(found) == list(members)


def test_a_subscription_that_has_not_changed_is_not_decoded_again(read):
    """Given rounds in which one member changes, another one joins and a third one leaves, then only theirs
    are decoded."""
    codec = GroupCodec()
    members = {f"m{m}": subscription(m + 30) for m in range(3 * FEWEST_LISTS)}
    check(codec, members)
    members = {m: msgspec.structs.replace(s, generation=2) for m, s in members.items()}
    check(codec, members)
    members["m1"] = subscription(31, numbers=(4, 5), generation=2)
    check(codec, members)
    check(codec, {"new": subscription(99), **members})
    del members["m2"]
    check(codec, members)
    check(codec, {**members, "new": subscription(98)})
    assert read == [3 * FEWEST_LISTS, 0, 1, 1, 0, 1]


def test_all_are_decoded_together_when_many_have_changed(read):
    """A member that was decoded alone counts until then: its partitions are in no index of the others."""
    codec = GroupCodec()
    members = {f"m{m}": subscription(m + 30) for m in range(3 * FEWEST_LISTS)}
    check(codec, members)
    for m in range(FEWEST_LISTS + 1):
        members[f"m{m}"] = subscription(m + 30, numbers=(5,))
        check(codec, members)
    assert read == [3 * FEWEST_LISTS, *[1] * FEWEST_LISTS, 3 * FEWEST_LISTS]


@pytest.mark.parametrize("others", [1, 3 * FEWEST_LISTS])
def test_a_member_whose_subscription_is_unreadable_has_no_topics_in_every_round(others):
    """C-53."""
    codec = GroupCodec()
    members = {f"m{m}": subscription(m + 30) for m in range(others)}
    check(codec, members)
    for _ in range(2):
        read = codec.decode({**sent(members), "n": (b"\0", None)})
        assert read.pop("n").topics == ()
        assert read.keys() == members.keys()
        assert codec.unreadable == {"n": "subscription: 1 bytes, ends at byte 0 where 2 more are announced"}
    check(codec, members)
    assert codec.unreadable == {}


OTHERS = [f"other-{m}" for m in range(FEWEST_LISTS)]
"""Members without partitions, as the assignments of fewer members are not remembered."""

INDEXES = [TopicIndex({"a": 4, "b": 3}), TopicIndex({"a": 4, "b": 3}), TopicIndex({"a": 3, "b": 4})]


@st.composite
def rounds(draw):
    """Assignments of owner arrays, one after the other; now and then of a mapping, or with user data."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        members = draw(st.lists(st.sampled_from("mnop"), unique=True))
        owners = st.lists(st.integers(-1, len(members) - 1), min_size=7, max_size=7)
        order = draw(st.none() | st.permutations(range(7)))
        assignment = GroupAssignment.from_owners(
            draw(st.sampled_from(INDEXES)),
            members + OTHERS * draw(st.sampled_from([0, 1, 1])),
            np.array(draw(owners), dtype=np.int32),
            order=None if order is None else np.array(order, dtype=np.int32),
            user_data=draw(st.sampled_from([{}, {}, {"m": b"x"}])),
        )
        plain = GroupAssignment({m: assignment[m] for m in assignment})
        found.append(draw(st.sampled_from([assignment] * 4 + [plain])))
    return found


@given(rounds())
def test_assignments_have_the_bytes_of_a_round_alone(assignments):
    codec = GroupCodec()
    for assignment in assignments:
        members = list(assignment)[::-1]
        assert codec.encode(assignment, members) == encode_assignments(assignment, members)


def test_only_changed_assignments_are_encoded_again(monkeypatch):
    counts = []
    encode_listing = group_codec.encode_listing

    def counted(index, listed, starts):
        counts.append(len(starts) - 1)
        return encode_listing(index, listed, starts)

    monkeypatch.setattr(group_codec, "encode_listing", counted)
    codec = GroupCodec()
    owners = [[0, 0, 1, 1, 2, 2, -1], [0, 0, 1, 1, 2, 2, -1], [0, 0, 1, 1, 2, -1, 2]]
    for owner in owners:
        assignment = GroupAssignment.from_owners(
            INDEXES[0], [*"mno", *OTHERS], np.array(owner, dtype=np.int32)
        )
        codec.encode(assignment, assignment)
    leaves = GroupAssignment.from_owners(
        INDEXES[1], [*"mo", *OTHERS], np.array([0, 0, 0, 1, 1, -1, 1], dtype=np.int32)
    )
    assert codec.encode(leaves, leaves) == encode_assignments(leaves, leaves)
    assert counts == [3 + len(OTHERS), 0, 1, 2]


def test_numbers_of_another_index_are_other_partitions():
    codec = GroupCodec()
    for index in INDEXES[1:]:
        assignment = GroupAssignment.from_owners(index, ["m", *OTHERS], np.zeros(7, dtype=np.int32))
        assert codec.encode(assignment, assignment) == encode_assignments(assignment, assignment)
