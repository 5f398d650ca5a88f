"""Random numbers by their number."""

import pytest

from rebalance_lab.simulation.world.dice import Dice, Spread

RANGES = [(0, 0), (5, 5), (0, 2), (40, 90)]


@pytest.mark.parametrize("first", [0, 1, 7, 2**33])
def test_numbers_in_bulk_are_those_by_number(first):
    dice = Dice("any")
    assert dice.between(first, first + 500).tolist() == [dice.at(first + n) for n in range(500)]
    assert dice.between(first, first).tolist() == []


def test_numbers_fill_the_range_from_0_to_1():
    numbers = Dice("any").between(0, 10_000)
    assert 0 <= numbers.min() < 0.001
    assert 0.999 < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.01


def test_a_name_has_the_same_numbers_every_time_and_others_have_others():
    first = Dice("1:network:a").between(0, 100)
    assert (Dice("1:network:a").between(0, 100) == first).all()
    for name in ("1:network:b", "2:network:a", ""):
        assert not set(Dice(name).between(0, 100)) & set(first)


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_whole_numbers_in_bulk_are_those_by_number(low, high):
    spread = Spread(low, high, Dice("any"))
    numbers = spread.between(3, 1_003).tolist()
    assert numbers == [spread.at(3 + n) for n in range(1_000)]
    assert set(numbers) == (set(range(low, high)) or {low})


@pytest.mark.parametrize("wanted", [range(300), [*range(40), *range(90, 130), *range(20)], [7, 7, 5, 1_000]])
def test_numbers_drawn_in_blocks_are_those_of_the_stream(wanted):
    dice = Dice("any")
    spread = Spread(10, 1_010, dice, start=2, step=4)
    assert [spread.at(n) for n in wanted] == [10 + int(dice.at(2 + 4 * n) * 1_000) for n in wanted]
