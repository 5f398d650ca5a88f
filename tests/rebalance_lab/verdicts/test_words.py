"""Text for people: findings of several seeds, and times."""

import pytest

from rebalance_lab.verdicts.words import duration, findings_of_seeds, in_seeds


def test_a_finding_of_all_seeds_has_no_seeds():
    assert findings_of_seeds({1: ["x"], 2: ["x"]}) == ["x"]
    assert findings_of_seeds({1: ["x of 2", "x of 3"]}) == ["x of 2", "x of 3"]


def test_findings_of_seeds_that_differ_only_in_numbers_are_one():
    lost = "the group lost {} times; make calls shorter"
    several = {3: [lost.format("c-1, c-2 and 2 more 7")], 4: ["other"], 8: [lost.format("c-1 and c-3 9")]}
    assert findings_of_seeds(several) == [
        "the group lost c-1, c-2 and 2 more 7 times (seeds 3 and 8, with the numbers of seed 3);"
        " make calls shorter",
        "other (seed 4)",
    ]
    assert findings_of_seeds({1: ["x of 2"], 2: ["x of 3"]}) == [
        "x of 2 (all seeds, with the numbers of seed 1)"
    ]


def test_several_seeds_are_seeds():
    assert [in_seeds(some, range(3)) for some in ([1], [0, 1], range(3))] == ["seed 1", "seeds 0 and 1", ""]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (90.04, "90 s"), (119.9, "119.9 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 days")],
)
def test_a_time_is_in_the_largest_unit_of_which_it_has_two(seconds, text):
    assert duration(seconds) == text
