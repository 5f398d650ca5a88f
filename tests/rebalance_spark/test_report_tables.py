"""Findings made by hand, as CSV and as tables on a terminal."""

import csv
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from rebalance_spark.choices import Statistic
from rebalance_spark.findings import Part
from rebalance_spark.page import as_page
from rebalance_spark.paired import Difference
from rebalance_spark.printing import print_findings
from rebalance_spark.report_tables import as_csv, differences_table
from rebalance_spark.sentences import notes
from tests.rebalance_spark.made_findings import (
    ADVICE,
    ADVISED,
    PLAIN,
    TWO,
    Page,
    figures,
    findings_of,
    texts_of,
)

# --- CSV


def test_csv_has_a_row_for_each_strategy_and_metric_with_every_statistic():
    rows = list(csv.DictReader(io.StringIO(as_csv(TWO))))
    assert [(r["strategy"], r["metric"]) for r in rows] == [
        (s, m) for s in ("range", "sticky") for m in ("rounds", "moved_partitions", "imbalance")
    ]
    assert rows[2] == {
        "strategy": "range",
        "metric": "imbalance",
        "unit": "",
        "rows": "10",
        "mean": "1.25",
        "p50": "2.25",
        "p95": "3.25",
        "p99": "4.25",
        "worst": "5.25",
        "worst_scenario": "day-7",
    }


def test_csv_leaves_out_what_there_is_not_and_quotes_what_needs_it():
    made = findings_of({'a,"b"': {"rounds": 1 / 3}, "failing": {}})
    (row,) = csv.DictReader(io.StringIO(as_csv(made)))
    assert (row["strategy"], row["mean"]) == ('a,"b"', "0.333333333333")


def test_csv_of_nothing_is_its_head():
    assert as_csv(findings_of({"range": {}})).splitlines() == [
        "strategy,metric,unit,rows,mean,p50,p95,p99,worst,worst_scenario"
    ]


# --- the terminal


def printed(findings, *statistics, width=200, terminal=False, everything=True):
    text = io.StringIO()
    console = Console(
        file=text,
        width=width,
        highlight=False,
        emoji=False,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        _environ={},
    )
    print_findings(findings, list(statistics) or [Statistic.mean], console, everything=everything)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_wide_terminal_shows_all_strategies_beside_one_another():
    assert printed(TWO) == [
        "1,234 scenarios, protocol fidelity (rebalance-lab 0.1.0)",
        "",
        "sticky: no other strategy is better in moved_partitions or imbalance and as good in the other."
        " --baseline STRATEGY adds the change from today's strategy.",
        "",
        "mean of 10        range  sticky",
        "rounds                3       3",
        "moved_partitions     50      20",
        "imbalance          1.25     1.5",
        "",
        "front, of 10 scenarios  moved_partitions  imbalance",
        "sticky                                20        1.5",
        "(range)                               50       1.25",
    ]


MANY = findings_of({f"a-rather-long-name-{n}": {"rounds": n * 1e6, "messages": 2.0} for n in range(5)})


def test_a_narrow_terminal_shows_the_rest_below_and_cuts_nothing():
    for width in range(32, 130):
        lines = printed(MANY, width=width)
        assert max(map(len, lines[2:])) <= width
        shown = [word for line in lines if line.startswith("mean ") for word in line.split()[3:]]
        assert shown == list(MANY.strategies)
        rounds = [word for line in lines if line.startswith("rounds") for word in line.split()[1:]]
        assert rounds == ["0", "1,000,000", "2,000,000", "3,000,000", "4,000,000"]
        assert not any("…" in line for line in lines)


def test_as_many_strategies_stand_beside_one_another_as_fit():
    width = len("mean of 10  ") + 2 * len("a-rather-long-name-0  ")
    per_table = [len(line.split()) - 3 for line in printed(MANY, width=width) if line.startswith("mean ")]
    assert per_table == [2, 2, 1]
    per_table = [len(line.split()) - 3 for line in printed(MANY, width=200) if line.startswith("mean ")]
    assert per_table == [5]


def test_a_name_that_is_wider_than_the_terminal_is_folded_and_its_metrics_are_whole():
    long = "/a/folder/of/somebody" * 5 + ".py:Mine"
    means = {long: {"rounds": 1_000_000.0, "messages": 5.0}, "range": {"rounds": 2.0, "messages": 3.0}}
    lines = printed(findings_of(means), width=60)
    assert max(map(len, lines)) <= 60
    first, second = (i for i, line in enumerate(lines) if line.startswith("mean "))
    assert "".join(line.removeprefix("mean of 10").strip() for line in lines[2 : first + 1]) == long
    rows = [line.split() for line in lines[first + 1 : second]]
    assert rows == [["rounds", "1,000,000"], ["messages", "5"], []]
    assert lines[second].split() == ["mean", "of", "10", "range"]


