"""What travels behind an assignor's own user data, and what foreign user data say: nothing."""

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assigning.loading import assignor_from
from coordinator_core.assigning.user_data import encode_ownership
from coordinator_core.model import NO_PARTITIONS, Partitions, Subscription
from rebalance_kafka.adapters.claims import Claim, Grant, as_listed, attach, detach
from rebalance_kafka.adapters.leading import joined
from rebalance_kafka.adapters.member import Member

CLAIM = Claim({"t": [0, 2]}, 5, "r1", "i1", "c-1", gave_up=True)

names = st.text(max_size=5)
numbers = st.integers(0, 2**31 - 1)
claims = st.builds(
    Claim,
    owned=st.dictionaries(names, st.lists(numbers, max_size=4), max_size=3),
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | names,
    instance_id=st.none() | names,
    member_id=st.none() | names,
    gave_up=st.booleans(),
)
grants = st.builds(Grant, generation=st.integers(-1, 2**31 - 1), member_id=names)
own = st.none() | st.binary(min_size=1, max_size=20)


@given(own, claims | grants)
def test_what_was_attached_is_detached(user_data, told):
    assert detach(attach(user_data, told), type(told)) == (user_data, told)


@given(own, claims)
def test_the_assignors_own_bytes_come_first(user_data, claim):
    """Decoders of other makes read a prefix."""
    assert attach(user_data, claim).startswith(user_data or b"")


@given(st.none() | st.binary(max_size=80))
def test_foreign_user_data_are_the_assignors_as_they_are(data):
    assert detach(data, Claim) == (data, None)


@pytest.mark.parametrize(
    "data",
    [
        b"RBCLAIM",
        b"\0\0\0\0\1RBCLAIM",  # no array
        b"\0\0\1\0\1RBCLAIM",  # more than there is
        b"\xff\xff\xff\xff\1RBCLAIM",
        attach(b"own", Grant(5, "c-1")),  # of an assignment
        b"own" + msgspec.msgpack.encode([{"t": [-1]}, 5, None, None, None, True]) + b"\0\0\0\x0b\1RBCLAIM",
        attach(b"own", CLAIM)[:-1],
        attach(b"own", CLAIM) + b"\0",
        attach(b"own", CLAIM)[:-8] + b"\0RBCLAIM",  # a version that there was not
    ],
)
def test_what_only_resembles_a_claim_is_foreign(data):
    assert detach(data, Claim) == (data, None)


def test_later_versions_are_read_as_far_as_they_are_known():
    body = msgspec.msgpack.encode([*msgspec.to_builtins(CLAIM), "and more"])
    data = b"own" + body + struct.pack(">iB7s", len(body), 2, b"RBCLAIM")
    assert detach(data, Claim) == (b"own", CLAIM)


@given(
    st.dictionaries(names, st.lists(numbers, unique=True, min_size=1, max_size=5), max_size=4), st.randoms()
)
def test_equal_ownership_gives_equal_bytes(owned, random):
    """C-21: whatever the order."""
    shuffled = list(owned.items())
    random.shuffle(shuffled)
    mixed = Partitions({t: random.sample(n, len(n)) for t, n in shuffled})
    assert msgspec.msgpack.encode(as_listed(mixed)) == msgspec.msgpack.encode(as_listed(Partitions(owned)))


@given(own)
def test_a_member_without_a_claim_has_what_its_subscription_says(user_data):
    said = Subscription(("t",), Partitions({"t": [1]}), 3, "r1", "i1", user_data)
    assert joined("c-1", said) == (said, True)


def test_a_foreign_member_whose_subscription_shows_nothing_owns_nothing():
    found = joined("c-1", Subscription(("t",), user_data=b"of somebody else"))
    assert found.subscription.owned is NO_PARTITIONS
    assert found.subscription.user_data == b"of somebody else"


def test_a_claim_counts_where_the_client_hides_the_subscription():
    said = joined("c-1", Subscription(("t",), user_data=attach(b"own", CLAIM))).subscription
    assert (said.owned, said.generation) == (Partitions({"t": [0, 2]}), 5)
    assert (said.rack, said.instance_id, said.user_data) == ("r1", "i1", b"own")


def test_what_the_client_shows_of_rack_and_instance_id_goes_before_the_claim():
    said = joined("c-1", Subscription(("t",), (), -1, "r2", "i2", attach(None, CLAIM))).subscription
    assert (said.rack, said.instance_id) == ("r2", "i2")


@pytest.mark.parametrize(
    ("gave_up", "under", "holds"),
    [
        (False, "c-1", True),
        (False, None, True),  # something else led: nobody knows
        (False, "c-0", False),  # of a membership that was lost
        (True, "c-1", False),
    ],
)
def test_who_still_works_on_what_it_claims(gave_up, under, holds):
    claim = msgspec.structs.replace(CLAIM, gave_up=gave_up, member_id=under)
    assert joined("c-1", Subscription(("t",), user_data=attach(None, claim))).holds is holds


class Silent:
    name = "silent"

    def assign(self, cluster, group):
        return {}


def member(**kwargs):
    return Member(assignor_from(Silent()), **({"rack": None, "instance_id": None, "gives_up": True} | kwargs))


def claimed(made, topics=("t",)):
    return detach(made.subscription(topics).user_data, Claim)[1]


def test_rounds_are_counted_as_the_leader_says_where_the_client_does_not_tell():
    made = member()
    assert claimed(made).generation == -1
    made.assigned([("t", 0)], attach(None, Grant(7, "c-1")), None)
    assert claimed(made) == Claim({"t": [0]}, 7, None, None, "c-1", gave_up=True)


def test_rounds_are_counted_by_the_member_where_nobody_says():
    made = member()
    made.assigned([("t", 0)], b"", None)
    made.assigned([("t", 0)], None, None)
    assert claimed(made) == Claim({"t": [0]}, 2, None, None, None, gave_up=True)


def test_who_a_member_was_is_forgotten_where_something_else_led():
    """Its claim is then that of its present membership, as far as anybody knows."""
    made = member()
    made.assigned([("t", 0)], attach(None, Grant(7, "c-1")), None)
    made.assigned([("t", 0)], b"", None)
    assert claimed(made).member_id is None


def test_a_generation_that_the_client_tells_goes_before_the_leaders_count():
    made = member()
    made.assigned([("t", 0)], attach(None, Grant(7, "c-1")), 9)
    assert claimed(made).generation == 9


def test_an_eager_member_says_in_its_subscription_that_it_owns_nothing():
    """Leaders of other kinds would hold back what nobody gives up."""
    eager, cooperative = member(), member(gives_up=False)
    for made in (eager, cooperative):
        made.assigned([("t", 0)], None, 3)
    assert list(eager.subscription(["t"]).owned) == []
    assert list(cooperative.subscription(["t"]).owned) == [("t", 0)]


def test_apache_kafkas_bytes_of_the_sticky_assignor_come_first():
    from coordinator_core.registry.registry import default_registry

    made = Member(default_registry().assignor("sticky"), rack=None, instance_id=None, gives_up=True)
    made.assigned([("t", 1), ("t", 0)], None, 4)
    assert made.subscription(["t"]).user_data.startswith(encode_ownership(Partitions({"t": [0, 1]}), 4))
