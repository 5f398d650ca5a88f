"""Text for people: findings of several seeds, and sentences that several runs have in common."""

from rebalance_lab.verdicts.overload import overload_of_all
from rebalance_lab.verdicts.words import findings_of_seeds, in_seeds


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


def test_a_load_that_a_run_can_carry_is_not_called_too_high():
    high = ["The load of 9 is more than the 8. No assignor removes this, only members."]
    higher = ["The load of 9 is more than the 7. No assignor removes this, only members."]
    assert overload_of_all([("a", high), ("b", high)]) == tuple(high)
    assert overload_of_all([("a", high), ("b", higher)]) == (*high, "The figures are those of a.")
    assert overload_of_all([("a", high), ("b", [])]) == overload_of_all([]) == ()