SEVERAL = ["avoidable_moves", "imbalance", "moved_partitions", "optimality_gap", "rounds"]


@pytest.mark.parametrize(
    ("metrics", "balance", "shown"),
    [
        (SEVERAL, "imbalance", ["imbalance", "moved_partitions", "rounds"]),
        (SEVERAL, "optimality_gap", ["moved_partitions", "optimality_gap", "rounds"]),
        (["rounds", "custom"], "imbalance", ["rounds"]),
        (["avoidable_moves", "custom"], "imbalance", ["avoidable_moves", "custom"]),
    ],
)
def test_the_short_form_has_the_headlines_and_the_metric_of_the_front(metrics, balance, shown):
    made = findings_of({name: dict.fromkeys(metrics, 1.0) for name in ("a", "b")}, balance=balance)
    everything, short = printed(made)[3:], printed(made, everything=False)[3:]
    rest = [] if shown == metrics else ["", "--all shows the other metrics"]
    assert [line.split()[0] for line in everything] == metrics
    assert [line.split()[0] for line in short[: len(shown)]] == shown
    assert short[len(shown) :] == rest


def test_each_statistic_asked_for_has_its_table():
    heads = [line.split()[0] for line in printed(TWO, Statistic.p99, Statistic.worst) if " range " in line]
    assert heads == ["p99", "worst"]


def test_the_best_is_bold_and_green_where_there_is_one():
    lines = printed(TWO, terminal=True)
    (moves,) = (line for line in lines if "moved_partitions" in line and "50" in line)
    assert re.search(r"\x1b\[1;32m *20\x1b\[0m", moves)
    assert not re.search(r"\x1b\[1;32m *50", moves)
    (rounds,) = (line for line in lines if line.startswith("rounds"))
    assert "\x1b[1;32m" not in rounds


def test_scenarios_that_are_not_compared_are_named():
    sentence = "8 scenarios are left out, because not all completed them: range did not complete 8 (day-7)"
    assert printed(replace(TWO, left_out=[sentence]))[1] == sentence
    assert sentence in texts_of(as_page(replace(PLAIN, left_out=[sentence])))


def test_names_are_no_markup():
    made = findings_of({"[red]x[/]": {"rounds": 1.0}}, versions=["[b]1[/b]"])
    lines = printed(made)
    assert lines[0].endswith("([b]1[/b])")
    assert lines[2].split() == ["mean", "of", "10", "[red]x[/]"]


def test_a_strategy_without_a_figure_and_findings_without_metrics_can_be_shown():
    made = findings_of({"range": {"rounds": 3.0}, "failing": {}})
    assert printed(made)[2:] == ["mean of 10  range  failing", "rounds          3        -"]
    assert printed(findings_of({"range": {}}))[2:] == ["mean of 10  range"]


# --- the strategy of today, parts and sweeps

VERDICT = [
    "switch 2 of 3 groups to sticky (g-1 and g-2): -31 [-32.4, -29.7] moved_partitions (from -32 to -30),"
    " imbalance about as now; but +0.4 [+0.257, +0.531] rounds",
    "leave 1 of 3 groups as they are, with range (1 of them have no figures)",
    "1 of 3 groups (g-0) does not have enough data for a switch yet: score more hours (--keys) or --draws",
]


def test_the_verdict_comes_first_and_names_what_becomes_worse():
    lines = printed(ADVISED)
    assert lines[2:5] == VERDICT
    assert lines[5].startswith(
        "A group switches to a strategy only if that is known to be better in at least one of"
    )
    texts = texts_of(as_page(ADVISED))
    assert texts.index(VERDICT[0]) < texts.index("Moves against imbalance")


