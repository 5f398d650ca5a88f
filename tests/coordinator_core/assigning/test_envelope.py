"""Private data behind the assignor's own user data."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_core.assigning.envelope import attach, detach

KIND, OTHER = b"EXAMPLE", b"ANOTHER"


@given(st.none() | st.binary(), st.binary())
def test_what_is_attached_is_detached(own, data):
    assert detach(attach(own, KIND, data), KIND) == (own or None, data)


@given(st.none() | st.binary(), st.binary())
def test_the_own_user_data_come_first(own, data):
    """Decoders of other makes read a prefix."""
    assert attach(own, KIND, data).startswith(own or b"")


@given(st.none() | st.binary(), st.binary(), st.binary())
def test_several_kinds_follow_each_other(own, data, more):
    both = attach(attach(own, KIND, data), OTHER, more)
    inner, found = detach(both, OTHER)
    assert (detach(inner, KIND), found) == ((own or None, data), more)
    assert detach(both, KIND) == (both, None)


def test_the_bytes_are_those_that_the_format_says():
    assert attach(b"own", KIND, b"xyz") == b"own" + b"xyz" + struct.pack(">i", 3) + b"\1" + KIND


@given(st.none() | st.binary().filter(lambda data: not data.endswith(KIND)))
@example(b"\0\0\0\0\0" + KIND)
@example(KIND)
def test_other_user_data_are_returned_unchanged(data):
    assert detach(data, KIND) == (data, None)


@pytest.mark.parametrize("length", [-1, -(2**31), 4, 2**31 - 1])
def test_a_length_that_does_not_fit_is_no_envelope(length):
    data = b"xyz" + struct.pack(">i", length) + b"\1" + KIND
    assert detach(data, KIND) == (data, None)


def test_later_versions_are_read():
    data = b"own" + b"xyz" + struct.pack(">i", 3) + b"\2" + KIND
    assert detach(data, KIND) == (b"own", b"xyz")
