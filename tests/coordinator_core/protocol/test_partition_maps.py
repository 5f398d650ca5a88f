"""Operations on maps of partitions are those of sets of partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.client.subscription import partition_map
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.partition_maps import difference, intersection, union

PARTITIONS = st.frozensets(st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 5)))


@pytest.mark.parametrize(
    ("operation", "of_sets"),
    [(union, frozenset.union), (difference, frozenset.difference), (intersection, frozenset.intersection)],
)
@given(first=PARTITIONS, second=PARTITIONS)
def test_an_operation_is_that_of_sets_with_sorted_numbers_and_no_empty_topic(
    operation, of_sets, first, second
):
    assert operation(partition_map(first), partition_map(second)) == partition_map(of_sets(first, second))


def test_arguments_stay_as_they_are_and_topics_keep_their_order():
    first, second = {"b": [1], "a": [0]}, {"c": [0], "b": [0]}
    assert list(union(first, second).items()) == [("b", [0, 1]), ("a", [0]), ("c", [0])]
    assert (first, second) == ({"b": [1], "a": [0]}, {"c": [0], "b": [0]})
