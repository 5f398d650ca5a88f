"""Java's string hashes and the order of its hash maps. The values are what a JVM prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.java import java_hash, java_hashes, java_order
from coordinator_core.java.hash_maps import copied_table, hash_order


def hash_code(name):
    """The definition: s[0] * 31^(n - 1) + ... + s[n - 1] over UTF-16 units, in 32 bits."""
    total = 0
    units = name.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + 256 * high + low) % 2**32
    return total


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Hello, World!", 1498789909),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", 2**31),
    ],
)
def test_hashes_are_javas(name, expected):
    assert java_hashes([name]).tolist() == [expected]
    assert java_hash(name) == (expected - 2**32 if expected >= 2**31 else expected)


def test_no_names_have_no_hashes():
    assert java_hashes([]).tolist() == []
    assert hash_order([]) == []


@given(st.lists(st.text(max_size=12), max_size=8))
def test_hashes_follow_the_definition_for_names_of_different_lengths(names):
    assert java_hashes(names).tolist() == [hash_code(name) for name in names]


def test_letters_outside_the_basic_plane_count_as_two():
    assert java_hashes(["\U0001f600"]).tolist() == [31 * 0xD83D + 0xDE00]


class HashSet:
    """Java's, in full: chains in a table that doubles as it fills; trees are not needed here."""

    def __init__(self):
        self.table = [[] for _ in range(16)]
        self.size = 0

    @staticmethod
    def spread(name):
        return hash_code(name) ^ (hash_code(name) >> 16)

    def bucket(self, name):
        return self.table[self.spread(name) % len(self.table)]

    def double(self):
        names = list(self)
        self.table = [[] for _ in range(2 * len(self.table))]
        for name in names:
            self.bucket(name).append(name)

    def add(self, name):
        bucket = self.bucket(name)
        if name in bucket:
            return
        bucket.append(name)
        self.size += 1
        if len(bucket) > 8 and len(self.table) < 64:
            self.double()
        if self.size > 0.75 * len(self.table):
            self.double()

    def __iter__(self):
        return (name for bucket in self.table for name in bucket)


def iterated(names):
    made = HashSet()
    for name in names:
        made.add(name)
    return list(made)


@given(st.lists(st.text("abcxyz019-_.", max_size=6), max_size=120))
def test_the_order_is_that_of_a_hash_set(names):
    """PROTOCOL 10.1."""
    assert hash_order(names) == iterated(names)


def test_names_in_one_bucket_come_in_the_order_of_insertion():
    assert hash_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert hash_order(["Aa", "BB", "Aa"]) == ["Aa", "BB"]


@pytest.mark.parametrize("count", [12, 13, 24, 25, 48, 49, 96, 97, 1000])
def test_the_table_doubles_when_three_quarters_are_full(count):
    names = [f"topic-{n}" for n in range(count)]
    assert hash_order(names) == iterated(names)


@pytest.mark.parametrize("count", [8, 9, 10, 11, 12])
def test_a_chain_of_more_than_eight_doubles_a_small_table_early(count):
    """All these names fall into one bucket of 16: the table grows before it is three quarters full."""
    names = [name for name in map(str, range(5000)) if HashSet.spread(name) % 16 == 3][:count]
    assert hash_order(names) == iterated(names)
    mixed = [*names, "a", "b", "q"]
    assert hash_order(mixed) == iterated(mixed)


def test_names_are_ordered_by_their_code_units():
    """A letter beyond the basic plane begins with a surrogate, which is less than U+FF5E."""
    assert java_order(["\uff5e", "\U0001f600", "b", "a"]) == ["a", "b", "\U0001f600", "\uff5e"]
    assert java_order(["b", "a", "B"]) == ["B", "a", "b"]


@pytest.mark.parametrize(("keys", "size"), [(1, 16), (11, 16), (12, 32), (23, 32), (24, 64), (96, 256)])
def test_a_copy_of_a_set_has_the_table_of_java_17(keys, size):
    assert copied_table(keys) == size
