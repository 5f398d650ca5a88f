"""Parts of the algorithms of Kafka's sticky assignors, one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignors.kafka_sticky.apart import _poured
from assignors.kafka_sticky.movements import Movements
from coordinator_core.java import java_hash


def test_a_move_is_undone_rather_than_another_one_added():
    """PROTOCOL 10.5: t-3 went from 0 to 1, and now something is to go from 1 to 0."""
    movements = Movements("t")
    assert movements.instead(5, 1, 0) == 5
    movements.add(3, 0, 1)
    assert movements.instead(5, 1, 0) == 3
    assert movements.instead(5, 1, 2) == 5


def test_a_partition_that_is_back_has_not_moved():
    movements = Movements("t")
    movements.add(3, 0, 1)
    movements.add(3, 1, 0)
    assert movements.instead(5, 1, 0) == 5


def test_a_partition_counts_as_moved_from_where_it_was_first():
    movements = Movements("t")
    movements.add(3, 0, 1)
    movements.add(3, 1, 2)
    assert movements.instead(5, 2, 0) == 3
    assert movements.instead(5, 1, 0) == 5
    movements.add(4, 2, 1)
    assert movements.instead(3, 2, 1) == 3, "t-3 came to 2 from 0, and nothing went from 1 to 0"


def test_of_several_moves_the_first_in_hash_order_is_undone():
    """PROTOCOL 10.5: the hash of a TopicPartition is 31 * (31 + partition) + hash of the topic."""
    movements = Movements("orders")
    numbers = [2, 7, 11, 0]
    buckets = {}
    for number in numbers:
        movements.add(number, 0, 1)
        hashed = (31 * (31 + number) + java_hash("orders")) % 2**32
        buckets[number] = (hashed ^ hashed >> 16) % 16
    assert movements.instead(20, 1, 0) == min(numbers, key=buckets.__getitem__) != numbers[0]


def test_the_hash_table_of_moves_has_doubled_with_the_thirteenth():
    movements = Movements("t")
    for number in range(13):
        movements.add(number, 0, 1)
    hashes = {n: (31 * (31 + n) + java_hash("t")) % 2**32 for n in range(13)}
    buckets = [{n: (h ^ h >> 16) % size for n, h in hashes.items()} for size in (16, 32)]
    small, large = (min(hashes, key=places.__getitem__) for places in buckets)
    assert movements.instead(20, 1, 0) == large != small


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 30))
def test_partitions_are_poured_into_the_member_with_the_fewest(sizes, count):
    expected = list(sizes)
    for _ in range(count):
        expected[expected.index(min(expected))] += 1
    poured = _poured(np.array(sizes, dtype=np.int64), count)
    assert (np.array(sizes) + poured).tolist() == expected
