"""All that is known of one group: figures of each strategy, busy scenarios, hot partitions, and a switch."""

import pytest

from coordinator_core.errors import InputError
from rebalance_spark.page import as_page
from rebalance_spark.rows import members_as_text
from rebalance_spark.sheet import MORE_PARTITIONS, sheets_of
from tests.rebalance_spark.score_files import found, hourly
from tests.rebalance_spark.test_capacity import MORE, OWNING, both, score

OVER, FREE = (1.3, 1, 3, 0, 3.5), (0.9, 0, None, 0, 3.5)


def sheet(stored, *rows, name="g"):
    scored = stored(hourly(list(rows), 12), more=MORE)
    made = found(scored, baseline="range")
    return sheets_of(scored, made, [name])[name], made


def cells(table):
    return {line[0].text: [cell.text for cell in line[1:]] for line in table.rows}


def test_a_switch_has_its_reason_its_figures_and_its_steps(stored):
    made, _ = sheet(stored, score("g", "range", OVER), score("g", "sticky", FREE))
    assert made.sentences == [
        "g: switch to sticky, or 5 members in place of 4; busiest member at 90 % after these events, now"
        " 130 %, overloaded in 0 of 12 scenarios, now 12 (records wait up to 3.6 h today)",
        "sticky is known to take 20 % or more of the overload away, which decides.",
        "100 % of the scenarios with overload show it by themselves.",
    ]
    figures, scenarios = made.tables
    assert figures.head == ["", "range (today)", "sticky"]
    assert figures.title == "g, of 12 scenarios"
    rows = cells(figures)
    assert rows["busiest member"] == ["130 %", "90 %"]
    assert rows["overloaded scenarios"] == ["12", "0"]
    assert rows["members for 100 %, now 4"] == ["5", "4"]
    assert rows["records wait up to"] == ["3.6 h", "0 min"]
    assert rows["  until"] == ["after hour=11", ""]
    assert rows["members for 70 %, now 4"] == ["7", "no number"]
    assert rows["moved_partitions"] == ["5", "5"]
    assert rows["  worse by more than 5 % in"] == ["-", "0 %"]
    assert len(scenarios.rows) == 12
    assert cells(scenarios)["hour=3/g"] == ["130 %", "90 %"]
    assert "StickyAssignor,org.apache.kafka.clients.consumer.RangeAssignor" in made.steps[0]
    assert made.steps[-1].startswith(
        "It was right if, in scenarios like those with overload, the busiest member has 90 %"
    )


@pytest.mark.parametrize(("load", "less", "more"), [(1.05, "12", "0"), (0.95, "12", "0"), (1.2, "12", "12")])
def test_overload_is_counted_for_members_that_handle_a_tenth_less_or_more(stored, load, less, more):
    made, _ = sheet(stored, *both("g", (load, 1, 2, 0, 3.5)))
    rows = cells(made.tables[0])
    assert rows["  if members handle 10 % less"] == [less, less]
    assert rows["  if they handle 10 % more"] == [more, more]


def test_partitions_that_are_too_much_are_named_with_their_loads(stored):
    rows = hourly(both("g", (1.5, None, None, 1, 6.0), owning=OWNING), 12)
    calm = members_as_text([(0.9, {"orders 7": 0.9})])
    scored = stored([each | {"busiest": calm} if each["hour"] == 3 else each for each in rows], more=MORE)
    made = sheets_of(scored, found(scored, baseline="range"), ["g"])["g"]
    assert cells(made.tables[-1]) == {"orders 7": ["120 %", "11"]}
    assert made.steps == []


def test_the_load_by_number_of_members_is_a_table(stored):
    made, _ = sheet(
        stored,
        score("g", "range", OVER, loads={-1: 1.9, 0: 1.3, 1: 0.95}),
        score("g", "sticky", FREE, loads={0: 0.9, 2: 0.6}),
    )
    table = made.tables[1]
    assert table.title == "busiest member by the number of members"
    assert table.head == ["members", "range", "sticky"]
    assert cells(table) == {
        "3": ["190 %", ""],
        "4 (today)": ["130 %", "90 %"],
        "5": ["95 %", ""],
        "6": ["", "60 %"],
    }
    assert [line[1].style for line in table.rows] == ["red", "red", "", ""]


def test_numbers_of_members_end_two_after_what_all_strategies_take(stored):
    loads = {more: 1.3 if more < 1 else 0.6 for more in range(-1, 9)}
    made, _ = sheet(stored, *both("g", (1.3, 1, 1, 0, 3.5), loads=loads))
    assert [*cells(made.tables[1])] == ["3", "4 (today)", "5", "6", "7"]


def test_of_many_numbers_of_members_those_near_what_it_takes_have_a_row(stored):
    loads = {more: 1.3 if more < 30 else 0.9 if more < 36 else 0.65 for more in range(-1, 46)}
    made, _ = sheet(stored, *both("g", (1.3, 30, 36, 0, 30.5), loads=loads, partitions=60))
    rows = [name.partition(" ")[0] for name in cells(made.tables[1])]
    assert rows == [*map(str, (3, 4, 5, 6, 33, 34, 35, 36, 39, 40, 41, 42))]


