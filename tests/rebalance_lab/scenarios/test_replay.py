"""The workload `replay`: windows that slide over measured traffic."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.replay import REPLAY, Traffic, read_traffic, replay
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from tests.places import MENTIONS

MINUTE = 60_000
TRAFFIC = Traffic("clicks", [(float(n), 10.0 * n) for n in range(10)])
SHORT = {"interval": MINUTE, "window": 4 * MINUTE, "step": 2 * MINUTE}


def document(row, seed=0, traffic=TRAFFIC, **options):
    return replay(seed, row, rates_csv=traffic, **{**SHORT, **options})


def first_counts(made):
    return [row[0] for row in made["topics"]["clicks"]["rates_rows"]]


def parsed(made):
    return parse_scenario(made, where=made["name"])


def error_of(**options):
    with pytest.raises(InputError) as caught:
        default_registry().generator("replay", {"rates_csv": str(MENTIONS), **options})(0, 0)
    return str(caught.value)


# --- windows


def test_windows_slide_by_a_step_and_behind_the_end_they_begin_anew():
    windows = [first_counts(document(row)) for row in range(5)]
    assert windows == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7], [6, 7, 8, 9], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("window", "step", "first"),
    [(10, 1, [0, 0, 0]), (9, 1, [0, 1, 0]), (9, 2, [0, 0, 0]), (1, 5, [0, 5, 0]), (7, 3, [0, 3, 0])],
)
def test_a_window_lies_wholly_in_the_file(window, step, first):
    made = [document(row, window=window * MINUTE, step=step * MINUTE) for row in range(3)]
    assert [first_counts(each)[0] for each in made] == first
    assert all(len(first_counts(each)) == window for each in made)


def test_a_window_that_begins_anew_has_other_changes():
    one, again = document(0), document(4)
    assert first_counts(one) == first_counts(again)
    assert one["events"] != again["events"]
    assert one["seed"] != again["seed"]


def test_a_window_lasts_as_long_as_its_intervals():
    made = document(0)
    assert made["duration"] == 4 * MINUTE
    topic = parsed(made).topics["clicks"]
    assert topic.partitions == 2
    assert topic.rates.steps[1] == (MINUTE, (1 / 60, 10 / 60))
    assert topic.rates.steps[-1][0] == 3 * MINUTE


def test_a_window_longer_than_the_file_is_refused():
    with pytest.raises(InputError) as caught:
        document(0, window=11 * MINUTE)
    assert str(caught.value) == (
        "profile 'replay': window: found 11m, of 10m measured, expected at most as much as the file has"
    )
    assert len(first_counts(document(0, window=10 * MINUTE))) == 10


# --- rows


def test_a_row_depends_on_its_number_and_seed_alone():
    rows = [document(row, seed=3) for row in range(6)]
    assert [document(row, seed=3) for row in reversed(range(6))] == rows[::-1]
    assert document(5, seed=3) == rows[5]
    others = [document(row, seed=4) for row in range(6)]
    assert all(one["events"] != other["events"] for one, other in zip(rows, others, strict=True))
    assert [first_counts(one) for one in rows] == [first_counts(other) for other in others]
    assert len({one["seed"] for one in rows + others}) == 12


def test_a_row_is_named_after_its_seed_and_number():
    assert document(7, seed=3)["name"] == "replay-3-7"


def test_a_member_joins_in_the_first_half_and_another_goes_in_the_second():
    kinds, back = set(), 0
    for row in range(60):
        scenario = parsed(document(row, window=10 * MINUTE))
        join, gone, *rest = scenario.events
        assert join.kind == "join"
        assert 1 * MINUTE <= join.at_ms <= 4 * MINUTE
        assert 5 * MINUTE <= gone.at_ms <= 7 * MINUTE
        kinds.add(gone.kind)
        back += len(rest)
        for restart in rest:
            assert restart.kind == "restart"
            assert 7.5 * MINUTE <= restart.at_ms <= 9 * MINUTE
            assert restart.arguments.names == gone.arguments.names
    assert kinds == {"leave", "crash"}
    assert 15 <= back <= 45


def test_anybody_may_go_also_who_has_just_joined():
    gone = {m for row in range(80) for e in parsed(document(row)).events[1:2] for m in e.arguments.names}
    assert gone == {"m-0", "m-1", "m-2", "m-3", "m-4"}


def test_changes_are_at_whole_seconds():
    assert all(event.at_ms % 1_000 == 0 for row in range(20) for event in parsed(document(row)).events)


@pytest.mark.parametrize("members", [2, 4, 7])
def test_so_many_members_begin_and_each_handles_twice_its_even_share_of_the_mean(members):
    scenario = parsed(document(0, members=members))
    assert [m.id for m in scenario.members] == [f"m-{n}" for n in range(members)]
    mean_per_second = 11 * 45 / 10 / 60
    joins = scenario.events[0].arguments
    for member in (*scenario.members, *joins.members):
        assert member.process_rate == pytest.approx(2 * mean_per_second / members, abs=1e-6)
        assert member.topics == ("clicks",)


def test_traffic_of_nothing_is_handled_too():
    assert parsed(document(0, traffic=Traffic("clicks", [(0.0, 0.0)] * 4))).members[0].process_rate > 0


@pytest.mark.parametrize("window", [1_000, 2_000, 5_000])
def test_a_window_of_a_few_seconds_is_a_scenario(window):
    for row in range(40):
        parsed(document(row, interval=1_000, window=window, step=1_000))


def test_a_group_under_measured_traffic_ends_stable():
    generate = default_registry().generator("replay", {"rates_csv": str(MENTIONS)})
    for row in range(3):
        scenario = parsed(generate(1, row))
        assert scenario.duration_ms == 120 * MINUTE
        assert scenario.topics["mentions_one_day"].partitions == 10
        assert plan(scenario, "cooperative-sticky", default_registry()).ended.group_state == "Stable"


# --- the file


@pytest.mark.parametrize(
    "text",
    ["time,a,b\n0,1,2\n1,3,4\n", "0,1,2\n1,3,4\n", "\ufefftime,a,b\r\n0,1,2\r\n1,3,4\r\n", "x,1,2\n\nx,3,4"],
    ids=["with a header", "without", "from Windows", "with blank lines"],
)
def test_a_file_has_a_label_and_a_column_per_partition(tmp_path, text):
    path = tmp_path / "page-views.csv"
    path.write_text(text)
    assert read_traffic(str(path)) == Traffic("page-views", [(1.0, 2.0), (3.0, 4.0)])


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("", ", row 1", "0 columns"),
        ("1\n2\n", ", row 1", "1 columns"),
        ("t,1,2\nt\n", ", row 2", "1 columns"),
        ("t,1,2\nt,3,four\n", ", row 2", "'four'"),
        ("t,1,2\nt,3,-4\n", ", row 2", "'-4'"),
        ("t,a,b\n", "", "no rows of numbers"),
    ],
)
def test_what_is_wrong_with_the_file_is_named_with_its_row(tmp_path, text, place, found):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_traffic(str(path))
    assert (caught.value.where, caught.value.found) == (f"profile 'replay': rates_csv: {path}{place}", found)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, "a file that cannot be read (No such file or directory)"),
        (b"\xff\xfe\x00", "a file that cannot be read ("),
        (b"t," + b"1" * 200_000, "a file that cannot be read (field larger"),
    ],
    ids=["not there", "not UTF-8", "a field beyond all measure"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content, found):
    path = tmp_path / "x.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_traffic(str(path))
    assert caught.value.where == f"profile 'replay': rates_csv: {path}"
    assert caught.value.found.startswith(found)
    assert caught.value.expected == "a CSV file"


def test_a_folder_and_a_name_that_no_file_can_have_are_no_files(tmp_path):
    for name in (str(tmp_path), "a\0b"):
        with pytest.raises(InputError, match="a file that cannot be read"):
            read_traffic(name)


# --- options


def test_it_has_the_options_that_its_generator_takes():
    taken = set(replay.__kwdefaults__) | {"rates_csv"}
    assert set(REPLAY.options) == taken
    assert REPLAY.required == ("rates_csv",)


def test_options_are_durations_and_a_number_of_members():
    options = {"interval": "10m", "window": "1h", "step": "600s", "members": "6"}
    generate = default_registry().generator("replay", {"rates_csv": str(MENTIONS), **options})
    made = generate(0, 2)
    assert made["duration"] == 60 * MINUTE
    assert made["topics"]["mentions_one_day"]["interval"] == 10 * MINUTE
    assert len(made["members"]) == 6
    assert made["topics"]["mentions_one_day"]["rates_rows"] == [
        list(row) for row in read_traffic(str(MENTIONS)).counts[2:8]
    ]


@pytest.mark.parametrize("text", ["1", "0", "-3", "1001", "four", "2.5", ""])
def test_members_are_two_to_a_thousand(text):
    assert error_of(members=text) == (
        f"profile 'replay': members: found {text!r}, expected a whole number from 2 to 1,000"
    )


@pytest.mark.parametrize("text", ["2", "1000"])
def test_two_members_and_a_thousand_are_enough(text):
    options = {"rates_csv": str(MENTIONS), "members": text}
    assert len(default_registry().generator("replay", options)(0, 0)["members"]) == int(text)


@pytest.mark.parametrize("name", ["interval", "window", "step"])
def test_a_duration_that_is_none_or_too_short_names_the_option(name):
    assert error_of(**{name: "soon"}).startswith(
        f"profile 'replay': {name}: found 'soon', expected a duration"
    )
    assert error_of(**{name: "10ms"}) == (
        f"profile 'replay': {name}: found '10ms', expected a duration of at least 1s"
    )