def test_after_the_rule_come_what_is_not_measured_and_what_a_switch_takes():
    weighted = "lag-aware+tolerance=5%"
    advice = replace(ADVICE, strategies=["range", weighted])
    made = replace(ADVISED, fidelities=["plan"], advice=advice)
    _, changes, agreeing, stops, unscored, restarts, clients = notes(made)
    assert changes == (
        "Changes are of a scenario, for the median group that switches, with intervals of 95 %, and in"
        " parentheses of single groups. The mean difference of a group is drawn towards those of the others,"
        " as far as chance would explain it."
    )
    assert agreeing == (
        "In the mean, 75 % of the scenarios of a group that switches show it by themselves (the fewest, 75 %,"
        " are those of g-1)."
    )
    assert unscored == (
        "cooperative-sticky and roundrobin, which Kafka's own clients have, were not scored (-s)."
    )
    assert restarts.startswith("A switch takes a rolling restart, with the new assignor before the old one")
    assert "range gives the partitions of one number of several topics to one member" in restarts
    assert stops.startswith("Plan fidelity does not measure how long partitions stop")
    assert clients == (
        "Kafka's own clients do not have lag-aware+tolerance=5%; kafka-python, aiokafka and the Consumer of"
        " rebalance_kafka do. Under lag-aware+tolerance=5%, members must report their rates; otherwise"
        " partitions are counted."
    )
    assert {stops, clients} <= set(texts_of(as_page(made)))
    assert {stops, clients} <= set(printed(made, width=300))
    *_, assumed, predicted, settings, _, _ = notes(replace(ADVISED, fidelities=["protocol"]))
    assert assumed.startswith("Members without process_rate (--member process_rate=N) handle records at once")
    assert predicted.startswith("Figures are predictions: over all real runs of the calibration")
    assert settings.startswith(
        "Settings, such as a shorter heartbeat interval, may help more than an assignor"
    )
    assert not any("without process_rate" in line for line in notes(replace(ADVISED, has_limits=True)))


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ((1, 1), "Each scenario has 1 event. "),
        ((2, 2), "Each scenario has 2 events. "),
        ((1, 1_500), "Each scenario has 1 to 1,500 events. "),
    ],
)
def test_what_happens_to_the_groups_is_in_the_assumptions(events, text):
    assert notes(replace(ADVISED, fidelities=["protocol"], events=events))[-5].startswith(text)


def test_a_metric_that_some_scenarios_lack_has_the_number_of_the_others():
    made = replace(TWO, common=12)
    assert printed(made)[4:6] == [
        "mean of 12               range  sticky",
        "rounds, of 10                3       3",
    ]


def test_differences_to_the_strategy_of_today_have_intervals_and_a_colour_if_they_are_clear():
    lines = printed(ADVISED)
    at = next(n for n, line in enumerate(lines) if line.startswith("minus range, of 10 [95 %]"))
    assert [line.split(None, 1) for line in lines[at + 1 : at + 4]] == [
        ["rounds", "0 [-0.1, +0.1]"],
        ["moved_partitions", "-30 [-33, -27]"],
        ["imbalance", "+0.25 [+0.2, +0.31]"],
    ]
    rows = {row[0].text: row[1].style for row in differences_table(ADVISED, ADVISED.metrics).rows}
    assert rows == {"rounds": "", "moved_partitions": "green", "imbalance": "yellow"}


def test_csv_has_the_differences_and_their_intervals():
    rows = {(r["strategy"], r["metric"]): r for r in csv.DictReader(io.StringIO(as_csv(ADVISED)))}
    found = rows["sticky", "imbalance"]
    assert [found[f"difference{end}"] for end in ("", "_low", "_high")] == ["0.25", "0.2", "0.31"]
    assert rows["range", "imbalance"]["difference"] == ""


def test_parts_have_a_table_for_moves_and_one_for_balance():
    means = {("moved_partitions", "range"): figures(5.0), ("moved_partitions", "sticky"): figures(4.0)}
    made = replace(PLAIN, by="team", parts=[Part("blue", 7, means), Part("green", 0, {})])
    lines = printed(made)
    at = next(n for n, line in enumerate(lines) if line.startswith("moved_partitions by team"))
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["blue", "7", "5", "4"],
        ["green", "0", "-", "-"],
    ]
    assert "<h2>By team</h2>" in as_page(made)


def test_parts_have_the_differences_to_the_strategy_of_today():
    change = figures(4.0)._replace(change=Difference(-1.0, -2.0, -0.5))
    parts = [Part("blue", 7, {("rounds", "range"): figures(5.0), ("rounds", "sticky"): change})]
    made = replace(ADVISED, by="team", parts=[*parts, Part("green", 0, {})])
    lines = printed(made)
    at = next(n for n, line in enumerate(lines) if line.startswith("rounds minus range [95 %]"))
    assert [line.split(None, 1) for line in lines[at + 1 : at + 3]] == [
        ["blue", "-1 [-2, -0.5]"],
        ["green", "-"],
    ]
    assert Page(as_page(made)).tables["rounds minus range [95 %]"][1] == ["blue", "-1 [-2, -0.5]"]


SWEEP = findings_of(
    {
        "optimal+tolerance=1%": {"rounds": 3.0},
        "optimal+tolerance=5%": {"rounds": 2.0},
        "sticky": {"rounds": 4.0},
    }
)


def test_a_sweep_has_its_parameters_as_columns():
    assert [line.split() for line in printed(SWEEP)[2:6]] == [
        ["mean", "of", "10", "tolerance", "rounds"],
        ["optimal", "1%", "3"],
        ["optimal", "5%", "2"],
        ["sticky", "-", "4"],
    ]
    rows = list(csv.DictReader(io.StringIO(as_csv(SWEEP))))
    assert [(r["strategy"], r["tolerance"]) for r in rows][1:] == [
        ("optimal+tolerance=5%", "5%"),
        ("sticky", "-"),
    ]
