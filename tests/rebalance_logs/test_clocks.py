"""One clock for all files."""

from dataclasses import replace

from rebalance_logs.clocks import shifts_of
from rebalance_logs.facts import Fact, Kind, Source
from rebalance_logs.reading import LogFile, Logs


def logs(*files):
    """Files of clients, each with the times at which it joined generation 1, 2 and so on."""
    facts = [
        Fact(
            at_ms,
            Kind.JOINED,
            Source(number, generation),
            "g",
            f"c-{number}",
            generation=generation,
            library="java",
        )
        for number, times in enumerate(files)
        for generation, at_ms in enumerate(times, start=1)
    ]
    return Logs([LogFile(f"c-{number}.log") for number in range(len(files))], facts)


def test_a_clock_is_ahead_by_the_least_time_by_which_it_is_later():
    assert shifts_of(logs([1_000, 5_000, 9_000], [8_100, 12_020, 16_500])) == [0, 7_020]


def test_who_learns_of_generations_late_has_no_other_clock():
    """The second client handles a batch when it is told, but for the first time."""
    on_time = [1_000, 11_000, 21_000, 31_000, 41_000]
    late = [1_000, 13_000, 23_000, 33_000, 43_000]
    assert shifts_of(logs(on_time, late, on_time)) == [0, 0, 0]
    assert shifts_of(logs(late, on_time, on_time)) == [0, 0, 0]


def test_one_generation_that_agrees_among_several_is_chance_and_no_clock():
    """The second client learns of each generation later than of the one before."""
    assert shifts_of(logs([1_000, 11_000, 21_000], [6_000, 19_000, 32_000])) == [0, 0]


def test_the_return_of_a_static_member_to_a_generation_says_nothing_of_its_clock():
    found = logs([1_000, 61_000, 91_000], [41_000, 68_000, 98_000])
    found.facts[3] = replace(found.facts[3], instance_id="pod-1")  # the first line of the second file
    assert shifts_of(found) == [0, 7_000]


def test_a_shift_that_is_given_is_taken():
    assert shifts_of(logs([1_000], [5_000]), {1: 3_000})[1] == 3_000


def test_files_that_share_no_generation_have_the_clock_that_they_show():
    assert shifts_of(logs([1_000, 5_000], [])) == [0, 0]
