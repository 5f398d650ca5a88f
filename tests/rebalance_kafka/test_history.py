"""The checker of histories finds what cannot happen, and nothing else."""

import re

import pytest

from tests.rebalance_kafka.history import Kind, Operation, Outcome, broken_rules

OK, FAILED, UNKNOWN = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN


def produce(value, began, outcome=OK, offset=0):
    return Operation("a", Kind.PRODUCE, 0, began, began + 1, outcome, offset, value)


def fetch(value, began, offset=0):
    return Operation("b", Kind.FETCH, 0, began, began + 1, OK, offset, value)


def commit(offset, began, outcome=OK, client="a"):
    return Operation(client, Kind.COMMIT, 0, began, began + 1, outcome, offset)


def committed(offset, began):
    return Operation("a", Kind.COMMITTED, 0, began, began + 1, OK, offset)


@pytest.mark.parametrize(
    ("operations", "records"),
    [
        ([], []),
        ([produce(b"1", 1), fetch(b"1", 3)], [(0, b"1")]),
        ([produce(b"1", 1, UNKNOWN)], []),
        ([produce(b"1", 1, UNKNOWN)], [(0, b"1")]),
        ([produce(b"1", 1, FAILED)], []),
        ([committed(-1, 1), commit(5, 3), committed(5, 5), commit(6, 7), committed(6, 9)], []),
        ([commit(5, 1), commit(6, 3, UNKNOWN), committed(5, 5), committed(6, 7)], []),
        ([commit(5, 1, UNKNOWN), commit(6, 3), committed(5, 5)], []),
        ([commit(5, 1), commit(6, 3, FAILED), committed(5, 5)], []),
        ([commit(5, 1), Operation("a", Kind.COMMIT, 0, 3, 9, OK, 6), committed(5, 5), committed(6, 7)], []),
        ([commit(5, 1), commit(1, 3, client="b"), committed(5, 5)], []),
    ],
)
def test_what_can_happen_breaks_no_rule(operations, records):
    assert broken_rules(operations, {0: records}) == []


@pytest.mark.parametrize(
    ("operations", "records", "message"),
    [
        ([produce(b"1", 1)], [], "an acknowledged record is not at its offset, where None is"),
        ([produce(b"1", 1, offset=1)], [(0, b"1")], "an acknowledged record is not at its offset"),
        ([produce(b"1", 1)], [(0, b"1"), (1, b"1")], "a record is there twice"),
        ([produce(b"1", 1, FAILED)], [(0, b"1")], "nobody has written b'1'"),
        ([], [(0, b"2")], "nobody has written b'2'"),
        ([produce(b"1", 1), fetch(b"2", 3)], [(0, b"1")], "another record was read than is there, b'1'"),
        ([commit(5, 1), commit(6, 3), committed(5, 5)], [], r"went back, expected one of \[6\]"),
        ([commit(5, 1), committed(-1, 3)], [], "went back"),
        ([commit(5, 1, FAILED), committed(5, 3)], [], "went back"),
        ([commit(5, 1), commit(6, 3), commit(7, 5, UNKNOWN), committed(5, 7)], [], r"one of \[6, 7\]"),
    ],
)
def test_each_broken_rule_is_found(operations, records, message):
    (found,) = broken_rules(operations, {0: records})
    assert re.search(message, found)