def test_the_load_without_hot_partitions_has_a_row(stored):
    made, _ = sheet(stored, *both("g", (1.5, None, None, 1, 6.0), owning=OWNING))
    assert cells(made.tables[0])["busiest without hot partitions"] == ["80 %", "80 %"]
    made, _ = sheet(stored, *both("g", OVER, owning=OWNING))
    assert "busiest without hot partitions" not in cells(made.tables[0])


def test_a_group_that_stays_says_that_nothing_is_known_to_be_better(stored):
    made, _ = sheet(stored, *both("g", (0.5, 0, 0, 0, 1.5)))
    assert made.sentences == [
        "g: stay",
        "It stays with range: no other strategy is known to be better in what decides and as good in the"
        " rest.",
    ]
    assert len(made.tables) == 1


def test_a_group_that_is_not_there_is_refused_by_name(stored):
    with pytest.raises(InputError, match="--group: found 'h', expected one of g"):
        sheet(stored, *both("g", OVER), name="h")


def test_the_page_opens_the_sheet_of_a_group_below_its_line(stored):
    made, findings = sheet(stored, score("g", "range", OVER), score("g", "sticky", FREE))
    page = as_page(findings, {}, [made])
    assert (
        page.count(
            "<details><summary>g: switch to sticky, or 5 members in place of 4; busiest member at 90 %"
        )
        == 1
    )
    assert "It was right if" in page
    assert "<p>g: switch" not in page
    assert "<p>g: switch" in as_page(findings)


def test_more_partitions_have_their_price(stored):
    made, _ = sheet(stored, *both("g", (1.5, None, None, 4, 7.2), partitions=6))
    assert made.steps == [MORE_PARTITIONS]
    assert made.sentences[1:3] == [
        "All partitions together have the load of 7.2 members, now 4.",
        "For 70 %, it takes 11 partitions.",
    ]


def test_a_partition_alone_that_leaves_no_member_at_ease_is_said(stored):
    warm = [(0.95, {"orders 7": 0.8}), (0.7, {})]
    made, _ = sheet(
        stored,
        score("g", "range", (1.6, 4, None, 0, 5.5), owning=warm),
        score("g", "other", (1.6, 4, 7, 0, 5.5)),
    )
    assert made.sentences[2] == "No number of members is enough for 70 %: a partition alone has 80 %."


def test_a_switch_beside_members_that_are_enough_without_it_has_no_further_members(stored):
    made, _ = sheet(
        stored, score("g", "range", (1.6, 4, 7, 0, 5.5)), score("g", "roundrobin", (1.1, 4, 7, 0, 5.5))
    )
    assert made.sentences[0].startswith("g: switch to roundrobin, or 8 members in place of 4;")
    assert "RoundRobinAssignor" in made.steps[0]
    assert made.steps[-1].endswith("the busiest member has 110 % of what it can handle at most.")


def test_a_switch_that_is_enough_with_more_members_only_has_its_steps(stored):
    made, _ = sheet(
        stored, score("g", "range", (1.5, None, None, 0, 3.0)), score("g", "sticky", (1.45, 1, 3, 0, 3.0))
    )
    assert made.sentences[0].startswith("g: switch to sticky with 5 members in place of 4")
    assert made.sentences[1:] == [
        "All partitions together have the load of 3 members, now 4.",
        "sticky ends the overload with more members only.",
    ]
    assert made.steps[0] == (
        "Start the further members before the switch: with those of today, the busiest has 145 % under"
        " sticky."
    )
    assert "StickyAssignor" in made.steps[1]
    assert made.steps[-1] == (
        "It was right if with 5 members, in scenarios like those with overload, the busiest member has 100 %"
        " of what it can handle at most, and the lag of no member grows in them."
    )


def test_what_leaves_less_load_comes_first_the_members_or_the_switch(stored):
    other = score("g", "sticky", (1.2, 2, 5, 0, 5.5), loads={0: 1.2, 1: 1.1, 2: 0.9, 3: 0.9, 4: 0.9})
    for load, first in ((1.7, "Switch before the further"), (1.1, "Start the further members before the")):
        today = score("g", "range", (1.6, 4, 7, 0, 5.5), loads={0: 1.6, 1: 1.6, 2: load, 3: 1.1, 4: 0.9})
        made, _ = sheet(stored, today, other)
        assert made.steps[0].startswith(first)
        assert f"with 6 members the busiest has {100 * load:.0f} % under range" in made.steps[0] or (
            f"; with 6, {100 * load:.0f} % under range" in made.steps[0]
        )


def test_the_caution_about_joins_is_for_groups_with_topics_of_as_many_partitions(stored):
    pair = [score("g", "range", OVER), score("g", "sticky", FREE)]
    made, _ = sheet(stored, *pair)
    assert not any("joined" in step or "join topics" in step for step in made.steps)
    made, _ = sheet(stored, *(each | {"alike": "a, b"} for each in pair))
    assert any("members that join topics" in step for step in made.steps)


def test_a_reason_that_the_line_has_is_not_given_again(stored):
    made, _ = sheet(stored, score("g", "range", OVER), score("g", "sticky", (1.2, 1, 3, 0, 3.5)))
    assert made.sentences[0].endswith(
        "with sticky it would be 120 %, but ending the overload takes 5 members under both"
    )
    assert made.sentences[1:] == ["All partitions together have the load of 3.5 members, now 4."]
